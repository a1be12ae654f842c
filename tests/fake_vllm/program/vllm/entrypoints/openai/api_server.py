"""The stand-in program. `python -m vllm.entrypoints.openai.api_server` with this folder first on PYTHONPATH.

It reads the arguments and VLLM_* variables of the real program, and these of its own:
FAKE_VLLM_START_DELAY_S (before it listens), FAKE_VLLM_CONFIG (JSON of further FakeConfig fields),
FAKE_VLLM_EXIT_CODE with FAKE_VLLM_EXIT_TEXT (fails at the start), FAKE_VLLM_DIE_AFTER_REQUESTS,
FAKE_VLLM_NEVER_HEALTHY (1: never listens; 503: listens and says 503), FAKE_VLLM_IGNORE_SIGTERM,
FAKE_VLLM_FLASH_ATTENTION_VERSION, FAKE_VLLM_VERSION, FAKE_VLLM_DEVICE_TYPE, FAKE_VLLM_SERVER (the class of the server,
as `module:Class`), FAKE_VLLM_BOOTS (a file that counts the starts: each is then a boot of its own).
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import vllm
from vllm.entrypoints.launchers.cli_args import DEFAULTS, make_arg_parser
from vllm.platforms import current_platform
from vllm.utils.argparse_utils import FlexibleArgumentParser

sys.path.append(str(Path(__file__).resolve().parents[5]))

from fake_vllm import FakeConfig, FakeVllm, config_from_json

_BACKENDS = "['FLASH_ATTN', 'FLASHINFER', 'TRITON_ATTN', 'FLEX_ATTENTION']"
_CHILD_LIFE_S = 600
_LIBRARIES = ("TORCH", "NCCL", "PYTORCH", "CUDA", "CUBLAS", "CUDNN", "OMP_", "MKL_", "NVIDIA")
"""Starts of the variables that /server_info tells. Source: vllm/collect_env.py of 0.32."""


class Program(FakeVllm):
    """Its death is the death of the process, which leaves the child behind."""

    def die(self) -> None:
        say("EngineCore encountered a fatal error.", source="core.py:1012", level="ERROR")
        print("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)


def program_class(env: dict[str, str]) -> type[FakeVllm]:
    """The program's server, with the ways of the class that the environment names."""
    module, _, name = env.get("FAKE_VLLM_SERVER", "").partition(":")
    if not name:
        return Program
    ways: type[FakeVllm] = getattr(importlib.import_module(module), name)
    return type(name, (Program, ways), {})


def say(text: str, *, source: str, level: str = "INFO", pid: int | None = None, process: str = "APIServer") -> None:
    """Print a line in the format of vLLM's log."""
    moment = time.strftime("%m-%d %H:%M:%S")
    print(f"({process} pid={pid or os.getpid()}) {level} {moment} [{source}] {text}", flush=True)


def config_of(args: argparse.Namespace, env: dict[str, str]) -> FakeConfig:
    """The server that arguments and environment describe."""
    folder = Path(args.model)
    facts = _json_file(folder / "config.json")
    sampling = {} if args.generation_config == "vllm" else _json_file(folder / "generation_config.json")
    sampling |= json.loads(args.override_generation_config or "{}")
    flash_version = int(env.get("FAKE_VLLM_FLASH_ATTENTION_VERSION", "3"))
    backend = (args.attention_backend or "FLASH_ATTN").upper()
    keys = args.api_key or [env.get("VLLM_API_KEY")]
    config = FakeConfig(
        served_model_name=(args.served_model_name or [args.model])[0],
        model=args.model,
        weights=args.quantization or "",
        version=vllm.__version__,
        prefix_caching=args.enable_prefix_caching is not False,
        block_size=args.block_size or 16,
        num_gpu_blocks=args.num_gpu_blocks_override or 8192,
        max_num_seqs=args.max_num_seqs or 256,
        batch_invariant=env.get("VLLM_BATCH_INVARIANT", "0") not in ("", "0"),
        attention_backend=backend,
        flash_attn_version=flash_version if backend == "FLASH_ATTN" else None,
        max_model_len=args.max_model_len or facts.get("max_position_embeddings", 8192),
        max_logprobs=args.max_logprobs,
        default_sampling=sampling,
        tool_call_parser=args.tool_call_parser,
        enable_auto_tool_choice=bool(args.enable_auto_tool_choice),
        prompt_tokens_details=bool(args.enable_prompt_tokens_details),
        dtype="bfloat16" if args.dtype == "auto" else args.dtype,
        quantization=args.quantization,
        kv_cache_dtype=args.kv_cache_dtype,
        seed=args.seed,
        enforce_eager=bool(args.enforce_eager),
        device_type=current_platform.device_type,
        env={name: env[name] for name in sorted(env) if name.startswith("VLLM_") and "KEY" not in name},
        library_env={name: env[name] for name in sorted(env) if name.startswith(_LIBRARIES)},
        api_key=keys[0] or None,
        dev_mode=env.get("VLLM_SERVER_DEV_MODE", "0") == "1",
        host=args.host or "127.0.0.1",
        port=args.port,
    )
    config = config_from_json(config, json.loads(env.get("FAKE_VLLM_CONFIG", "{}")))
    if "FAKE_VLLM_BOOTS" in env:
        config = dataclasses.replace(config, boot=_count_start(Path(env["FAKE_VLLM_BOOTS"])))
    changes: dict[str, Any] = {}
    if "FAKE_VLLM_DIE_AFTER_REQUESTS" in env:
        changes["die_after_requests"] = int(env["FAKE_VLLM_DIE_AFTER_REQUESTS"])
    if env.get("FAKE_VLLM_NEVER_HEALTHY") == "503":
        changes["unhealthy"] = True
    return dataclasses.replace(config, faults=dataclasses.replace(config.faults, **changes))


