"""The engine, the GPUs and their driver: what the engine says of itself, and what `nvidia-smi` adds."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.contract import is_accepted
from agenteval.doctor.check import Check, State, gigabytes
from agenteval.errors import EngineNotFoundError
from agenteval.launch import EngineFacts, capability_text

_QUERY = ("--query-gpu=name,driver_version,memory.total,memory.free", "--format=csv,noheader,nounits")
_QUERY_TIMEOUT_S = 20.0
_MIB = 2**20
_ENGINE_SHARE = 0.9
"""Of a GPU's memory: what vLLM takes where no contract says otherwise, and refuses to start without.

Source: `gpu_memory_utilization` in vLLM's engine arguments.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU as `nvidia-smi` lists it."""

    name: str
    driver_version: str
    total_bytes: int | None
    free_bytes: int | None
    """None where the driver does not tell it."""


def read_cards() -> tuple[Card, ...]:
    """The GPUs that a program started here may use; none where there is no `nvidia-smi`, or it fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        answer = subprocess.run(
            [program, *_QUERY], capture_output=True, text=True, errors="replace", timeout=_QUERY_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    cards = [_card(line) for line in answer.stdout.splitlines() if line.count(",") == 3]
    return tuple(_visible(cards, os.environ.get("CUDA_VISIBLE_DEVICES")))


def _card(line: str) -> Card:
    name, driver, total, free = (part.strip() for part in line.split(","))
    return Card(name=name, driver_version=driver, total_bytes=_mib(total), free_bytes=_mib(free))


def _mib(text: str) -> int | None:
    return int(text) * _MIB if text.isdecimal() else None


def _visible(cards: Sequence[Card], chosen: str | None) -> Iterator[Card]:
    """The cards that CUDA_VISIBLE_DEVICES leaves, in its order; all where it names them in another way."""
    places = None if chosen is None else [part.strip() for part in chosen.split(",") if part.strip()]
    if places is None or not all(place.isdecimal() for place in places):
        yield from cards
        return
    yield from (cards[int(place)] for place in places if int(place) < len(cards))


def engine_check(engine: EngineFacts | EngineNotFoundError, accepted: str, cards: Sequence[Card]) -> Check:
    """Whether there is a vLLM of a version that the built-in contracts accept.

    Args:
        engine: Its facts, or why there are none.
        accepted: Versions, as a PEP 440 specifier.
        cards: The GPUs, which decide what to install.
    """
    if isinstance(engine, EngineNotFoundError):
        return _no_engine(engine, accepted, cards)
    cuda = "no CUDA" if engine.cuda_version is None else f"CUDA {engine.cuda_version}"
    place = "this Python" if engine.python == Path(sys.executable) else engine.python
    found = f"vLLM {engine.vllm_version}, torch {engine.torch_version}, {cuda}, in {place}"
    if is_accepted(engine.vllm_version, accepted):
        return Check(name="engine", found=found)
    return Check(
        name="engine",
        state=State.WARNING,
        found=f"{found}; the built-in contracts accept {accepted}",
        to_do="Install such a version, or write a contract that sets engine.version.",
        command=_install(engine.python, f"vllm{accepted}") if engine.device == "cuda" else None,
    )


def _no_engine(error: EngineNotFoundError, accepted: str, cards: Sequence[Card]) -> Check:
    other = f"name a Python that has vLLM {accepted} with AGENTEVAL_ENGINE_PYTHON."
    if error.python != Path(sys.executable):
        to_do, command = f"Mend it, or {other}", None
    elif cards:
        to_do, command = f"Install it, or {other}", _install(error.python, f"vllm{accepted}")
    else:
        to_do, command = f"In a checkout, install the CPU build, or {other}", "make env"
    found = f"no usable vLLM in {error.python}: {error.reason}"
    return Check(name="engine", state=State.MISSING, found=found, to_do=to_do, command=command)


def _install(python: Path, requirement: str) -> str:
    return shlex.join([str(python), "-m", "pip", "install", requirement])


def gpu_check(facts: EngineFacts | None, cards: Sequence[Card]) -> Check:
    """Whether the engine uses the GPUs that are here, and has room on them."""
    names = ", ".join(dict.fromkeys(card.name for card in cards))
    if facts is None:
        return Check(name="gpu", found=names or "none that nvidia-smi shows")
    if facts.device == "cpu" and cards:
        return Check(
            name="gpu",
            state=State.WARNING,
            found=f"{names} is here, and the engine is a build for the CPU",
            to_do="Install vllm for NVIDIA GPUs in another environment and name it with AGENTEVAL_ENGINE_PYTHON.",
        )
    if facts.device != "cuda":
        return Check(name="gpu", found=f"none: the engine runs on the {facts.device.upper()}")
    if not facts.gpus:
        return Check(
            name="gpu",
            state=State.MISSING,
            found="torch sees none, and the engine is a build for NVIDIA GPUs",
            to_do="Look at nvidia-smi and CUDA_VISIBLE_DEVICES; the driver may be too old for this CUDA.",
            command="nvidia-smi",
        )
    return _room_check(facts, cards)


def _room_check(facts: EngineFacts, cards: Sequence[Card]) -> Check:
    gpu = facts.gpus[0]
    count = f"{len(facts.gpus)} x " if len(facts.gpus) > 1 else ""
    found = f"{count}{gpu.name}, {gigabytes(gpu.memory_bytes)}, compute capability {capability_text(gpu.capability)}"
    # Which card of nvidia-smi is torch's first is only certain where both list as many.
    free_bytes = cards[0].free_bytes if len(cards) == len(facts.gpus) else None
    if free_bytes is None:
        return Check(name="gpu", found=found)
    found = f"{found}, {gigabytes(free_bytes)} free"
    if free_bytes >= _ENGINE_SHARE * gpu.memory_bytes:
        return Check(name="gpu", found=found)
    return Check(
        name="gpu",
        state=State.WARNING,
        found=f"{found}; the engine wants {_ENGINE_SHARE:.0%} of it",
        to_do="End what else uses the GPU (nvidia-smi shows it), or set engine.gpu_memory_utilization in a contract.",
    )


def driver_check(facts: EngineFacts | None, cards: Sequence[Card]) -> Check:
    """The GPU's driver, where one is needed."""
    version = (facts.driver_version if facts is not None else None) or next(
        (card.driver_version for card in cards), None
    )
    if version is not None:
        return Check(name="driver", found=f"NVIDIA {version}")
    if facts is None or facts.device != "cuda":
        return Check(name="driver", found="none: only a GPU needs one")
    return Check(
        name="driver",
        state=State.WARNING,
        found="nvidia-smi does not tell its version, so runs are recorded without it",
        to_do="Put nvidia-smi on PATH.",
    )
