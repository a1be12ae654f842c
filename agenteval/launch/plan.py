"""The server's command line, clause by clause."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Set
from dataclasses import dataclass

from agenteval.contract import Contract, builtin_names, is_accepted, load_contract
from agenteval.errors import UnsupportedClauseError
from agenteval.launch.facts import EngineFacts, capability_text
from agenteval.records import Model
from agenteval.words import nearest

MODULE = "vllm.entrypoints.openai.api_server"
"""Started as a module: the `vllm` script looks for a distribution of that name, which the CPU build is not."""
INVARIANT_CAPABILITY = (8, 0)
"""Batch-invariant kernels need CUDA compute capability 8.0. Source: vLLM's batch invariance documentation."""
INVARIANT_BACKENDS = ("TRITON_ATTN",)
"""Attention backends measured bit-exact under any batch; FlashAttention 3 is not (DECISIONS 7)."""
GIB = 2**30
CPU_KV_CACHE_BYTES = 2 * GIB
"""KV cache on a CPU where the contract names none; the engine's own default is half of the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """How to start the server; the port and the key are the boot's, not the contract's."""

    argv: tuple[str, ...]
    """After the interpreter; without `--port`."""
    env: dict[str, str]
    """Set for the server, over the inherited environment without its VLLM_* variables."""

    def command(self) -> str:
        """The plan as a person would type it."""
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(self.env.items()))
        return f"{variables} python {shlex.join(self.argv)}"


def plan_launch(contract: Contract, model: Model, facts: EngineFacts) -> LaunchPlan:
    """The one way to start this contract with this model on this engine.

    Raises:
        UnsupportedClauseError: If the engine or the machine cannot honour a field.
    """
    reasons = [*unsupported(contract, facts), *_model_reasons(contract, model)]
    argv = (*_arguments(contract, model, facts), *contract.engine.extra_args)
    unknown = [argument for argument in _flags(argv) if argument not in facts.flags]
    reasons += [f"engine: vLLM {facts.vllm_version} has no option {flag}" for flag in unknown]
    reasons += _value_reasons(argv, facts)
    if reasons:
        clauses = {reason.partition(":")[0] for reason in reasons}
        raise UnsupportedClauseError(contract=contract.name, reasons=reasons, advice=advice(contract, facts, clauses))
    return LaunchPlan(argv=argv, env=_environment(contract, facts))


def unsupported(contract: Contract, facts: EngineFacts) -> list[str]:
    """Why this engine on this machine cannot keep the contract, one clause a line; empty where it can."""
    return [*_engine_reasons(contract, facts), *_batching_reasons(contract, facts)]


def _value_reasons(argv: tuple[str, ...], facts: EngineFacts) -> Iterator[str]:
    """Values that the engine would refuse, or read as something else, only after its start."""
    for flag, value in itertools.pairwise(argv):
        known = facts.values.get(flag)
        if known is not None and value not in known:
            yield f"engine: vLLM {facts.vllm_version} does not take {value!r} for {flag}.{nearest(value, known)}"


def _model_reasons(contract: Contract, model: Model) -> Iterator[str]:
    """Agents call tools, and vLLM reads a model's calls only with the parser for the way in which it writes them."""
    if model.tool_call_parser is None and "--tool-call-parser" not in _flags(contract.engine.extra_args):
        yield (
            f"engine: no tool-call parser is known for {model.name}; name vLLM's in engine.extra_args: "
            "[--enable-auto-tool-choice, --tool-call-parser, NAME]"
        )


def _engine_reasons(contract: Contract, facts: EngineFacts) -> Iterator[str]:
    engine = contract.engine
    if not is_accepted(facts.vllm_version, engine.version):
        yield f"engine: vLLM {facts.vllm_version} is installed, the contract accepts {engine.version}"
    if engine.quantization and facts.quantizations and engine.quantization not in facts.quantizations:
        yield f"engine: this build has no quantization {engine.quantization!r}"
    if engine.quantization == "fp8" and _dtype(contract, facts) == "float32":
        yield "engine: quantization 'fp8' needs dtype bfloat16 or float16; auto is float32 on a CPU"
    if facts.device == "cpu" and engine.attention_backend is not None:
        yield f"engine: attention backend {engine.attention_backend} needs a GPU, and this engine runs on the CPU"
    if facts.device == "cpu" and engine.gpu_memory_utilization is not None:
        yield "engine: gpu_memory_utilization needs a GPU, and this engine runs on the CPU"
    if facts.device == "cpu" and (engine.kv_cache_memory_bytes or 0) % GIB:
        yield (
            f"engine: kv_cache_memory_bytes is {engine.kv_cache_memory_bytes}; on a CPU the engine takes whole GiB "
            f"only, such as {GIB}"
        )
    yield from _argument_reasons(contract)
    for name in sorted(engine.env):
        if name.startswith("VLLM_") and facts.variables and name not in facts.variables:
            yield f"engine: vLLM {facts.vllm_version} reads no variable {name}"
        if name in _FIXED_VARIABLES:
            yield f"engine: env sets {name}, which a clause decides; change the clause"


