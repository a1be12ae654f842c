"""Suite folders -> a Suite, or every problem of every file at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pydantic

from agenteval.errors import FileProblemsError, InputError, Problem
from agenteval.loading import (
    Document,
    KeyPath,
    collecting_later,
    findings_text,
    raise_if_any,
    read_yaml,
    validate,
)
from agenteval.spec.checks import CalledCheck, Check, FunctionCheck, NotCalledCheck, OrderCheck, TogetherCheck
from agenteval.spec.file_patterns import FilePatternError, matching_files
from agenteval.spec.functions import FunctionError, SuiteFunction, load_function
from agenteval.spec.python_files import read_python
from agenteval.spec.suite import Suite, SuiteHead, Task, TaskVariant
from agenteval.spec.tools import ToolMock
from agenteval.spec.unfold import Surroundings, VariantError, unfold
from agenteval.spec.yaml_files import SourceFile, read_suite_yaml
from agenteval.words import nearest

SUITE_FILE = "suite.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSuite:
    """A suite, and where its parts stand in their files."""

    suite: Suite
    head: Document
    """Its suite.yaml."""
    tasks: Mapping[str, tuple[Document, KeyPath, Task]]
    """Task to its file, its place there, and itself as written."""
    tools: Mapping[str, tuple[Document, KeyPath]]
    """Tool of the suite to its file and its place there."""


def load_suite(path: Path) -> Suite:
    """Load the suite in a folder.

    Raises:
        InputError: If the path is no folder with a suite.yaml.
        FileProblemsError: With every problem of every file.
    """
    return load_suite_files(path).suite


@collecting_later()
def load_suite_files(path: Path) -> LoadedSuite:
    """Load the suite in a folder, with the places of its parts.

    Raises:
        InputError: If the path is no folder with a suite.yaml.
        FileProblemsError: With every problem of every file.
    """
    if not (path / SUITE_FILE).is_file():
        raise InputError(
            f"{path} is no suite: it has no {SUITE_FILE}. A suite is a folder with a {SUITE_FILE}, which says how the "
            "agent is set up, and files of tools and tasks; `agenteval new suite FOLDER` writes one to start from."
        )
    document = read_yaml(path / SUITE_FILE)
    head = None if document.problems else validate(document, SuiteHead)
    sources = [_read(file) for file in _files(document, head)]
    assembly = _Assembly(path=path, document=document, head=head, sources=sources)
    variants = assembly.variants()
    raise_if_any([document, *(source.document for source in sources)])
    assert head is not None
    if not variants:
        raise FileProblemsError([Problem(path=path, line=None, key="", message="the suite has no task")])
    suite = Suite(
        path=path,
        name=head.name,
        description=head.description,
        agent=head.agent,
        tools=tuple(assembly.tools.values()),
        variants=tuple(variants),
    )
    return LoadedSuite(suite=suite, head=document, tasks=assembly.tasks, tools=assembly.tool_places)


def _files(document: Document, head: SuiteHead | None) -> list[Path]:
    """The files that a suite.yaml names; those beside it where it is wrong, so that their problems are told as well."""
    patterns = head.files if head is not None else ("*.yaml",)
    try:
        found = [file for file in matching_files(document.path.parent, patterns) if file != document.path]
    except FilePatternError as error:
        document.problems.append(document.problem(("files",), str(error)))
        return []
    if head is not None and not found:
        document.problems.append(document.problem(("files",), f"{list(patterns)} match no file"))
    return found


def _read(path: Path) -> SourceFile:
    return read_python(path) if path.suffix == ".py" else read_suite_yaml(path)


@dataclass(slots=True)
class _Assembly:
    """Puts the files of a suite together; what does not fit becomes a problem of the file where it stands."""

    path: Path
    document: Document
    head: SuiteHead | None
    sources: Sequence[SourceFile]
    tools: dict[str, ToolMock] = field(default_factory=dict)
    tool_names: dict[str, object] = field(default_factory=dict)
    """Every tool of the suite as a key, those included that have problems of their own."""
    tool_places: dict[str, tuple[Document, KeyPath]] = field(default_factory=dict)
    tasks: dict[str, tuple[Document, KeyPath, Task]] = field(default_factory=dict)
    functions: dict[str, SuiteFunction | FunctionError] = field(default_factory=dict)

    def variants(self) -> list[TaskVariant]:
        """Every variant of every task that is right."""
        for source in self.sources:
            for key, tool in source.tools:
                self._add_tool(source.document, key, tool)
            self.tool_names.update(dict.fromkeys(source.tool_names))
        if self.head is not None:
            self._check_references(self.document, ("tools",), self.head.tools, self.tool_names)
        variants: list[TaskVariant] = []
        for source in self.sources:
            for key, name in source.other_references:
                self._check_known_tool(source.document, key, name, self.tool_names)
            for key, task in source.tasks:
                if task.name in self.tasks:
                    self._report(source.document, (*key, "name"), f"there are two tasks named {task.name!r}")
                self.tasks[task.name] = (source.document, key, task)
                variants += self._variants_of(source.document, key, task)
        return variants

    def _add_tool(self, document: Document, key: KeyPath, tool: ToolMock) -> None:
        if tool.name in self.tools:
            self._report(document, (*key, "name"), f"there are two tools named {tool.name!r}")
        self._check_tool(document, key, tool)
        self.tools[tool.name] = tool
        self.tool_places[tool.name] = (document, key)

    def _check_tool(self, document: Document, key: KeyPath, tool: ToolMock) -> None:
        if self.head is not None and tool.name == self.head.agent.finish_tool:
            self._report(
                document, (*key, "name"), f"{tool.name!r} is the finish tool of the suite; choose another name"
            )
        for place, case in enumerate(tool.cases):
            if case.function is not None:
                self._load_function(document, (*key, "cases", place, "function"), case.function)
        if tool.default.function is not None:
            self._load_function(document, (*key, "default", "function"), tool.default.function)

    def _load_function(self, document: Document, key: KeyPath, name: str) -> None:
        if name not in self.functions:
            try:
                self.functions[name] = load_function(self.path, name)
            except FunctionError as problem:
                self.functions[name] = problem
        found = self.functions[name]
        if isinstance(found, FunctionError):
            self._report(document, key, str(found))

    def _variants_of(self, document: Document, key: KeyPath, task: Task) -> list[TaskVariant]:
        inline = {tool.name: tool for tool in task.tools if isinstance(tool, ToolMock)}
        for place, tool in enumerate(task.tools):
            if isinstance(tool, ToolMock):
                self._check_tool(document, (*key, "tools", place), tool)
                if tool.name in self.tools:
                    self._report(
                        document, (*key, "tools", place, "name"), f"{tool.name!r} is a tool of the suite; give its name"
                    )
        default = () if self.head is None else self.head.tools
        names = tuple(tool if isinstance(tool, str) else tool.name for tool in task.tools) or default
        if not names and self.head is not None:
            self._report(document, key, "the task has no tools, and the suite no default ones")
        known = {**inline, **self.tool_names} if inline else self.tool_names
        self._check_references(document, (*key, "tools"), names if task.tools else (), known)
        self._check_parts(document, key, task, names)
        if self.head is None:
            return []
        # Also where a tool is missing or wrong: what is wrong with the variables is then told with it.
        tools = (inline.get(name) or self.tools.get(name) for name in names)
        return self._unfold(document, key, task, tuple(tool for tool in tools if tool is not None))

    def _check_parts(self, document: Document, key: KeyPath, task: Task, names: tuple[str, ...]) -> None:
        """References of checks and faults."""
        for place, check in enumerate(task.checks):
            self._check_known(document, (*key, "checks", place), "check", _tools_of(check), names)
            if isinstance(check, FunctionCheck):
                self._load_function(document, (*key, "checks", place, "function"), check.function)
        for place, fault in enumerate(task.faults):
            self._check_known(document, (*key, "faults", place), "fault", (fault.tool,), names)

    def _check_known(
        self, document: Document, key: KeyPath, what: str, named: tuple[str, ...], names: tuple[str, ...]
    ) -> None:
        for name in dict.fromkeys(named):
            if name not in names:
                hint = nearest(name, names)
                self._report(document, key, f"the {what} names the tool {name!r}, which this task does not have.{hint}")

    def _check_references(
        self, document: Document, key: KeyPath, names: tuple[str, ...], known: Collection[str]
    ) -> None:
        seen: set[str] = set()
        for place, name in enumerate(names):
            if self._check_known_tool(document, (*key, place), name, known) and name in seen:
                self._report(document, (*key, place), f"the tool {name!r} stands twice")
            seen.add(name)

    def _check_known_tool(self, document: Document, key: KeyPath, name: str, known: Collection[str]) -> bool:
        if name not in known:
            self._report(document, key, f"there is no tool {name!r} in this suite.{nearest(name, known)}")
        return name in known

    def _unfold(self, document: Document, key: KeyPath, task: Task, tools: tuple[ToolMock, ...]) -> list[TaskVariant]:
        assert self.head is not None
        wanted = [name for tool in tools for name in tool.functions]
        wanted += [check.function for check in task.checks if isinstance(check, FunctionCheck)]
        surroundings = Surroundings(
            agent=self.head.agent,
            tools=tools,
            tags=self.head.tags,
            functions={name: found for name in wanted if isinstance(found := self.functions[name], SuiteFunction)},
        )
        try:
            return list(unfold(task, surroundings))
        except VariantError as problem:
            self._report(document, (*key, *problem.key), str(problem))
        except pydantic.ValidationError as error:
            what = findings_text(error)
            self._report(document, key, f"a check or fault is wrong with a variant's values put in: {what}")
        return []

    def _report(self, document: Document, key: KeyPath, message: str) -> None:
        document.problems.append(document.problem(key, message))


def _tools_of(check: Check) -> tuple[str, ...]:
    if isinstance(check, CalledCheck | NotCalledCheck):
        return (check.tool,)
    return check.tools if isinstance(check, OrderCheck | TogetherCheck) else ()
