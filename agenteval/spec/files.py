"""Suite folders -> a Suite, or every problem of every file at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pydantic

from agenteval.errors import FileProblemsError, InputError, Problem
from agenteval.expressions import ExpressionError
from agenteval.loading import Document, KeyPath, nearest, raise_if_any, read_yaml, validate
from agenteval.spec.checks import CalledCheck, Check, NotCalledCheck, OrderCheck
from agenteval.spec.suite import Suite, SuiteFile, SuiteHead, Task, TaskVariant, unfold
from agenteval.spec.tools import ToolMock

SUITE_FILE = "suite.yaml"


def load_suite(path: Path) -> Suite:
    """Load the suite in a folder.

    Raises:
        InputError: If the path is no folder with a suite.yaml.
        FileProblemsError: With every problem of every file.
    """
    if not (path / SUITE_FILE).is_file():
        raise InputError(
            f"{path} is no suite: it has no {SUITE_FILE}. Name a folder such as tasks/toolsuite that has one."
        )
    head_document = read_yaml(path / SUITE_FILE)
    head = None if head_document.problems else validate(head_document, SuiteHead)
    patterns = head.files if head is not None else ("*.yaml",)
    documents = [read_yaml(file) for file in _files(path, patterns)]
    parsed = [
        (document, content)
        for document in documents
        if not document.problems and (content := validate(document, SuiteFile)) is not None
    ]
    if head is not None and not documents:
        head_document.problems.append(head_document.problem(("files",), f"{list(patterns)} match no file"))
    tools = _collect_tools(parsed, head)
    # A file with problems of its own may declare the tool that another one misses.
    if head is not None and len(parsed) == len(documents):
        variants = tuple(_variants(parsed, tools, head))
    raise_if_any([head_document, *documents])
    assert head is not None
    if not variants:
        raise FileProblemsError([Problem(path=path, line=None, key="", message="the suite has no task")])
    return Suite(
        path=path,
        name=head.name,
        description=head.description,
        agent=head.agent,
        tools=tuple(tools.values()),
        variants=variants,
    )


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = {file for pattern in patterns for file in folder.glob(pattern) if file.is_file()}
    return sorted(found - {folder / SUITE_FILE}, key=lambda file: file.relative_to(folder).as_posix())


def _collect_tools(parsed: list[tuple[Document, SuiteFile]], head: SuiteHead | None) -> dict[str, ToolMock]:
    """All tools by name; a name that stands twice, or is the finish tool's, is a problem."""
    tools: dict[str, ToolMock] = {}
    for document, content in parsed:
        for index, tool in enumerate(content.tools):
            key: KeyPath = ("tools", index, "name")
            if tool.name in tools:
                document.problems.append(document.problem(key, f"there are two tools named {tool.name!r}"))
            elif head is not None and tool.name == head.agent.finish_tool:
                document.problems.append(
                    document.problem(key, f"{tool.name!r} is the finish tool of the suite; choose another name")
                )
            tools[tool.name] = tool
    return tools


def _variants(
    parsed: list[tuple[Document, SuiteFile]], tools: dict[str, ToolMock], head: SuiteHead
) -> Iterator[TaskVariant]:
    seen: set[str] = set()
    for document, content in parsed:
        for index, task in enumerate(content.tasks):
            key: KeyPath = ("tasks", index)
            if task.name in seen:
                document.problems.append(document.problem((*key, "name"), f"there are two tasks named {task.name!r}"))
            seen.add(task.name)
            dangling = list(_dangling(document, task, key, tools))
            document.problems += dangling
            if not dangling:
                yield from _unfold(document, task, key, tools, head)


def _unfold(
    document: Document, task: Task, key: KeyPath, tools: dict[str, ToolMock], head: SuiteHead
) -> tuple[TaskVariant, ...]:
    try:
        return unfold(task, tools, head.agent)
    except ExpressionError as error:
        document.problems.append(document.problem(key, f"a variant cannot be put in: {error}"))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = f"{place}: {first['msg']}, not {first['input']!r}" if place else first["msg"]
        document.problems.append(
            document.problem((*key, "checks"), f"a check is wrong with a variant's values put in: {what}")
        )
    return ()


def _dangling(document: Document, task: Task, key: KeyPath, tools: Mapping[str, ToolMock]) -> Iterator[Problem]:
    """References to tools that the suite, or the task, does not have."""
    for place, name in enumerate(task.tools):
        if name not in tools:
            yield document.problem(
                (*key, "tools", place), f"there is no tool {name!r} in this suite.{nearest(name, tools)}"
            )
        elif name in task.tools[:place]:
            yield document.problem((*key, "tools", place), f"the tool {name!r} stands twice")
    for place, check in enumerate(task.checks):
        for name in _tools_of(check):
            if name not in task.tools:
                hint = nearest(name, task.tools)
                yield document.problem(
                    (*key, "checks", place),
                    f"the check names the tool {name!r}, which this task does not have.{hint}",
                )


def _tools_of(check: Check) -> tuple[str, ...]:
    if isinstance(check, CalledCheck | NotCalledCheck):
        return (check.tool,)
    return check.tools if isinstance(check, OrderCheck) else ()
