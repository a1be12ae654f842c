"""Oddities of tool mocks by themselves: cases that nothing reaches, arguments that no call has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval import expressions
from agenteval.expressions import ExpressionError
from agenteval.lint.oddity import Oddity
from agenteval.lint.references import constant_value, fields_read, sources
from agenteval.lint.schemas import schema_warnings
from agenteval.loading import KeyPath
from agenteval.spec import Case, ToolMock, is_allowed
from agenteval.words import nearest

MAX_SHAPES = 50
"""Sets of arguments that a tool's cases match; of a tool with more, later ones are not compared with each other."""

_Shape = tuple[str, ...]
_Asked = tuple[_Shape, str, str | None]
"""What a case asks: the names that it matches, their values, and its condition."""


def tool_warnings(tool: ToolMock) -> Iterator[Oddity]:
    """What is odd about a mock by itself."""
    yield from schema_warnings(tool)
    always: str | None = None
    for place, reason in enumerate(_unreachable(tool.cases, tool)):
        if always or reason:
            yield ("cases", place), f"no call reaches this case: {always or reason}"
        case = tool.cases[place]
        if not case.match and (case.when is None or constant_value(case.when) is True):
            always = always or f"case {place} answers every call"
    if always is not None and "default" in tool.model_fields_set:
        yield ("default",), f"no call reaches the default: {always}"
    for key, source in expressions_of(tool):
        yield from ((key, complaint) for complaint in unknown_arguments(tool, source))


def unknown_arguments(tool: ToolMock, source: str) -> Iterator[str]:
    """What an expression reads of `args` that no call of the tool can have."""
    if tool.parameters.get("additionalProperties") is not False:
        return
    properties = tool.parameters.get("properties", {})
    for name, field in sorted(fields_read(source)):
        if name == "args" and field not in properties:
            yield f"{source!r} reads args.{field}, which no call can have.{nearest(field, properties)}"


def can_change_world(tool: ToolMock) -> bool:
    """Whether a call of the tool may change the world."""
    return any(case.effects or case.function is not None for case in (*tool.cases, tool.default))


def can_move_clock(tool: ToolMock) -> bool:
    """Whether a call of the tool may take time."""
    return any(case.latency_s > 0 for case in (*tool.cases, tool.default))


def can_succeed(tool: ToolMock) -> bool:
    """Whether a call of the tool may give anything but an error."""
    return any(case.error is None for case in (*tool.cases, tool.default))


def may_read(tool: ToolMock, name: str) -> bool:
    """Whether what a tool answers may depend on `world` or `clock`."""
    return bool(tool.functions) or any(
        name in expressions.compile_expression(source).variables for _, source in expressions_of(tool)
    )


def argument_problem(tool: ToolMock, arguments: Mapping[str, Any]) -> str | None:
    """Why no call with valid arguments has these among its own; None where one can."""
    properties = tool.parameters.get("properties", {})
    for name, value in arguments.items():
        if name not in properties:
            if tool.parameters.get("additionalProperties") is False:
                return f"{tool.name!r} has no argument {name!r}.{nearest(name, properties)}"
        elif not _may_be_allowed(properties[name], value):
            return f"the schema of {tool.name!r} does not allow {name} to be {value!r}"
    return None


def expressions_of(tool: ToolMock) -> Iterator[tuple[KeyPath, str]]:
    """Every expression of a mock, with its place."""
    for place, case in [*enumerate(tool.cases), (None, tool.default)]:
        key: KeyPath = ("default",) if place is None else ("cases", place)
        if case.when is not None:
            yield (*key, "when"), case.when
        for field in ("returns", "error"):
            for source in sources(getattr(case, field)):
                yield (*key, field), source
        for number, effect in enumerate(case.effects):
            for source in sources([effect.path, effect.source, effect.value]):
                yield (*key, "effects", number), source


def _may_be_allowed(schema: Any, value: Any) -> bool:
    try:
        return is_allowed(schema, value)
    # A pattern that is not settled in time says nothing.
    except ExpressionError:
        return True


def _unreachable(cases: Sequence[Case], tool: ToolMock) -> Iterator[str | None]:
    """Of each case why no call comes to it, those before it answering or its own conditions failing; or None."""
    asked: dict[_Asked, int] = {}
    shapes: dict[_Shape, None] = {}
    for place, case in enumerate(cases):
        if constant_value(case.when) is False:
            yield f"{case.when!r} is never true"
        elif problem := argument_problem(tool, case.match) if case.match else None:
            yield problem
        else:
            earlier = [asked[found] for found in _broader(case, shapes) if found in asked]
            yield f"case {min(earlier)} answers the same calls before" if earlier else None
        shape = tuple(sorted(case.match))
        if len(shapes) < MAX_SHAPES:
            shapes[shape] = None
        if shape in shapes and (case.match or case.when is not None):
            asked.setdefault((shape, _values(case, shape), case.when), place)


def _broader(case: Case, shapes: Mapping[_Shape, None]) -> Iterator[_Asked]:
    """What a case may ask that answers every call that this one would answer."""
    for shape in shapes:
        if case.match.keys() >= set(shape):
            yield from ((shape, _values(case, shape), when) for when in {None, case.when})


def _values(case: Case, shape: _Shape) -> str:
    """Equal for values that are equal as JSON values."""
    return json.dumps([_plain(case.match[name]) for name in shape], sort_keys=True)


def _plain(value: Any) -> Any:
    """A JSON value in which a number that is whole is written as a whole number."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
