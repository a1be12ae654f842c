"""What mocks and checks name of the world that no world of their tasks ever has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agenteval.lint.oddity import Oddity
from agenteval.lint.pointers import changed_places, is_there, made_fields, may_meet, needed_fields
from agenteval.lint.references import fields_read
from agenteval.lint.tools import expressions_of
from agenteval.loading import KeyPath
from agenteval.spec import TaskVariant, ToolMock, UnchangedCheck
from agenteval.words import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFields:
    """Fields that the worlds of some tasks have at any time, as far as their tools let it be known."""

    fields: frozenset[str]
    is_open: bool
    """Whether a tool can make fields of any name."""

    @classmethod
    def of(cls, variants: Iterable[TaskVariant]) -> KnownFields:
        """Those of the worlds at the start, and those that effects make."""
        mocks: dict[int, ToolMock] = {}
        fields: set[str] = set()
        for variant in variants:
            fields.update(variant.world)
            mocks.update((id(tool), tool) for tool in variant.tools)
        made = [field for mock in mocks.values() for field in made_fields(mock)]
        fields.update(field for field in made if field is not None)
        is_open = None in made or any(mock.functions for mock in mocks.values())
        return cls(fields=frozenset(fields), is_open=is_open)

    @classmethod
    def joined(cls, parts: Sequence[KnownFields]) -> KnownFields:
        """Those of any of the parts."""
        fields = frozenset[str]().union(*(part.fields for part in parts))
        return cls(fields=fields, is_open=any(part.is_open for part in parts))


def world_warnings(tool: ToolMock, known: KnownFields) -> Iterator[Oddity]:
    """What a mock reads or changes of the world that no world of the tasks that use it ever has."""
    if known.is_open:
        return
    for key, source in expressions_of(tool):
        for name, field in sorted(fields_read(source)):
            if name == "world" and field not in known.fields:
                yield key, f"{source!r} reads {_unknown(field, tool, known)}"
    for key, place, field in _needed(tool):
        if field not in known.fields:
            yield (*key, "effects", place), f"this effect needs {_unknown(field, tool, known)}"


def pointer_problem(check: UnchangedCheck, variant: TaskVariant) -> str | None:
    """Which exception of an `unchanged` check names nothing, at the start or later; None where each may."""
    if any(tool.functions for tool in variant.tools):
        return None
    changed = {place for tool in variant.tools for place in changed_places(tool)}
    for pointer in check.excepted:
        # Its variables are put in already: what looks like an expression is meant as it stands.
        place = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
        if not is_there(variant.world, place) and not any(may_meet(other, place) for other in changed):
            hint = nearest(place[0], variant.world) if place[0] not in variant.world else ""
            return f"{pointer!r} names nothing in the world, and no effect makes it.{hint}"
    return None


def _unknown(field: str, tool: ToolMock, known: KnownFields) -> str:
    hint = nearest(field, sorted(known.fields))
    return f"world.{field}, which no world of the tasks that use {tool.name!r} has.{hint}"


def _needed(tool: ToolMock) -> Iterator[tuple[KeyPath, int, str]]:
    """(case, place of the effect, field of the world) of what effects cannot do without."""
    for place, case in [*enumerate(tool.cases), (None, tool.default)]:
        key: KeyPath = ("default",) if place is None else ("cases", place)
        for number, effect in enumerate(case.effects):
            yield from ((key, number, field) for field in needed_fields(effect))
