"""What a stand-in server says of itself: /metrics, /server_info, /openapi.json, /v1/models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from .config import FakeConfig
from .engine import Engine
from .protocol import REQUEST_FIELDS

_RESPONSE_FIELDS = """
id object created model choices service_tier system_fingerprint usage prompt_logprobs prompt_token_ids
prompt_text kv_transfer_params ec_transfer_params metrics
""".split()


def cache_config(config: FakeConfig) -> dict[str, Any]:
    """vLLM's CacheConfig, as /server_info and vllm:cache_config_info tell it."""
    return {
        "block_size": config.block_size,
        "cache_dtype": config.kv_cache_dtype,
        "enable_prefix_caching": config.prefix_caching,
        "gpu_memory_utilization": 0.92,
        "kv_cache_memory_bytes": None,
        "num_cpu_blocks": None,
        "num_gpu_blocks": config.num_gpu_blocks,
        "num_gpu_blocks_override": None,
        "prefix_caching_hash_algo": "sha256",
        "sliding_window": None,
    }


def metrics_text(config: FakeConfig, engine: Engine) -> str:
    """The Prometheus exposition of the counters that vLLM 0.32 has and this engine moves."""
    counters, started = engine.counters, engine.started_at_s
    labels = f'engine="0",model_name="{config.served_model_name}"'
    usage = len(engine.cache) / max(1, config.num_gpu_blocks)
    lines: list[str] = []
    for name, value, text in (
        ("num_requests_running", engine.running, "Number of requests in model execution batches."),
        ("num_requests_waiting", engine.waiting, "Number of requests waiting to be processed."),
        ("kv_cache_usage_perc", usage if engine.running else 0, "KV-cache usage. 1 means 100 percent usage."),
    ):
        lines += _family(name, "gauge", text, [(labels, value)])
    for name, value, text in (
        (
            "prefix_cache_queries",
            counters.prefix_queries,
            "Prefix cache queries, in terms of queried tokens.",
        ),
        (
            "prefix_cache_hits",
            counters.prefix_hits,
            "Prefix cache hits, in terms of number of cached tokens.",
        ),
        ("num_preemptions", counters.preemptions, "Cumulative number of preemption from the engine."),
        ("prompt_tokens", counters.prompt_tokens, "Number of prefill tokens processed."),
        ("generation_tokens", counters.generation_tokens, "Number of generation tokens processed."),
    ):
        lines += _family(name, "counter", text, [(labels, value)])
        lines += [f"# HELP vllm:{name}_created {text}", f"# TYPE vllm:{name}_created gauge"]
        lines += [f"vllm:{name}_created{{{labels}}} {started!r}"]
    successes = [(f'{labels},finished_reason="{r}"', counters.requests.get(r, 0)) for r in ("stop", "length", "abort")]
    lines += _family("request_success", "counter", "Count of successfully processed requests.", successes)
    info = ",".join(f'{name}="{value}"' for name, value in sorted({**cache_config(config), "engine": 0}.items()))
    lines += _family("cache_config_info", "gauge", "Information of the LLMEngine CacheConfig", [(info, 1)])
    kept = [line for line in lines if not any(name in line for name in config.faults.omit if name.startswith("vllm:"))]
    return "\n".join(kept) + "\n"


def server_info(config: FakeConfig) -> dict[str, Any]:
    """The answer of /server_info?config_format=json, cut to what matters to a contract."""
    model: dict[str, Any] = {"model": config.model, "tokenizer": config.model, "dtype": config.dtype}
    model |= {"served_model_name": config.served_model_name, "quantization": config.quantization}
    model |= {"max_model_len": config.max_model_len, "max_logprobs": config.max_logprobs, "seed": config.seed}
    model |= {
        "enforce_eager": config.enforce_eager,
        "logprobs_mode": "raw_logprobs",
        "generation_config": "vllm",
    }
    if config.default_sampling:
        model["generation_config"] = "auto"
    version = config.flash_attn_version if config.attention_backend == "FLASH_ATTN" else None
    env: dict[str, Any] = {
        "VLLM_BATCH_INVARIANT": config.batch_invariant,
        "VLLM_SERVER_DEV_MODE": config.dev_mode,
    }
    return {
        "vllm_config": {
            "model_config": model,
            "cache_config": cache_config(config),
            "parallel_config": {
                "tensor_parallel_size": 1,
                "pipeline_parallel_size": 1,
                "data_parallel_size": 1,
            },
            "scheduler_config": {
                "max_num_seqs": config.max_num_seqs,
                "max_num_batched_tokens": 8192,
                "enable_chunked_prefill": True,
                "async_scheduling": False,
                "policy": "fcfs",
            },
            "device_config": {"device_type": config.device_type},
            "load_config": {"load_format": "auto"},
            "attention_config": {"backend": config.attention_backend, "flash_attn_version": version},
            "lora_config": None,
            "speculative_config": None,
            "compilation_config": {"mode": 0 if config.enforce_eager else 3},
            "kv_transfer_config": None,
        },
        "vllm_env": env | dict(config.env),
        "system_env": {
            "torch_version": "2.13.0+cpu",
            "cuda_runtime_version": "Could not collect",
            "nvidia_driver_version": "Could not collect",
            "nvidia_gpu_models": "Could not collect",
            "os": "Stand-in (x86_64)",
            "python_version": "3.11",
            "vllm_version": config.version,
            "env_vars": "".join(f"{name}={value}\n" for name, value in config.library_env.items()),
        },
    }


def openapi(config: FakeConfig) -> dict[str, Any]:
    """The part of /openapi.json that lists the accepted fields."""
    properties = {
        name: ({} if kind == "any" else {"anyOf": [{"type": kind}, {"type": "null"}]}) | {"title": name}
        for name, kind in REQUEST_FIELDS.items()
        if name not in config.unknown_fields
    }
    request = {
        "type": "object",
        "required": ["messages"],
        "properties": properties,
        "additionalProperties": True,
    }
    response = {"type": "object", "properties": {name: {} for name in _RESPONSE_FIELDS}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "FastAPI", "version": "0.1.0"},
        "paths": {"/v1/chat/completions": {"post": {}}},
        "components": {"schemas": {"ChatCompletionRequest": request, "ChatCompletionResponse": response}},
    }


def models(config: FakeConfig) -> dict[str, Any]:
    """The answer of /v1/models."""
    card = {
        "id": config.served_model_name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "vllm",
    }
    card |= {"root": config.model, "parent": None, "max_model_len": config.max_model_len, "permission": []}
    return {"object": "list", "data": [card]}


def _family(name: str, kind: str, text: str, samples: Sequence[tuple[str, float]]) -> list[str]:
    full = f"vllm:{name}" + ("_total" if kind == "counter" else "")
    lines = [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
    return lines + [f"{full}{{{labels}}} {float(value)!r}" for labels, value in samples]
