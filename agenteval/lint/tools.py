"""Oddities of tool mocks: cases that nothing reaches, names that nothing has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jsonschema

from agenteval import expressions
from agenteval.lint.oddity import Oddity
from agenteval.lint.references import constant_value, fields_read, sources
from agenteval.loading import KeyPath
from agenteval.spec import Case, TaskVariant, ToolMock
from agenteval.words import nearest


def tool_warnings(tool: ToolMock) -> Iterator[Oddity]:
    """What is odd about a mock by itself."""
    always: str | None = None
    for place, case in enumerate(tool.cases):
        reason = always or _why_unreachable(tool, place)
        if reason is not None:
            yield ("cases", place), f"no call reaches this case: {reason}"
        if not case.match and (case.when is None or constant_value(case.when) is True):
            always = always or f"case {place} answers every call"
    if always is not None and "default" in tool.model_fields_set:
        yield ("default",), f"no call reaches the default: {always}"
    for key, source in _expressions(tool):
        yield from ((key, complaint) for complaint in unknown_arguments(tool, source))


def world_warnings(tool: ToolMock, users: Sequence[TaskVariant]) -> Iterator[Oddity]:
    """What a mock reads of the world that no world of the tasks that use it ever has."""
    mocks = {mock.name: mock for variant in users for mock in variant.tools}
    if not users or any(mock.functions for mock in mocks.values()):
        return
    known = {field for mock in mocks.values() for field in _fields_made(mock)}
    known = known.union(*(variant.world for variant in users))
    for key, source in _expressions(tool):
        for name, field in sorted(fields_read(source)):
            if name == "world" and field not in known:
                where = f"no world of the tasks that use {tool.name!r} has"
                yield key, f"{source!r} reads world.{field}, which {where}.{nearest(field, known)}"


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


def can_succeed(tool: ToolMock) -> bool:
    """Whether a call of the tool may give anything but an error."""
    return any(case.error is None for case in (*tool.cases, tool.default))


def argument_problem(tool: ToolMock, arguments: Mapping[str, Any]) -> str | None:
    """Why no call with valid arguments has these among its own; None where one can."""
    properties = tool.parameters.get("properties", {})
    for name, value in arguments.items():
        if name not in properties:
            if tool.parameters.get("additionalProperties") is False:
                return f"{tool.name!r} has no argument {name!r}.{nearest(name, properties)}"
        elif not jsonschema.Draft202012Validator(properties[name]).is_valid(value):
            return f"the schema of {tool.name!r} does not allow {name} to be {value!r}"
    return None


def _why_unreachable(tool: ToolMock, place: int) -> str | None:
    """Why no call comes to a case, those before it answering or its own conditions failing; None where one may."""
    case = tool.cases[place]
    if constant_value(case.when) is False:
        return f"{case.when!r} is never true"
    problem = argument_problem(tool, case.match) if case.match else None
    if problem is not None:
        return problem
    for earlier_place, earlier in enumerate(tool.cases[:place]):
        if (earlier.match or earlier.when is not None) and _covers(earlier, case):
            return f"case {earlier_place} answers the same calls before"
    return None


def _covers(earlier: Case, case: Case) -> bool:
    """Whether every call that a case matches is one that the earlier case answers."""
    matches = all(
        name in case.match and expressions.is_same(case.match[name], value) for name, value in earlier.match.items()
    )
    return matches and earlier.when in (None, case.when)


def _expressions(tool: ToolMock) -> Iterator[tuple[KeyPath, str]]:
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


def _fields_made(tool: ToolMock) -> Iterator[str]:
    """Top-level fields of the world that a mock's effects write."""
    for case in (*tool.cases, tool.default):
        for effect in case.effects:
            yield effect.path.split("/")[1]
