"""Whether the end state, the answer and the calls of an episode satisfy the task's checks.

Pure over what happened. A check that cannot be evaluated gives None, never a failure.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agenteval import expressions
from agenteval.compare import has_passed as has_passed
from agenteval.digest import canonical_json
from agenteval.expressions import ExpressionError
from agenteval.records import Episode, Grade, ToolCall
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
from agenteval.tools import UNANSWERED, parse_json, patch_between

MAX_ANSWER_CHARACTERS = 20_000
"""Patterns see no more of an answer, so that their cost is bounded."""
_NUMBER = re.compile(r"(?<![\w.])(?:[-+\u2212](?=[\d.]))?(?:\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d{1,3})?|\.\d+)")
"""A number of an answer, no letter right before it; a hyphen after a letter or digit is none of its sign."""
_AROUND = string.whitespace + string.punctuation
_SHOWN_ANSWER, _SHOWN_WORLD, _SHOWN_PLACES = 200, 400, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A finished episode, as far as checks look at it."""

    episode: Episode
    calls: Sequence[tuple[int, ToolCall]]
    """All its tool calls with their turns, in order."""
    output_tokens: int
    """Tokens that the model wrote in all turns."""
    explains: bool = True
    """Whether a failing world check looks for the part that is false; the cost of one evaluation a part."""

    @property
    def answer(self) -> str:
        """The final answer, empty where there is none."""
        return self.episode.answer or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    passed: bool
    reason: str


def grade_episode(variant: TaskVariant, played: Played) -> tuple[Grade, ...]:
    """Judge a finished episode by each of its task's checks.

    Args:
        variant: What was attempted.
        played: How the attempt went.
    """
    grades = tuple(_grade(index, check, variant, played) for index, check in enumerate(variant.checks))
    broken = next((call.error for _, call in played.calls if (call.error or "").startswith(UNANSWERED)), None)
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
        run_id=played.episode.plan.run_id,
        episode_id=played.episode.plan.episode_id,
        check=index,
        kind=check.kind,
        passed=passed,
        reason=reason,
        weight=check.weight,
    )


def _judge_answer(check: AnswerCheck, _variant: TaskVariant, played: Played) -> _Finding:
    if played.episode.answer is None:
        return _Finding(passed=False, reason=f"no answer; the episode ended by {played.episode.stop_reason}")
    answer = played.episode.answer[:MAX_ANSWER_CHARACTERS]
    shown = repr(_cut(answer, _SHOWN_ANSWER))
    complaint = next(_complaints(check, answer), None)
    if complaint is not None:
        return _Finding(passed=False, reason=f"the answer {shown} {complaint}")
    return _Finding(passed=True, reason=f"the answer is {shown}")


def _complaints(check: AnswerCheck, answer: str) -> Iterator[str]:
    """What an answer lacks, or has too much."""
    folded = answer.casefold()
    missing = [text for text in check.contains if text.casefold() not in folded]
    if missing:
        yield f"lacks {', '.join(map(repr, missing))}"
    unwanted = [text for text in check.excludes if text.casefold() in folded]
    if unwanted:
        yield f"has {', '.join(map(repr, unwanted))}"
    if check.pattern is not None and not expressions.pattern_matches(check.pattern, answer):
        yield f"does not match {check.pattern!r}"
    if check.one_of and folded.strip(_AROUND) not in [text.casefold().strip(_AROUND) for text in check.one_of]:
        yield f"is none of {', '.join(map(repr, check.one_of))}"
    if check.number is not None and not _has_number(answer, check):
        unit = f" in {' or '.join(check.unit)}" if check.unit else ""
        yield f"has no number within {check.tolerance:g} of {check.number:g}{unit}"


def _has_number(answer: str, check: AnswerCheck) -> bool:
    assert check.number is not None
    # A last digit's rounding in binary must not fail an answer that is right in decimal.
    slack = check.tolerance + 1e-9 * max(1.0, abs(check.number))
    return any(
        abs(_value_of(found[0]) - check.number) <= slack and _has_unit(answer, found, check.unit)
        for found in _NUMBER.finditer(answer)
    )