def announce(config: FakeConfig, args: argparse.Namespace, child_pid: int) -> None:
    """Print what vLLM prints between its start and the moment when it listens."""
    set_args = {name: value for name, value in vars(args).items() if value not in (None, False)}
    defaults = {name.removeprefix("--").replace("-", "_"): value for name, value in DEFAULTS.items()}
    shown = {name: value for name, value in set_args.items() if defaults.get(name) != value}
    shown |= {"api_key": "***"} if args.api_key else {}
    say(
        f"vLLM server version {config.version}, serving model {config.model}",
        source="api_utils.py:347",
    )
    say(f"non-default args: {shown}", source="api_utils.py:286")
    facts = f"model={config.model!r}, dtype={config.dtype}, max_seq_len={config.max_model_len}, "
    facts += f"quantization={config.quantization}, enforce_eager={config.enforce_eager}, "
    facts += f"kv_cache_dtype={config.kv_cache_dtype}, enable_prefix_caching={config.prefix_caching}"
    lines = [("core.py:134", f"Initializing a V1 LLM engine (v{config.version}) with config: {facts}")]
    if args.attention_backend:
        lines.append(("cuda.py:446", f"Using {config.attention_backend} backend."))
    else:
        text = f"Using {config.attention_backend} attention backend out of potential backends: {_BACKENDS}."
        lines.append(("cuda.py:507", text))
    if config.attention_backend == "FLASH_ATTN":
        lines.append(("flash_attn.py:1118", f"Using FlashAttention version {config.flash_attn_version}"))
    lines.append(("default_loader.py:384", "Loading weights took 0.01 seconds"))
    tokens = config.num_gpu_blocks * config.block_size
    lines.append(("kv_cache_utils.py:1711", f"GPU KV cache size: {tokens:,} tokens"))
    for source, text in lines:
        say(text, source=source, pid=child_pid, process="EngineCore")


def main() -> None:
    """Start as vLLM starts, serve until a signal, and leave with vLLM's exit codes."""
    args = make_arg_parser(FlexibleArgumentParser(prog="api_server.py")).parse_args()
    args.model = args.model_tag or args.model
    env = dict(os.environ)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    if not Path(args.model).is_dir():
        sys.exit(f"OSError: Can't load the configuration of {args.model!r}: no such folder")
    config = config_of(args, env)
    child = subprocess.Popen(["sleep", str(_CHILD_LIFE_S)])
    if env.get("FAKE_VLLM_IGNORE_SIGTERM"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        announce(config, args, child.pid)
        time.sleep(float(env.get("FAKE_VLLM_START_DELAY_S", "0")))
        if "FAKE_VLLM_EXIT_CODE" in env:
            print(
                env.get("FAKE_VLLM_EXIT_TEXT", "RuntimeError: Engine core initialization failed."),
                file=sys.stderr,
            )
            sys.exit(int(env["FAKE_VLLM_EXIT_CODE"]))
        while env.get("FAKE_VLLM_NEVER_HEALTHY") == "1":
            time.sleep(60)
        say(f"Starting vLLM server on http://{config.host}:{config.port}", source="entry.py:140")
        for text in (f"Started server process [{os.getpid()}]", "Waiting for application startup."):
            print(f"INFO:     {text}", file=sys.stderr, flush=True)
        with program_class(env)(config):
            print("INFO:     Application startup complete.", file=sys.stderr, flush=True)
            while True:
                time.sleep(60)
    finally:
        child.terminate()
        child.wait()


def _leave(number: int, frame: object) -> NoReturn:
    os.write(1, b"Shutting down\n")  # print may be running already: a signal handler must not enter it again.
    sys.exit(0)


def _count_start(path: Path) -> int:
    """Starts before this one."""
    before = int(path.read_text()) if path.is_file() else 0
    path.write_text(str(before + 1))
    return before


def _json_file(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.is_file() else {}


if __name__ == "__main__":
    main()