def _argument_reasons(contract: Contract) -> Iterator[str]:
    arguments = contract.engine.extra_args
    if arguments and not arguments[0].startswith("-"):
        yield f"engine: extra_args starts with {arguments[0]!r}, which is no option"
    for argument in arguments:
        if _SHORT_FLAG.match(argument):
            yield f"engine: extra_args has {argument}; write the option's long name, so that it can be checked"
    for flag in _flags(arguments):
        if flag.replace("--no-", "--", 1) in _CLAUSE_FLAGS:
            yield f"engine: extra_args has {flag}, which a clause decides; change the clause"
        if flag == "--config":
            yield "engine: extra_args has --config, a file that could set any clause's option; write its options out"
        if flag in _SPECULATIVE_FLAGS and contract.batching.mode != "free":
            yield f"engine: {flag} (speculative decoding) is only accepted where batching is free"
        if flag in _OUTER_CACHE_FLAGS and contract.cache.mode != "shared":
            yield f"engine: {flag} keeps a second KV cache, which is only accepted where the cache is shared"


def _batching_reasons(contract: Contract, facts: EngineFacts) -> Iterator[str]:
    if contract.batching.mode != "invariant":
        return
    if facts.device != "cuda":
        yield f"batching: batch-invariant kernels need an NVIDIA GPU, and this engine runs on {facts.device}"
        return
    if facts.variables and "VLLM_BATCH_INVARIANT" not in facts.variables:
        yield f"batching: vLLM {facts.vllm_version} has no batch-invariant mode"
    # The first is the one that a server without further arguments runs on.
    for gpu in facts.gpus[:1]:
        if gpu.capability < INVARIANT_CAPABILITY:
            has, needed = capability_text(gpu.capability), capability_text(INVARIANT_CAPABILITY)
            yield f"batching: {gpu.name} has compute capability {has}, {needed} is needed"
    if contract.engine.compilation == "eager":
        yield "batching: batch-invariant kernels were measured to depend on the batch where nothing is compiled (eager)"
    if contract.engine.attention_backend not in INVARIANT_BACKENDS:
        named = contract.engine.attention_backend or "the engine's choice"
        yield (
            f"batching: attention backend {named} is not known to be batch-invariant; "
            f"known are {', '.join(INVARIANT_BACKENDS)}"
        )


def _arguments(contract: Contract, model: Model, facts: EngineFacts) -> Iterator[str]:
    engine = contract.engine
    yield from ("-m", MODULE)
    yield from ("--model", str(model.folder))
    yield from ("--served-model-name", model.name)
    yield from ("--host", "127.0.0.1")
    # The model's own generation_config.json would otherwise fill in sampling fields silently.
    yield from ("--generation-config", "vllm")
    yield from ("--seed", str(contract.sampling.seed))
    yield from ("--max-model-len", str(engine.max_model_len))
    yield from ("--dtype", _dtype(contract, facts))
    yield from ("--kv-cache-dtype", engine.kv_cache_dtype)
    yield "--no-enable-prefix-caching" if contract.cache.mode == "disabled" else "--enable-prefix-caching"
    yield "--enable-prompt-tokens-details"
    if contract.batching.mode != "free":
        yield from ("--max-num-seqs", str(contract.batching.concurrency))
    if _is_eager(contract, facts):
        yield "--enforce-eager"
    for flag, value in (
        ("--quantization", engine.quantization),
        ("--attention-backend", engine.attention_backend),
        ("--gpu-memory-utilization", engine.gpu_memory_utilization),
        ("--kv-cache-memory-bytes", engine.kv_cache_memory_bytes if facts.device != "cpu" else None),
    ):
        if value is not None:
            yield from (flag, str(value))
    if model.tool_call_parser is not None:
        yield from ("--enable-auto-tool-choice", "--tool-call-parser", model.tool_call_parser)


