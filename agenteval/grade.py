"""Whether the end state, the answer and the calls of an episode satisfy the task's checks.

Pure over what happened. A check that cannot be evaluated gives None, never a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval import expressions
from agenteval.compare import has_passed as has_passed
from agenteval.digest import canonical_json
from agenteval.records import Episode, Grade, ToolCall
from agenteval.spec import (
    AnswerCheck,
    CalledCheck,
    Check,
    NotCalledCheck,
    OrderCheck,
    TurnsCheck,
    WorldCheck,
)

MAX_ANSWER_CHARACTERS = 20_000
"""Patterns see no more of an answer, so that their cost is bounded."""
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d{1,3})?|[-+]?\.\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    passed: bool
    reason: str


def grade_episode(checks: Sequence[Check], episode: Episode, calls: Sequence[ToolCall]) -> tuple[Grade, ...]:
    """Judge a finished episode by each of its task's checks.

    Args:
        checks: The task variant's checks.
        episode: How the attempt ended.
        calls: All its tool calls, in order.
    """
    return tuple(_grade(index, check, episode, calls) for index, check in enumerate(checks))


def _grade(index: int, check: Check, episode: Episode, calls: Sequence[ToolCall]) -> Grade:
    passed: bool | None
    try:
        finding = _JUDGES[type(check)](check, episode, calls)
        passed, reason = finding.passed, finding.reason
    except expressions.ExpressionError as error:
        passed, reason = None, f"not graded: {error}"
    return Grade(
        run_id=episode.plan.run_id,
        episode_id=episode.plan.episode_id,
        check=index,
        kind=check.kind,
        passed=passed,
        reason=reason,
        weight=check.weight,
    )


def _judge_answer(check: AnswerCheck, episode: Episode, _calls: Sequence[ToolCall]) -> _Finding:
    if episode.answer is None:
        return _Finding(passed=False, reason=f"no answer; the episode ended by {episode.stop_reason}")
    answer = episode.answer[:MAX_ANSWER_CHARACTERS]
    shown = repr(answer if len(answer) <= 200 else answer[:200] + "…")
    missing = [text for text in check.contains if text.casefold() not in answer.casefold()]
    if missing:
        return _Finding(passed=False, reason=f"the answer {shown} lacks {', '.join(map(repr, missing))}")
    if check.pattern is not None and not expressions.pattern_matches(check.pattern, answer):
        return _Finding(passed=False, reason=f"the answer {shown} does not match {check.pattern!r}")
    if check.number is not None and not _has_number(answer, check.number, check.tolerance):
        return _Finding(
            passed=False,
            reason=f"the answer {shown} has no number within {check.tolerance} of {check.number}",
        )
    return _Finding(passed=True, reason=f"the answer is {shown}")


def _has_number(answer: str, number: float, tolerance: float) -> bool:
    # A last digit's rounding in binary must not fail an answer that is right in decimal.
    slack = tolerance + 1e-9 * max(1.0, abs(number))
    return any(abs(float(text.replace(",", "")) - number) <= slack for text in _NUMBER.findall(answer))


def _judge_world(check: WorldCheck, episode: Episode, _calls: Sequence[ToolCall]) -> _Finding:
    names = {"world": episode.world, "answer": episode.answer or ""}
    passed = expressions.evaluate_condition(check.that, names)
    world = canonical_json(episode.world)
    shown = world if len(world) <= 400 else world[:400] + "…"
    return _Finding(passed=passed, reason=f"{check.that} is {str(passed).lower()} in {shown}")


def _judge_called(check: CalledCheck, _episode: Episode, calls: Sequence[ToolCall]) -> _Finding:
    count = sum(
        call.tool == check.tool and call.error is None and _has_arguments(call, check.arguments) for call in calls
    )
    passed = count >= check.at_least and (check.at_most is None or count <= check.at_most)
    wanted = f"at least {check.at_least}" + ("" if check.at_most is None else f", at most {check.at_most}")
    how = f" with {canonical_json(check.arguments)}" if check.arguments else ""
    return _Finding(passed=passed, reason=f"{check.tool}{how} succeeded {count} times; wanted {wanted}")


def _judge_not_called(check: NotCalledCheck, _episode: Episode, calls: Sequence[ToolCall]) -> _Finding:
    count = sum(call.tool == check.tool for call in calls)
    return _Finding(passed=count == 0, reason=f"{check.tool} was called {count} times; wanted never")


def _judge_order(check: OrderCheck, _episode: Episode, calls: Sequence[ToolCall]) -> _Finding:
    made = [call.tool for call in calls if call.error is None]
    remaining = iter(made)
    passed = all(tool in remaining for tool in check.tools)
    return _Finding(passed=passed, reason=f"successful calls were {made}; wanted in order {list(check.tools)}")


def _judge_turns(check: TurnsCheck, episode: Episode, _calls: Sequence[ToolCall]) -> _Finding:
    return _Finding(
        passed=episode.turns <= check.at_most, reason=f"{episode.turns} turns; wanted at most {check.at_most}"
    )


def _has_arguments(call: ToolCall, wanted: dict[str, Any]) -> bool:
    given = json.loads(call.arguments or "{}")
    return all(key in given and expressions.is_same(given[key], value) for key, value in wanted.items())


_JUDGES: dict[type, Callable[[Any, Episode, Sequence[ToolCall]], _Finding]] = {
    AnswerCheck: _judge_answer,
    WorldCheck: _judge_world,
    CalledCheck: _judge_called,
    NotCalledCheck: _judge_not_called,
    OrderCheck: _judge_order,
    TurnsCheck: _judge_turns,
}
