"""Where a domain's files lie, and what stands in them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.interchange.source import read_json_values, read_text, unwritable
from agenteval.interchange.tau2.models import Tau2Task
from agenteval.interchange.tau2.tool_code import ToolCode, read_tool_code
from agenteval.loading import Document, raise_if_any, validate

MAX_POLICY_CHARACTERS = 300_000
"""A longer policy is refused: the system prompt is part of every episode."""
_POLICIES = ("policy.md", "main_policy.md")
_DATABASES = ("db.json", "db.toml")


@dataclass(slots=True)
class Domain:
    """What was found of a domain."""

    name: str
    tasks: list[Tau2Task] = field(default_factory=list)
    policy: str | None = None
    policy_file: str | None = None
    database: dict[str, Any] | None = None
    database_file: str | None = None
    tools: list[ToolCode] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """Names in the folder that nothing reads; a file given alone has no folder of its own."""

    @property
    def has_tool_code(self) -> bool:
        """Whether the tools' types are known."""
        return bool(self.tools)


def read_domain(path: Path) -> Domain:
    """Read a domain's folder, or a tasks file and what lies beside it.

    Raises:
        InputError: If there is no tasks file.
        FileProblemsError: With every problem of every file.
    """
    tasks_file = path / "tasks.json" if path.is_dir() else path
    if not tasks_file.is_file():
        raise InputError(
            f"{tasks_file} is no file. Name a tau2-bench tasks file, or a domain's folder with tasks.json."
        )
    folder = tasks_file.resolve().parent
    domain = Domain(name=folder.name if tasks_file.stem == "tasks" else f"{folder.name}-{tasks_file.stem}")
    documents = [
        _read_tasks(tasks_file, domain),
        _read_policy(folder, domain),
        _read_database(folder, domain),
        _read_tools(folder, domain),
    ]
    raise_if_any(document for document in documents if document is not None)
    if path.is_dir():
        read = {tasks_file.name, domain.policy_file, domain.database_file, "tools.py" if domain.tools else None}
        names = sorted(item.name for item in folder.iterdir())
        domain.unread = [name for name in names if name not in read and not name.startswith((".", "_"))]
    return domain


def _read_tasks(path: Path, domain: Domain) -> Document:
    document = read_json_values(path)
    seen: dict[str, int] = {}
    for place, value in document.values():
        task = validate(document, Tau2Task, value, (place,))
        if task is None:
            continue
        first = seen.setdefault(str(task.id), place)
        if first != place:
            message = f"there are two tasks with the id {str(task.id)!r}; the first is [{first}]"
            document.problems.append(document.problem((place, "id"), message))
        domain.tasks.append(task)
    return document


def _read_policy(folder: Path, domain: Domain) -> Document | None:
    name = next((name for name in _POLICIES if (folder / name).is_file()), None)
    if name is None:
        return None
    document = Document(path=folder / name)
    text = read_text(document)
    if text is not None and len(text) > MAX_POLICY_CHARACTERS:
        document.problems.append(document.problem((), f"longer than {MAX_POLICY_CHARACTERS:,} characters"))
    domain.policy, domain.policy_file = text, name
    return document


def _read_database(folder: Path, domain: Domain) -> Document | None:
    name = next((name for name in _DATABASES if (folder / name).is_file()), None)
    if name is None:
        return None
    domain.database_file = name
    if name.endswith(".toml"):
        return _read_toml(folder / name, domain)
    document = read_json_values(folder / name)
    found = [value for _, value in document.values()]
    if not document.problems and (len(found) != 1 or not isinstance(found[0], dict)):
        document.problems.append(document.problem((), "it must be one JSON object"))
    elif not document.problems:
        domain.database = found[0]
    return document


def _read_toml(path: Path, domain: Domain) -> Document:
    document = Document(path=path)
    text = read_text(document)
    try:
        domain.database = None if text is None else _as_json(tomllib.loads(text))
        found = [document.problem(key, message) for key, message in unwritable(domain.database)]
        document.problems += found
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        document.problems.append(document.problem((), f"not TOML: {error}"))
    return document


def _as_json(value: Any) -> Any:
    """A TOML value as JSON; dates as the texts that stand in the file."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value if isinstance(value, str | int | float) else value.isoformat()


def _read_tools(folder: Path, domain: Domain) -> Document | None:
    path = next((path for path in _places_of_tools(folder) if path.is_file()), None)
    if path is None:
        return None
    document = Document(path=path)
    domain.tools, problems = read_tool_code(path)
    document.problems += problems
    return document


def _places_of_tools(folder: Path) -> Iterator[Path]:
    """Beside the tasks, or where tau2-bench's own repository has the code of a domain."""
    yield folder / "tools.py"
    if folder.parts[-4:-1] == ("data", "tau2", "domains"):
        yield folder.parents[3] / "src" / "tau2" / "domains" / folder.name / "tools.py"
