"""Whether the world at the end is as its check asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval import expressions
from agenteval.digest import canonical_json
from agenteval.expressions import ExpressionError
from agenteval.grade.played import Finding, Played, cut
from agenteval.spec import TaskVariant, UnchangedCheck, WorldCheck
from agenteval.tools import patch_between

_SHOWN_CHANGES, _SHOWN_PLACES = 400, 5


def judge_world(check: WorldCheck, variant: TaskVariant, played: Played) -> Finding:
    """Whether a condition holds at the end; a failure names the part that is false, and what has changed.

    Raises:
        ExpressionError: If it cannot be evaluated.
    """
    names = {"world": played.world, "start": variant.world, "answer": played.answer or "", "vars": variant.vars}
    passed = expressions.evaluate_condition(check.that, names)
    if passed:
        return Finding(passed=True, reason=f"{cut(check.that)} is true")
    if not played.explains:
        return Finding(passed=False, reason=f"{cut(check.that)} is false")
    culprit = next((part for part in expressions.conjuncts(check.that) if _is_false(part, names)), check.that)
    changes = [_change_text(operation) for operation in patch_between(variant.world, played.world)]
    shown = cut("; ".join(changes), _SHOWN_CHANGES) if changes else "nothing"
    return Finding(passed=False, reason=f"{cut(culprit)} is false; changed since the start: {shown}")


def _is_false(condition: str, names: Mapping[str, Any]) -> bool:
    try:
        return not expressions.evaluate_condition(condition, names)
    except ExpressionError:
        return False


def _change_text(operation: Mapping[str, Any]) -> str:
    gone = operation["op"] == "remove"
    return f"{operation['path']} {'is gone' if gone else 'is ' + canonical_json(operation['value'])}"


def judge_unchanged(check: UnchangedCheck, variant: TaskVariant, played: Played) -> Finding:
    """Whether nothing differs from the start, but for what is excepted."""
    places = [
        place
        for place in _changes(variant.world, played.world, "")
        if not any(_is_at_or_below(place, pointer) for pointer in check.excepted)
    ]
    if not places:
        return Finding(passed=True, reason="nothing else changed in the world")
    shown = ", ".join(cut(place) for place in places[:_SHOWN_PLACES]) + ("…" if len(places) > _SHOWN_PLACES else "")
    return Finding(passed=False, reason=f"the world also changed at {shown}")


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
