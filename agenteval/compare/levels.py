"""What two trajectories must agree in, level by level; pure over records.

Levels nest: equal logprobs mean equal tokens, equal tokens mean equal calls, and so on. Times, waiting and ids never
matter. Whether an episode passed is one of the levels, so what its grades come to is said here too; what a check asks
is not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agenteval.compare.model import Trajectory
from agenteval.digest import canonical_json
from agenteval.records import Divergence, EpisodePlan, Grade, Level, ToolCall, Turn

ORDER = (Level.LOGPROBS, Level.TOKENS, Level.CALLS, Level.TOOLS, Level.OUTCOME)
"""Strictest first."""
_EXACT = 2**53
"""Floats from here on no longer tell every whole number from its neighbours."""

VIEWS: Mapping[Level, Callable[[Trajectory], Any]] = {
    Level.OUTCOME: lambda item: item.passed,
    Level.TOOLS: lambda item: [call.tool for turn in item.turns for call in turn.tool_calls],
    Level.CALLS: lambda item: [call_asked(call) for turn in item.turns for call in turn.tool_calls],
    Level.TOKENS: lambda item: [turn.output_ids for turn in item.turns],
    Level.LOGPROBS: lambda item: [token_rows(turn) for turn in item.turns],
}
"""Level to what must be equal there."""


def level_of(a: Trajectory, b: Trajectory) -> Level | None:
    """The loosest level at which two trajectories differ; None where they agree in every bit."""
    return next((level for level in reversed(ORDER) if VIEWS[level](a) != VIEWS[level](b)), None)


def differs_at(divergence: Divergence, level: Level) -> bool:
    """Whether two trajectories count as different under a level."""
    return ORDER.index(divergence.level) >= ORDER.index(level)


def has_passed(grades: Sequence[Grade]) -> bool | None:
    """Whether all checks passed; None where one could not be evaluated or there is none."""
    if not grades or any(grade.passed is None for grade in grades):
        return None
    return all(grade.passed for grade in grades)


def passed_by_episode(grades: Iterable[Grade]) -> dict[str, bool | None]:
    """Episode id to whether it passed; an episode without grades is left out.

    Args:
        grades: In any order.
    """
    groups: dict[str, list[Grade]] = {}
    for grade in grades:
        groups.setdefault(grade.episode_id, []).append(grade)
    return {episode_id: has_passed(group) for episode_id, group in groups.items()}


def sample_of(plan: EpisodePlan) -> tuple[str, str, int]:
    """What repeats have in common: task, variant and sample."""
    return plan.task, plan.variant, plan.sample


def canonical_arguments(text: str) -> str:
    """Tool arguments with key order and number form settled; text that is no JSON, or repeats a key, stays as it is."""
    try:
        return canonical_json(_settle_numbers(json.loads(text, object_pairs_hook=_once)))
    except (ValueError, RecursionError):
        return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; which of two equal keys counts is not ours to say."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _settle_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: _settle_numbers(item) for key, item in value.items()}
    return [_settle_numbers(item) for item in value] if isinstance(value, list) else value


def token_rows(turn: Turn) -> list[tuple[int, float, str | None, float | None]]:
    """What stands at each token of a turn's output: its id and logprob, the runner-up's text and logprob."""
    columns = (turn.output_ids, turn.logprobs, turn.runner_up_tokens, turn.runner_up_logprobs)
    return list(zip(*columns, strict=True))


def call_asked(call: ToolCall) -> tuple[str, str]:
    """What a tool was asked: its name and its arguments in their one form."""
    return call.tool, canonical_arguments(call.arguments)


def call_answered(call: ToolCall) -> tuple[str, str | None]:
    """What a tool gave back, and why it refused or failed."""
    return call.result, call.error


def calls_made(turn: Turn) -> list[tuple[tuple[str, str], tuple[str, str | None]]]:
    """What the tools of a turn were asked and gave back."""
    return [(call_asked(call), call_answered(call)) for call in turn.tool_calls]


def first_difference(a: Sequence[Any], b: Sequence[Any]) -> int | None:
    """Place of the first item that differs; the shorter length where one begins the other, None where equal."""
    length = min(len(a), len(b))
    place = next((place for place in range(length) if a[place] != b[place]), length)
    return None if place == len(a) == len(b) else place
