"""What an installed engine says of itself and of its machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator."""

    name: str
    capability: tuple[int, int]
    """CUDA compute capability, such as (9, 0) for Hopper."""
    memory_bytes: int


def capability_text(capability: tuple[int, int]) -> str:
    """A compute capability as it is written, such as `9.0`."""
    return ".".join(map(str, capability))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """One installed vLLM, as its own interpreter reports it."""

    python: Path
    """The interpreter that runs the server."""
    vllm_version: str
    torch_version: str
    cuda_version: str | None
    driver_version: str | None
    device: str
    """vLLM's platform: `cuda`, `cpu`, …"""
    gpus: tuple[Gpu, ...]
    cpu_model: str
    cpus: tuple[int, ...]
    """Logical processors that the server may use."""
    flags: frozenset[str]
    """Options that the server's parser knows."""
    variables: frozenset[str]
    """VLLM_* variables that the engine reads."""
    quantizations: frozenset[str]
    """Quantisation methods that this build has; empty where it would not say."""
    has_flashinfer: bool
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Option to the values that it takes; absent where the build does not list them."""

    def as_json(self) -> dict[str, Any]:
        """The facts that name the engine and the machine, without the lists of what they know."""
        fields = asdict(self)
        for name in ("python", "flags", "variables", "quantizations", "values"):
            del fields[name]
        fields["gpus"] = [{**gpu, "capability": list(gpu["capability"])} for gpu in fields["gpus"]]
        fields["cpus"] = list(fields["cpus"])
        return fields
