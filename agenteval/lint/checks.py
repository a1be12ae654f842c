"""Checks that nothing can fail, or nothing can pass.

`no trajectory can fail` and `no trajectory can pass` are said only where it is certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from agenteval import expressions
from agenteval.expressions import ExpressionError
from agenteval.lint.oddity import Oddity
from agenteval.lint.patterns import matches_every_text
from agenteval.lint.references import constant_value
from agenteval.lint.tools import argument_problem, can_change_world, can_succeed
from agenteval.lint.worlds import pointer_problem
from agenteval.spec import (
    AnswerCheck,
    CalledCheck,
    Check,
    NotCalledCheck,
    OrderCheck,
    TaskVariant,
    TogetherCheck,
    TokensCheck,
    TurnsCheck,
    UnchangedCheck,
    WorldCheck,
)

_UNCHANGEABLE = "no tool of the task changes the world"


def check_warnings(variant: TaskVariant) -> Iterator[Oddity]:
    """What is odd about the checks of one variant."""
    for place, check in enumerate(variant.checks):
        reason = _why_unfailable(check, variant)
        if reason is not None:
            yield ("checks", place), f"no trajectory can fail this check: {reason}"
        reason = _why_unpassable(check, variant)
        if reason is not None:
            yield ("checks", place), f"no trajectory can pass this check: {reason}"
        if isinstance(check, AnswerCheck) and _asks_only_for_an_answer(check):
            yield ("checks", place), "every answer satisfies this check: it asks only that there is one"
        if isinstance(check, UnchangedCheck) and (problem := pointer_problem(check, variant)) is not None:
            yield ("checks", place), problem


def _why_unfailable(check: Check, variant: TaskVariant) -> str | None:
    """Why every episode of a variant passes a check; None where one may fail."""
    settings = variant.settings
    match check:
        case WorldCheck():
            return _why_settled(check, variant, value=True)
        case UnchangedCheck() if not any(map(can_change_world, variant.tools)):
            return _UNCHANGEABLE
        case TurnsCheck() if check.at_most >= settings.max_turns:
            return f"an episode has at most {settings.max_turns} turns anyway"
        case TokensCheck() if check.at_most >= settings.max_turns * settings.max_tokens:
            return f"{settings.max_turns} turns of {settings.max_tokens} tokens are no more"
        case CalledCheck() if check.at_least == 0 and check.at_most is not None:
            most = _most_calls(variant)
            if most is not None and check.at_most >= most:
                return _too_few_turns(variant)
            return _why_never_meant(check, variant)
        case NotCalledCheck():
            return _why_never_meant(check, variant)
    return None


def _why_unpassable(check: Check, variant: TaskVariant) -> str | None:
    """Why every episode of a variant fails a check; None where one may pass."""
    tools = {tool.name: tool for tool in variant.tools}
    most = _most_calls(variant)
    match check:
        case WorldCheck():
            return _why_settled(check, variant, value=False)
        case AnswerCheck():
            return _why_contradictory(check)
        case CalledCheck() if check.at_least >= 1:
            if most is not None and check.at_least > most:
                return _too_few_turns(variant)
            tool = tools[check.tool]
            if check.outcome == "success" and not can_succeed(tool):
                return f"{check.tool!r} has only errors to give"
            is_refused = check.outcome == "success" and bool(check.arguments)
            problem = argument_problem(tool, check.arguments) if is_refused else None
            return problem or _why_never_meant(check, variant)
        case OrderCheck():
            if most is not None and len(check.tools) > most:
                return _too_few_turns(variant)
            unable = (name for name in check.tools if not can_succeed(tools[name]))
            return next((f"{name!r} has only errors to give" for name in unable), None)
        case TogetherCheck() if not variant.settings.parallel_tool_calls:
            return "a turn may call one tool only; set parallel_tool_calls for the task"
    return None


def _why_settled(check: WorldCheck, variant: TaskVariant, *, value: bool) -> str | None:
    """Why a condition has this value at the end of every trajectory; None where it may not."""
    variables = expressions.compile_expression(check.that).variables
    if not variables & {"world", "answer"}:
        reason = "it reads neither world nor answer"
    elif "answer" in variables or any(map(can_change_world, variant.tools)):
        return None
    else:
        reason = _UNCHANGEABLE
    names = {"world": variant.world, "start": variant.world, "answer": "", "vars": variant.vars}
    try:
        return reason if expressions.evaluate_condition(check.that, names) is value else None
    except ExpressionError:
        return None


def _most_calls(variant: TaskVariant) -> int | None:
    """Calls that an episode can make; None where a turn may have any number of them."""
    return None if variant.settings.parallel_tool_calls else variant.settings.max_turns


def _too_few_turns(variant: TaskVariant) -> str:
    return f"an episode has at most {variant.settings.max_turns} turns, each with one call"


def _why_never_meant(check: CalledCheck | NotCalledCheck, variant: TaskVariant) -> str | None:
    """Why the condition of a check on calls holds for none; None where it may for one."""
    if constant_value(check.where, {"vars": variant.vars}) is False:
        return f"{check.where!r} is never true"
    return None


def _asks_only_for_an_answer(check: AnswerCheck) -> bool:
    is_open = check.number is None and not check.excludes and not check.one_of and not any(check.contains)
    return is_open and (check.pattern is None or matches_every_text(check.pattern))


def _why_contradictory(check: AnswerCheck) -> str | None:
    """Why no answer has all that a check wants and nothing that it excludes; None where one may."""
    for unwanted in check.excludes:
        if not unwanted:
            return "every answer contains the empty text"
        for wanted in check.contains:
            if unwanted.casefold() in wanted.casefold():
                return f"whoever says {wanted!r} says {unwanted!r} too, which it excludes"
    return None
