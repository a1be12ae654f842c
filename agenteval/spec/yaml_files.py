"""A YAML file of tools and tasks -> models, each validated by itself, so that one mistake hides no other."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from agenteval.loading import Document, Frozen, FrozenT, KeyPath, read_yaml, validate
from agenteval.spec.suite import Task
from agenteval.spec.tools import ToolMock


class _Shape(Frozen):
    """A file's outline; the items are validated one by one."""

    tools: list[Any] = Field(default_factory=list)
    tasks: list[Any] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """What a file of a suite declares, with the place of each part."""

    document: Document
    tools: Sequence[tuple[KeyPath, ToolMock]]
    tasks: Sequence[tuple[KeyPath, Task]]
    tool_names: Sequence[str]
    """Every tool, those included that have problems of their own."""
    other_references: Sequence[tuple[KeyPath, str]] = ()
    """Tools that are named by tasks with problems of their own."""


def read_suite_yaml(path: Path) -> SourceFile:
    """Read one file; what is wrong with it is in its document's `problems`."""
    document = read_yaml(path)
    if not document.problems:
        validate(document, _Shape)
    tools, tasks = _items(document, "tools"), _items(document, "tasks")
    valid_tasks = list(_valid(document, "tasks", Task, tasks))
    return SourceFile(
        document=document,
        tools=list(_valid(document, "tools", ToolMock, tools)),
        tasks=valid_tasks,
        other_references=list(_references(tasks, {key[-1] for key, _ in valid_tasks})),
        tool_names=[item["name"] for item in tools if isinstance(item, dict) and isinstance(item.get("name"), str)],
    )


def _items(document: Document, section: str) -> list[Any]:
    """What stands in a section, whatever is wrong beside it."""
    found = document.data.get(section) if isinstance(document.data, dict) else None
    return found if isinstance(found, list) else []


def _references(tasks: list[Any], valid: Container[str | int]) -> Iterator[tuple[KeyPath, str]]:
    for place, task in enumerate(tasks):
        tools = task.get("tools") if isinstance(task, dict) and place not in valid else None
        for number, name in enumerate(tools if isinstance(tools, list) else []):
            if isinstance(name, str):
                yield ("tasks", place, "tools", number), name


def _valid(
    document: Document, section: str, model: type[FrozenT], items: Sequence[Any]
) -> Iterable[tuple[KeyPath, FrozenT]]:
    for place, item in enumerate(items):
        key: KeyPath = (section, place)
        found = validate(document, model, item, key)
        if found is not None:
            yield key, found
