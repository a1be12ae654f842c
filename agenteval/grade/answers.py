"""Whether an answer says what its check asks for.

All of an answer is looked at, however long it is: only patterns can take more than a moment, and those have a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval import expressions
from agenteval.grade.numbers import has_unit, is_near, numbers_in
from agenteval.grade.played import Finding, Played, cut
from agenteval.spec import AnswerCheck, TaskVariant

_WRAPPINGS = ('""', "''", "``", "**", "__", "~~", "“”", "„“", "”“", "\u2018\u2019", "\u201a\u2018", "«»", "»«", "「」")
"""Quotation marks and markdown's signs, which say nothing where they stand on both sides."""
_FINAL_MARKS = ".!?"
_MOST_LAYERS = 12
"""Of quotes, emphasis and final marks around an answer."""


def judge_answer(check: AnswerCheck, _variant: TaskVariant, played: Played) -> Finding:
    """Whether the final answer satisfies every condition that the check gives."""
    if played.answer is None:
        return Finding(passed=False, reason=f"no answer; the episode ended by {played.stop_reason}")
    shown = repr(cut(played.answer))
    complaint = next(_complaints(check, played.answer), None)
    if complaint is not None:
        return Finding(passed=False, reason=f"the answer {shown} {complaint}")
    return Finding(passed=True, reason=f"the answer is {shown}")


def _complaints(check: AnswerCheck, answer: str) -> Iterator[str]:
    """What an answer lacks, or has too much."""
    folded = answer.casefold()
    missing = [text for text in check.contains if text.casefold() not in folded]
    if missing:
        yield f"lacks {_listed(missing)}"
    unwanted = [text for text in check.excludes if text.casefold() in folded]
    if unwanted:
        yield f"has {_listed(unwanted)}"
    if check.pattern is not None and not expressions.pattern_matches(check.pattern, answer):
        yield f"does not match {cut(repr(check.pattern))}"
    if check.one_of and not _is_one_of(folded, check.one_of):
        yield f"is none of {_listed(check.one_of)}"
    if check.number is not None and not _has_number(answer, check.number, check):
        unit = f" in {cut(' or '.join(check.unit))}" if check.unit else ""
        yield f"has no number within {check.tolerance:g} of {_number_text(check.number)}{unit}"


def _listed(texts: Sequence[str]) -> str:
    return cut(", ".join(map(repr, texts)))


def _number_text(number: float) -> str:
    return f"{int(number)}" if number.is_integer() and abs(number) < 2**53 else f"{number!r}"


def _is_one_of(folded: str, texts: Sequence[str]) -> bool:
    """Whether an answer is one of these texts, once what merely wraps it is taken off.

    Only the answer is unwrapped, so that a text's own signs count: `5` is no `-5`, and `C` no `C++`.
    """
    wanted = {text.casefold().strip() for text in texts}
    wanted |= {text.rstrip(_FINAL_MARKS) for text in wanted}
    layer = folded.strip()
    for _ in range(_MOST_LAYERS):
        if layer in wanted:
            return True
        layer = _unwrapped(layer)
    return False


def _unwrapped(text: str) -> str:
    """A text without its final marks; where it has none, without one pair of signs around it."""
    if text[-1:] in _FINAL_MARKS:
        return text.rstrip(_FINAL_MARKS).rstrip()
    return text[1:-1].strip() if text[:1] + text[-1:] in _WRAPPINGS and len(text) > 1 else text


def _has_number(answer: str, number: float, check: AnswerCheck) -> bool:
    return any(
        is_near(found.value, number, tolerance=check.tolerance)
        and (not check.unit or has_unit(answer, found, check.unit))
        for found in numbers_in(answer, check.unit)
    )
