"""Where a run's numbers come from, in words: the engine and the machine, as its record names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.records import Boot, Run

_GIB = 2**30


def engine_text(run: Run, boots: list[Boot]) -> str:
    """The engine with what it computes by; for someone else's server, what it said of itself."""
    engine = _section(run, "engine")
    if engine:
        named = (("vLLM", "vllm"), ("torch", "torch"), ("CUDA", "cuda"))
        told = [f"{name} {engine[field]}" for name, field in named if engine.get(field)]
        return ", ".join([*told, *([str(engine["device"])] if engine.get("device") else [])])
    versions = dict.fromkeys(str(boot.facts["version"]) for boot in boots if boot.facts.get("version"))
    said = f"version {', '.join(versions)}" if versions else "version not known"
    return f"someone else's server, {said}" if any(not boot.is_managed for boot in boots) else said


def machine_text(run: Run) -> str:
    """GPUs, driver and processor."""
    machine = _section(run, "machine")
    gpus = [_gpu(gpu) for gpu in machine.get("gpus") or () if isinstance(gpu, Mapping)]
    told = [f"{gpus.count(gpu)} of {gpu}" if gpus.count(gpu) > 1 else gpu for gpu in dict.fromkeys(gpus)]
    if machine.get("driver"):
        told.append(f"driver {machine['driver']}")
    if machine.get("cpu"):
        told.append(f"{machine['cpu']}, {machine.get('processors', 'some')} processors")
    return "; ".join(told) or "not known: someone else's, or not recorded"


def _gpu(gpu: Mapping[str, Any]) -> str:
    memory = gpu.get("memory_bytes")
    return f"{gpu.get('name')}, {memory / _GIB:.0f} GiB" if isinstance(memory, int) else str(gpu.get("name"))


def _section(run: Run, name: str) -> Mapping[str, Any]:
    """A section of the run's lock; empty where the run has none, as on someone else's server."""
    lock = run.facts.get("lock")
    section = lock.get(name) if isinstance(lock, Mapping) else None
    return section if isinstance(section, Mapping) else {}
