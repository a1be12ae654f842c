"""Expected calls -> the checks on calls of the task language, and texts that must stand as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval import expressions

MAX_EXPECTED_CALLS = 1_000
"""A task that expects more is left out: each call is compared with each, and no episode makes as many."""
TOO_MANY_CALLS = f"it expects more than {MAX_EXPECTED_CALLS:,} calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCall:
    """A call that a benchmark expects."""

    tool: str
    arguments: dict[str, Any]
    """Those that must be equal."""

    def covers(self, other: ExpectedCall) -> bool:
        """Whether every call that satisfies the other one satisfies this one too."""
        return self.tool == other.tool and expressions.has_all(other.arguments, self.arguments)


def called_checks(calls: Sequence[ExpectedCall], *, is_counted: bool) -> list[dict[str, Any]]:
    """One `called` check for each distinct call.

    Args:
        calls: All expected calls, in order.
        is_counted: Whether a call that is expected twice must be made twice. A check then also counts the calls with
            more arguments that satisfy it, since the calls of an episode are counted in the same way.
    """
    checks = []
    for place, call in enumerate(calls):
        if any(call.covers(other) and other.covers(call) for other in calls[:place]):
            continue
        check: dict[str, Any] = {"kind": "called", "tool": call.tool}
        if call.arguments:
            check["arguments"] = without_templates(call.arguments)
        times = sum(map(call.covers, calls)) if is_counted else 1
        if times > 1:
            check["at_least"] = times
        checks.append(check)
    return checks


def without_templates(value: Any) -> Any:
    """A JSON value in whose texts `${` stands for itself and starts no expression."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {key: without_templates(item) for key, item in value.items()}
    return [without_templates(item) for item in value] if isinstance(value, list) else value
