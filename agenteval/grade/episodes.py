"""All checks of a task, on one episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agenteval.expressions import ExpressionError
from agenteval.grade.answers import judge_answer
from agenteval.grade.calls import judge_called, judge_function, judge_not_called, judge_order, judge_together
from agenteval.grade.played import Finding, Played
from agenteval.grade.worlds import judge_unchanged, judge_world
from agenteval.records import Grade
from agenteval.spec import (
    AnswerCheck,
    CalledCheck,
    Check,
    FunctionCheck,
    NotCalledCheck,
    OrderCheck,
    TaskVariant,
    TogetherCheck,
    TokensCheck,
    TurnsCheck,
    UnchangedCheck,
    WorldCheck,
)


def grade_episode(variant: TaskVariant, played: Played) -> tuple[Grade, ...]:
    """Judge a finished episode by each of its task's checks.

    Args:
        variant: What was attempted.
        played: How the attempt went.
    """
    grades = tuple(_grade(index, check, variant, played) for index, check in enumerate(variant.checks))
    broken = next((call.error for _, call in played.calls if call.is_broken), None)
    if broken is None:
        return grades
    # What the agent was told is no answer of the tool's, so that what follows is not the agent's failure.
    return tuple(
        replace(grade, passed=None, reason=f"not graded: {broken}") if grade.passed is False else grade
        for grade in grades
    )


def _grade(index: int, check: Check, variant: TaskVariant, played: Played) -> Grade:
    passed: bool | None
    try:
        finding = _JUDGES[type(check)](check, variant, played)
        passed, reason = finding.passed, finding.reason
    except ExpressionError as error:
        passed, reason = None, f"not graded: {error}"
    return Grade(
        run_id=played.run_id,
        episode_id=played.episode_id,
        check=index,
        kind=check.kind,
        passed=passed,
        reason=reason,
        weight=check.weight,
    )


def _judge_turns(check: TurnsCheck, _variant: TaskVariant, played: Played) -> Finding:
    turns = played.turns
    return Finding(passed=turns <= check.at_most, reason=f"{turns} turns; wanted at most {check.at_most}")


def _judge_tokens(check: TokensCheck, _variant: TaskVariant, played: Played) -> Finding:
    return Finding(
        passed=played.output_tokens <= check.at_most,
        reason=f"{played.output_tokens} output tokens; wanted at most {check.at_most}",
    )


_JUDGES: dict[type, Callable[[Any, TaskVariant, Played], Finding]] = {
    AnswerCheck: judge_answer,
    WorldCheck: judge_world,
    UnchangedCheck: judge_unchanged,
    CalledCheck: judge_called,
    NotCalledCheck: judge_not_called,
    OrderCheck: judge_order,
    TogetherCheck: judge_together,
    TurnsCheck: _judge_turns,
    TokensCheck: _judge_tokens,
    FunctionCheck: judge_function,
}
