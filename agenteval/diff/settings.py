"""How two runs were set otherwise: what could explain that their trajectories differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agenteval.contract import differences
from agenteval.judge import contract_of
from agenteval.log import printable
from agenteval.records import Run

_LOCKED = {
    "engine": ("vllm", "torch", "cuda", "device"),
    "machine": ("driver", "cpu"),
}
"""Section of a lock to the fields in which an engine or a machine may compute otherwise."""
_NO_CAUSE = frozenset({"repeats.count", "repeats.level", "repeats.agree", "boot.mode", "engine.start_timeout_s"})
"""Contract fields that say what is compared or accepted, and reach no request."""


def settings_of(a: Run, b: Run) -> tuple[str, ...]:
    """Every recorded setting in which two runs differ and which could change an answer, each as one phrase."""
    return tuple(_settings(a, b))


def _settings(a: Run, b: Run) -> Iterator[str]:
    if a.model_digest != b.model_digest:
        yield f"model: {printable(a.model)} against {printable(b.model)}"
    if a.agent != b.agent:
        yield f"agent: {printable(a.agent)} against {printable(b.agent)}"
    locks = [run.facts.get("lock") or {} for run in (a, b)]
    for section, fields in _LOCKED.items():
        for field in fields:
            left, right = ((lock.get(section) or {}).get(field) for lock in locks)
            if left != right:
                yield f"{section} {field}: {_shown(left)} against {_shown(right)}"
    names = [[gpu.get("name") for gpu in (lock.get("machine") or {}).get("gpus", ())] for lock in locks]
    if names[0] != names[1]:
        yield f"GPUs: {_shown(names[0])} against {_shown(names[1])}"
    for field, (left, right) in differences(contract_of(a), contract_of(b)).items():
        if field not in _NO_CAUSE:
            yield f"{field}: {_shown(left)} against {_shown(right)}"


def _shown(value: Any) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value))