def _value_of(number: str) -> float:
    return float(number.replace(",", "").replace("\u2212", "-"))


def _has_unit(answer: str, number: re.Match[str], units: Sequence[str]) -> bool:
    """Whether one of the units stands right after the number, or right before it, and no letter follows on."""
    if not units:
        return True
    before, after = answer[: number.start()].rstrip().casefold(), answer[number.end() :].lstrip().casefold()
    for unit in (unit.casefold() for unit in units):
        if after.startswith(unit) and not after[len(unit) :][:1].isalpha():
            return True
        if before.endswith(unit) and not before[: -len(unit)][-1:].isalpha():
            return True
    return False


def _judge_world(check: WorldCheck, variant: TaskVariant, played: Played) -> _Finding:
    world = played.episode.world
    names = {"world": world, "start": variant.world, "answer": played.answer, "vars": variant.vars}
    passed = expressions.evaluate_condition(check.that, names)
    if passed:
        return _Finding(passed=True, reason=f"{check.that} is true")
    if not played.explains:
        return _Finding(passed=False, reason=f"{check.that} is false")
    culprit = next((part for part in expressions.conjuncts(check.that) if _is_false(part, names)), check.that)
    changes = [_change_text(operation) for operation in patch_between(variant.world, world)]
    shown = _cut("; ".join(changes), _SHOWN_WORLD) if changes else "nothing"
    return _Finding(passed=False, reason=f"{culprit} is false; changed since the start: {shown}")


def _is_false(condition: str, names: Mapping[str, Any]) -> bool:
    try:
        return not expressions.evaluate_condition(condition, names)
    except ExpressionError:
        return False


def _change_text(operation: Mapping[str, Any]) -> str:
    gone = operation["op"] == "remove"
    return f"{operation['path']} {'is gone' if gone else 'is ' + canonical_json(operation['value'])}"


def _judge_unchanged(check: UnchangedCheck, variant: TaskVariant, played: Played) -> _Finding:
    places = [
        place
        for place in _changes(variant.world, played.episode.world, "")
        if not any(_is_at_or_below(place, pointer) for pointer in check.excepted)
    ]
    if not places:
        return _Finding(passed=True, reason="nothing else changed in the world")
    shown = ", ".join(places[:_SHOWN_PLACES]) + ("…" if len(places) > _SHOWN_PLACES else "")
    return _Finding(passed=False, reason=f"the world also changed at {shown}")


