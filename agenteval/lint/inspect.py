"""A suite's folder -> the suite and everything odd about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import Problem
from agenteval.lint.faults import fault_warnings
from agenteval.lint.oddity import Oddity
from agenteval.lint.tasks import task_warnings
from agenteval.lint.tools import tool_warnings, world_warnings
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
    found = [*_of_tools(loaded), *_of_tasks(loaded)]
    unique = dict.fromkeys(found)
    ordered = sorted(unique, key=lambda problem: (str(problem.path), problem.line or 0))
    return Inspection(suite=loaded.suite, warnings=tuple(ordered))


def _of_tools(loaded: LoadedSuite) -> Iterator[Problem]:
    users: dict[str, list[TaskVariant]] = {tool.name: [] for tool in loaded.suite.tools}
    for variant in loaded.suite.variants:
        for tool in variant.tools:
            users.setdefault(tool.name, []).append(variant)
    for tool in loaded.suite.tools:
        document, key = loaded.tools[tool.name]
        if not users[tool.name]:
            yield document.problem((*key, "name"), f"no task uses the tool {tool.name!r}")
        yield from _problems(document, key, [*tool_warnings(tool), *world_warnings(tool, users[tool.name])])


def _of_tasks(loaded: LoadedSuite) -> Iterator[Problem]:
    variants: dict[str, list[TaskVariant]] = {}
    for variant in loaded.suite.variants:
        variants.setdefault(variant.task, []).append(variant)
    for name, (document, key, task) in loaded.tasks.items():
        yield from _problems(document, key, [*task_warnings(task, variants[name]), *fault_warnings(variants[name])])
        for place, tool in enumerate(task.tools):
            if isinstance(tool, ToolMock):
                found = [*tool_warnings(tool), *world_warnings(tool, variants[name])]
                yield from _problems(document, (*key, "tools", place), found)


def _problems(document: Document, key: KeyPath, oddities: list[Oddity]) -> Iterator[Problem]:
    """Oddities below `key`, as problems of the file where they stand."""
    for place, message in oddities:
        yield document.problem((*key, *place), message)
