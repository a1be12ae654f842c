"""Places in the world that JSON Pointers name, whose parts may be templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agenteval import expressions
from agenteval.spec import Effect, ToolMock

Place = tuple[str | None, ...]
"""The parts of a pointer; None is one that may be anything: a template, or the end of a list."""

_VALUE = "\0"


def place_of(pointer: str) -> Place:
    """The parts of a pointer; an expression, whatever stands in it, is within one part."""
    pieces = expressions.split_template(pointer)
    text = "".join(_VALUE if is_expression else piece for piece, is_expression in pieces)
    return tuple(
        None if _VALUE in part or part == "-" else part.replace("~1", "/").replace("~0", "~")
        for part in text.split("/")[1:]
    )


def is_there(world: Any, place: Sequence[str | None]) -> bool:
    """Whether a world has something at a place that has no open parts."""
    for part in place:
        if isinstance(world, dict) and part in world:
            world = world[part]
        elif isinstance(world, list) and part is not None and part.isdecimal() and int(part) < len(world):
            world = world[int(part)]
        else:
            return False
    return True


def may_meet(a: Place, b: Place) -> bool:
    """Whether one place can be the other, or stand above or below it."""
    return all(one is None or other is None or one == other for one, other in zip(a, b, strict=False))


def changed_places(tool: ToolMock) -> Iterator[Place]:
    """Where the effects of a tool's cases change the world."""
    for case in (*tool.cases, tool.default):
        for effect in case.effects:
            yield from _changed(effect)


def _changed(effect: Effect) -> Iterator[Place]:
    if effect.op != "test":
        yield place_of(effect.path)
    if effect.op == "move" and effect.source is not None:
        yield place_of(effect.source)


def made_fields(tool: ToolMock) -> Iterator[str | None]:
    """Fields of the world itself that a tool's effects can make; None is any."""
    for case in (*tool.cases, tool.default):
        for effect in case.effects:
            place = place_of(effect.path)
            if effect.op in ("add", "copy", "move") and len(place) == 1:
                yield place[0]


def needed_fields(effect: Effect) -> Iterator[str]:
    """Fields of the world itself without which an effect fails."""
    place = place_of(effect.path)
    is_needed = effect.op in ("replace", "remove", "test") or len(place) > 1
    if is_needed and place[0] is not None:
        yield place[0]
    if effect.source is not None and (first := place_of(effect.source)[0]) is not None:
        yield first