def _changes(before: Any, after: Any, path: str) -> Iterator[str]:
    """JSON Pointers of what differs, in order; a list that has got another length differs as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            place = f"{path}/{expressions.pointer_part(key)}"
            if key in before and key in after:
                yield from _changes(before[key], after[key], place)
            else:
                yield place
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from _changes(*pair, f"{path}/{index}")
    elif not expressions.is_same(before, after):
        yield path


def _is_at_or_below(path: str, pointer: str) -> bool:
    return path == pointer or path.startswith(pointer + "/")


def _judge_called(check: CalledCheck, variant: TaskVariant, played: Played) -> _Finding:
    wanted_error = {"success": (False,), "error": (True,), "any": (False, True)}[check.outcome]
    count = sum(
        (call.error is not None) in wanted_error and _is_meant(turn, call, check, variant)
        for turn, call in played.calls
    )
    passed = count >= check.at_least and (check.at_most is None or count <= check.at_most)
    wanted = f"at least {check.at_least}" + ("" if check.at_most is None else f", at most {check.at_most}")
    how = {"success": "succeeded", "error": "failed", "any": "was called"}[check.outcome]
    return _Finding(passed=passed, reason=f"{_described(check)} {how} {count} times; wanted {wanted}")


def _judge_not_called(check: NotCalledCheck, variant: TaskVariant, played: Played) -> _Finding:
    count = sum(_is_meant(turn, call, check, variant) for turn, call in played.calls)
    return _Finding(passed=count == 0, reason=f"{_described(check)} was called {count} times; wanted never")


def _is_meant(turn: int, call: ToolCall, check: CalledCheck | NotCalledCheck, variant: TaskVariant) -> bool:
    """Whether a check on calls is about this call."""
    if call.tool != check.tool:
        return False
    given = _as_value(call.arguments or "{}")
    if not isinstance(given, dict):
        return not check.arguments and check.where is None
    if not all(key in given and expressions.is_same(given[key], value) for key, value in check.arguments.items()):
        return False
    if check.where is None:
        return True
    names = {"args": given, "result": _as_value(call.result), "turn": turn, "vars": variant.vars}
    return expressions.evaluate_condition(check.where, names)


def _described(check: CalledCheck | NotCalledCheck) -> str:
    how = f" with {canonical_json(check.arguments)}" if check.arguments else ""
    return f"{check.tool}{how}{'' if check.where is None else f' where {check.where}'}"


def _judge_order(check: OrderCheck, _variant: TaskVariant, played: Played) -> _Finding:
    made = [call.tool for _, call in played.calls if call.error is None]
    remaining = iter(made)
    passed = all(tool in remaining for tool in check.tools)
    return _Finding(passed=passed, reason=f"successful calls were {made}; wanted in order {list(check.tools)}")


def _judge_together(check: TogetherCheck, _variant: TaskVariant, played: Played) -> _Finding:
    turns: dict[int, list[str]] = {}
    for turn, call in played.calls:
        if call.error is None:
            turns.setdefault(turn, []).append(call.tool)
    passed = any(Counter(check.tools) <= Counter(tools) for tools in turns.values())
    return _Finding(
        passed=passed,
        reason=f"successful calls by turn were {list(turns.values())}; wanted in one {list(check.tools)}",
    )


def _judge_turns(check: TurnsCheck, _variant: TaskVariant, played: Played) -> _Finding:
    turns = played.episode.turns
    return _Finding(passed=turns <= check.at_most, reason=f"{turns} turns; wanted at most {check.at_most}")


def _judge_tokens(check: TokensCheck, _variant: TaskVariant, played: Played) -> _Finding:
    return _Finding(
        passed=played.output_tokens <= check.at_most,
        reason=f"{played.output_tokens} output tokens; wanted at most {check.at_most}",
    )


def _judge_function(check: FunctionCheck, variant: TaskVariant, played: Played) -> _Finding:
    calls = [
        {
            "turn": turn,
            "tool": call.tool,
            "arguments": _as_value(call.arguments or "{}"),
            "result": _as_value(call.result),
            "error": call.error,
        }
        for turn, call in played.calls
    ]
    world, calls = json.loads(canonical_json([played.episode.world, calls]))
    try:
        found = variant.functions[check.function].call(world, played.episode.answer, calls)
    # The function is the suite's own code, which can raise anything; the episode is then not graded.
    except Exception as error:
        raise ExpressionError(f"{check.function} failed: {type(error).__name__}: {error}") from error
    passed, reason = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(passed, bool):
        raise ExpressionError(f"{check.function} gave {found!r}, not true or false, or (true or false, reason)")
    return _Finding(passed=passed, reason=str(reason or f"{check.function} says {str(passed).lower()}"))


def _as_value(text: str) -> Any:
    """The JSON value of a text, as mocks see it; the text itself where it is none."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return text


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + "…"


_JUDGES: dict[type, Callable[[Any, TaskVariant, Played], _Finding]] = {
    AnswerCheck: _judge_answer,
    WorldCheck: _judge_world,
    UnchangedCheck: _judge_unchanged,
    CalledCheck: _judge_called,
    NotCalledCheck: _judge_not_called,
    OrderCheck: _judge_order,
    TogetherCheck: _judge_together,
    TurnsCheck: _judge_turns,
    TokensCheck: _judge_tokens,
    FunctionCheck: _judge_function,
}