def _environment(contract: Contract, facts: EngineFacts) -> dict[str, str]:
    variables = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": "INFO",
        # Opens /server_info and /reset_prefix_cache, which the evidence rests on; the server listens on loopback.
        "VLLM_SERVER_DEV_MODE": "1",
    }
    if contract.batching.mode == "invariant":
        variables["VLLM_BATCH_INVARIANT"] = "1"
    if facts.device == "cpu":
        size = contract.engine.kv_cache_memory_bytes or CPU_KV_CACHE_BYTES
        variables["VLLM_CPU_KVCACHE_SPACE"] = str(size // GIB)
        # The engine's default keeps one core back, which on two cores costs a third of the speed.
        variables["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(str(cpu) for cpu in facts.cpus)
    elif not facts.has_flashinfer:
        variables["VLLM_USE_FLASHINFER_SAMPLER"] = "0"
    return {**variables, **contract.engine.env}


def _dtype(contract: Contract, facts: EngineFacts) -> str:
    if contract.engine.dtype != "auto":
        return contract.engine.dtype
    # bfloat16 is emulated on most CPUs and five times slower there.
    return "float32" if facts.device == "cpu" else "bfloat16"


def _is_eager(contract: Contract, facts: EngineFacts) -> bool:
    compilation = contract.engine.compilation
    return compilation == "eager" or (compilation == "auto" and facts.device == "cpu")


def _flags(argv: tuple[str, ...]) -> list[str]:
    """The options among arguments; vLLM's parser takes underscores for dashes, and so does this."""
    return [argument.split("=", 1)[0].replace("_", "-") for argument in argv if argument.startswith("--")]


def advice(contract: Contract, facts: EngineFacts | None, clauses: Set[str]) -> str:
    """What to do where a contract cannot be kept: the built-in ones that can, and differ in what is in the way.

    Args:
        contract: The one that cannot.
        facts: Of the engine; None where someone else runs the server.
        clauses: Names of the clauses that cannot be kept.
    """
    built_in = [load_contract(name).contract for name in builtin_names()]
    able = [
        other.name
        for other in sorted(built_in, key=lambda other: other.repeats.agree == "measured")
        if any(getattr(other, clause) != getattr(contract, clause) for clause in clauses)
        and not (facts and unsupported(other, facts))
    ]
    change = "Change the fields named above in a contract that extends this one"
    if not able:
        return f"{change}; no built-in contract gets around them."
    return f"{change}, or take one that works here with --contract: {', '.join(able)}."


_CLAUSE_FLAGS = frozenset(
    {
        "--model",
        "--served-model-name",
        "--host",
        "--port",
        "--api-key",
        "--generation-config",
        "--seed",
        "--max-model-len",
        "--dtype",
        "--kv-cache-dtype",
        "--enable-prefix-caching",
        "--enable-prompt-tokens-details",
        "--max-num-seqs",
        "--enforce-eager",
        "--quantization",
        "--attention-backend",
        # What follows would put another model, or another rendering of it, under the digest of the one named.
        "--chat-template",
        "--trust-request-chat-template",
        "--compilation-config",
        "--enable-lora",
        "--hf-config-path",
        "--hf-overrides",
        "--load-format",
        "--lora-modules",
        "--optimization-level",
        "--revision",
        "--tokenizer",
        "--tokenizer-revision",
        "--code-revision",
        "--config-format",
        "--tokenizer-mode",
        "--gpu-memory-utilization",
        "--device-memory-utilization",
        "--kv-cache-memory-bytes",
        "--attention-config",
        "--override-generation-config",
    }
)
"""Options that a contract sets by its clauses, or that would go round one; their `--no-` forms too."""
_SPECULATIVE_FLAGS = frozenset({"--speculative-config", "--spec-method", "--spec-model", "--spec-tokens"})
"""A drafting model's guesses decide in which pieces tokens are computed, so company shows in the numbers."""
_OUTER_CACHE_FLAGS = frozenset({"--kv-transfer-config", "--kv-offloading-size", "--kv-offloading-backend"})
"""Options for a KV cache beside the engine's own, which neither salts nor `--no-enable-prefix-caching` need reach."""
_SHORT_FLAG = re.compile(r"-[A-Za-z]")
_FIXED_VARIABLES = frozenset({"VLLM_BATCH_INVARIANT", "VLLM_SERVER_DEV_MODE", "VLLM_CPU_KVCACHE_SPACE"})
"""Variables that a clause or the evidence decides."""
