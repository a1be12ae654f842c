"""A suite's folder -> the suite and everything odd about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import Problem
from agenteval.lint.agent import agent_warnings
from agenteval.lint.faults import fault_warnings
from agenteval.lint.oddity import Oddity
from agenteval.lint.tasks import task_warnings
from agenteval.lint.tools import tool_warnings
from agenteval.lint.worlds import KnownFields, world_warnings
from agenteval.loading import Document, KeyPath, collecting_later
from agenteval.spec import LoadedSuite, Suite, TaskVariant, ToolMock, load_suite_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A suite that loads, and what looks like a slip in it."""

    suite: Suite
    warnings: tuple[Problem, ...]
    """In order of file and line."""


@collecting_later()
def inspect_suite(path: Path) -> Inspection:
    """Load a suite and look it through.

    Raises:
        InputError: If the path is no folder with a suite.yaml.
        FileProblemsError: With every problem of every file; nothing is looked through then.
    """
    loaded = load_suite_files(path)
    known = _known_fields(loaded.suite.variants)
    found = [
        *_problems(loaded.head, (), agent_warnings(loaded.suite.agent)),
        *_of_tools(loaded, known),
        *_of_tasks(loaded, known),
    ]
    unique = dict.fromkeys(found)
    ordered = sorted(unique, key=lambda problem: (str(problem.path), problem.line or 0))
    return Inspection(suite=loaded.suite, warnings=tuple(ordered))


def _known_fields(variants: Sequence[TaskVariant]) -> dict[int, KnownFields]:
    """Identity of each tool that tasks use to what the worlds of all these tasks have."""
    # Many tasks have the same tools, and each of the tools needs all tasks: they are looked at by groups.
    groups: dict[tuple[int, ...], list[TaskVariant]] = {}
    for variant in variants:
        groups.setdefault(tuple(map(id, variant.tools)), []).append(variant)
    parts: dict[int, list[KnownFields]] = {}
    for tools, users in groups.items():
        fields = KnownFields.of(users)
        for tool in tools:
            parts.setdefault(tool, []).append(fields)
    return {tool: KnownFields.joined(found) for tool, found in parts.items()}


def _of_tools(loaded: LoadedSuite, known: Mapping[int, KnownFields]) -> Iterator[Problem]:
    for tool in loaded.suite.tools:
        document, key = loaded.tools[tool.name]
        if id(tool) not in known:
            yield document.problem((*key, "name"), f"no task uses the tool {tool.name!r}")
        yield from _problems(document, key, _of_tool(tool, known))


def _of_tool(tool: ToolMock, known: Mapping[int, KnownFields]) -> Iterator[Oddity]:
    yield from tool_warnings(tool)
    if id(tool) in known:
        yield from world_warnings(tool, known[id(tool)])


def _of_tasks(loaded: LoadedSuite, known: Mapping[int, KnownFields]) -> Iterator[Problem]:
    variants: dict[str, list[TaskVariant]] = {}
    for variant in loaded.suite.variants:
        variants.setdefault(variant.task, []).append(variant)
    for name, (document, key, task) in loaded.tasks.items():
        yield from _problems(document, key, [*task_warnings(task, variants[name]), *fault_warnings(variants[name])])
        for place, tool in enumerate(task.tools):
            if isinstance(tool, ToolMock):
                yield from _problems(document, (*key, "tools", place), _of_tool(tool, known))


def _problems(document: Document, key: KeyPath, oddities: Iterable[Oddity]) -> Iterator[Problem]:
    """Oddities below `key`, as problems of the file where they stand."""
    for place, message in oddities:
        yield document.problem((*key, *place), message)
