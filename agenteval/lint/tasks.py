"""Oddities of tasks: checks that cannot fail or cannot pass, variables that nothing reads."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from agenteval import expressions
from agenteval.digest import canonical_json
from agenteval.expressions import ExpressionError
from agenteval.grade import Played, grade_episode
from agenteval.lint.oddity import Oddity
from agenteval.lint.tools import argument_problem, can_change_world, can_succeed
from agenteval.loading import KeyPath
from agenteval.records import Episode, EpisodePlan, EpisodeStatus, StopReason
from agenteval.spec import (
    AnswerCheck,
    CalledCheck,
    Check,
    OrderCheck,
    Task,
    TaskVariant,
    TogetherCheck,
    TokensCheck,
    TurnsCheck,
    WorldCheck,
)

_IDLE_ANSWER = "done"


def task_warnings(task: Task, variants: Sequence[TaskVariant]) -> Iterator[Oddity]:
    """What is odd about a task, in any of its variants."""
    yield from _unread_variables(task)
    for variant in variants:
        for place, check in enumerate(variant.checks):
            reason = _why_unfailable(check, variant)
            if reason is not None:
                yield ("checks", place), f"no trajectory can fail this check: {reason}"
            reason = _why_unpassable(check, variant)
            if reason is not None:
                yield ("checks", place), f"no trajectory can pass this check: {reason}"
        yield from _of_an_idle_agent(variant)


def _unread_variables(task: Task) -> Iterator[Oddity]:
    names = {name for variables in task.variants.values() for name in variables} | task.matrix.keys()
    if not names:
        return
    text = canonical_json(task.model_dump(mode="json", exclude={"variants", "matrix", "tools"}, warnings=False))
    for name in sorted(names):
        if f"vars.{name}" not in text and "vars[" not in text:
            key: KeyPath = ("matrix", name) if name in task.matrix else ("variants",)
            yield key, f"nothing reads the variable {name!r}"


def _of_an_idle_agent(variant: TaskVariant) -> Iterator[Oddity]:
    """An agent that calls nothing and says `done` should fail; if it is not even graded, a real one may not be."""
    grades = grade_episode(variant, Played(episode=_idle_episode(variant), calls=(), output_tokens=1, explains=False))
    for grade in grades:
        if grade.passed is None:
            why = grade.reason.removeprefix("not graded: ")
            yield ("checks", grade.check), f"an agent that does nothing is not graded, instead of failed: {why}"
    if all(grade.passed for grade in grades):
        yield ("checks",), f"an agent that does nothing passes (variant {variant.variant!r})"


def _idle_episode(variant: TaskVariant) -> Episode:
    return Episode(
        plan=EpisodePlan(
            run_id="",
            position=0,
            task=variant.task,
            variant=variant.variant,
            sample=0,
            repeat=0,
            seed=0,
            cache_salt=None,
        ),
        boot_id="",
        status=EpisodeStatus.FINISHED,
        stop_reason=StopReason.ANSWER,
        message=None,
        answer=_IDLE_ANSWER,
        world=variant.world,
        turns=1,
        started_at=datetime.datetime.min.replace(tzinfo=datetime.UTC),
        elapsed_s=0.0,
    )


def _why_unfailable(check: Check, variant: TaskVariant) -> str | None:
    """Why every episode of a variant passes a check; None where one may fail."""
    match check:
        case WorldCheck():
            return _why_settled(check, variant, value=True)
        case TurnsCheck() if check.at_most >= variant.settings.max_turns:
            return f"an episode has at most {variant.settings.max_turns} turns anyway"
        case TokensCheck() if check.at_most >= variant.settings.max_turns * variant.settings.max_tokens:
            return f"{variant.settings.max_turns} turns of {variant.settings.max_tokens} tokens are no more"
        case AnswerCheck() if check.number is None and not (check.excludes or check.one_of):
            if all(not text for text in check.contains) and _matches_all(check.pattern):
                return "every answer satisfies it"
    return None


def _why_settled(check: WorldCheck, variant: TaskVariant, *, value: bool) -> str | None:
    """Why a condition has this value at the end of every trajectory; None where it may not."""
    variables = expressions.compile_expression(check.that).variables
    if not variables & {"world", "answer"}:
        reason = "it reads neither world nor answer"
    elif "answer" in variables or any(map(can_change_world, variant.tools)):
        return None
    else:
        reason = "no tool of the task changes the world"
    names = {"world": variant.world, "start": variant.world, "answer": "", "vars": variant.vars}
    try:
        return reason if expressions.evaluate_condition(check.that, names) is value else None
    except ExpressionError:
        return None


def _why_unpassable(check: Check, variant: TaskVariant) -> str | None:
    """Why every episode of a variant fails a check; None where one may pass."""
    tools = {tool.name: tool for tool in variant.tools}
    match check:
        case WorldCheck():
            return _why_settled(check, variant, value=False)
        case CalledCheck() if check.at_least >= 1 and check.outcome == "success":
            tool = tools[check.tool]
            if not can_succeed(tool):
                return f"{check.tool!r} has only errors to give"
            return argument_problem(tool, check.arguments) if check.arguments else None
        case OrderCheck():
            return next(
                (f"{name!r} has only errors to give" for name in check.tools if not can_succeed(tools[name])), None
            )
        case TogetherCheck() if not variant.settings.parallel_tool_calls:
            return "a turn may call one tool only; set parallel_tool_calls for the task"
    return None


def _matches_all(pattern: str | None) -> bool:
    """Whether a pattern finds itself in texts that have nothing in common, so that it hardly misses any."""
    return pattern is None or all(expressions.pattern_matches(pattern, text) for text in ("", "a", "No, 7.\n"))
