"""Checks as their files would declare them, and finished episodes to judge by them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pydantic
import run_records as made

from agenteval.grade import Played, grade_episode
from agenteval.records import Episode, EpisodePlan, EpisodeStatus, Grade, StopReason, ToolCall
from agenteval.spec import Check, SuiteFunction, TaskVariant

CHECK: pydantic.TypeAdapter[Check] = pydantic.TypeAdapter(Check)


def check(**fields: Any) -> Check:
    """A check as its file would declare it."""
    return CHECK.validate_json(json.dumps(fields))


def episode(*, answer: str | None = "done", world: dict[str, Any] | None = None, turns: int = 1) -> Episode:
    """A finished episode; without an answer, its turns have run out."""
    plan = EpisodePlan(run_id="run", position=3, task="t", variant="base", sample=0, repeat=0, seed=1, cache_salt=None)
    return Episode(
        plan=plan,
        boot_id="boot",
        status=EpisodeStatus.FINISHED,
        stop_reason=StopReason.MAX_TURNS if answer is None else StopReason.FINISH_TOOL,
        message=None,
        answer=answer,
        world=world or {},
        turns=turns,
        started_at=datetime.datetime(2026, 1, 15, tzinfo=datetime.UTC),
        elapsed_s=1.0,
    )


def call(tool: str, arguments: str = "{}", error: str | None = None, result: str = "") -> ToolCall:
    """A call, failed where it has an error."""
    return replace(made.call(), tool=tool, arguments=arguments, error=error, result=result)


def variant(
    *checks: Check,
    start: dict[str, Any] | None = None,
    variables: dict[str, Any] | None = None,
    functions: Sequence[SuiteFunction] = (),
) -> TaskVariant:
    """A task variant with these checks."""
    return replace(
        made.VARIANT,
        checks=checks,
        world=start or {},
        vars=variables or {},
        functions={function.name: function for function in functions},
    )


def judge(
    wanted: Check, how: Episode, *calls: ToolCall | tuple[int, ToolCall], tokens: int = 0, **fields: Any
) -> Grade:
    """The grade of one check; a call stands alone, one a turn, or with its turn."""
    placed = [made if isinstance(made, tuple) else (turn, made) for turn, made in enumerate(calls)]
    (grade,) = grade_episode(variant(wanted, **fields), Played.of(how, calls=placed, output_tokens=tokens))
    return grade
