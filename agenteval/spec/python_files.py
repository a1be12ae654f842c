"""A Python file of tools and tasks -> the same models as a YAML file gives."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic

from agenteval.errors import Problem
from agenteval.loading import MAX_DEPTH, Document, Frozen, FrozenT, KeyPath, findings_text, not_json
from agenteval.spec.running import run_module
from agenteval.spec.suite import Task
from agenteval.spec.tools import ToolMock
from agenteval.spec.yaml_files import SourceFile


def read_python(path: Path) -> SourceFile:
    """Run one file and take its `TOOLS` and `TASKS`; what is wrong with it is in its document's `problems`.

    The file is the user's own program and may read what it likes; what it declares is part of the suite's digest.
    """
    document = Document(path=path)
    names = _run(document)
    tools = list(_models(document, names, "TOOLS", ToolMock))
    tasks = list(_models(document, names, "TASKS", Task))
    if not document.problems and not tools and not tasks:
        document.problems.append(document.problem((), "it has neither TOOLS nor TASKS"))
    return SourceFile(document=document, tools=tools, tasks=tasks, tool_names=[tool.name for _, tool in tools])


def _run(document: Document) -> dict[str, Any]:
    """What the file's names stand for; none where it fails, which is a problem of the document."""
    path = document.path
    try:
        # Not through an import, which would take a compiled file of the same second and size for this one.
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        with run_module(code, f"agenteval_suite_{path.stem}", {"__file__": str(path)}) as names:
            return names
    # The file is the user's code, which can raise anything, or leave.
    except (Exception, SystemExit) as error:
        document.problems.append(_failure(path, error))
        return {}


def _failure(path: Path, error: BaseException) -> Problem:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    if isinstance(error, pydantic.ValidationError):
        what = f"a {error.title} is wrong: {findings_text(error)}"
        return Problem(path=path, line=line, key="", message=what)
    return Problem(path=path, line=line, key="", message=f"it fails: {type(error).__name__}: {error}")


def _models(
    document: Document, names: dict[str, Any], name: str, model: type[FrozenT]
) -> Iterator[tuple[KeyPath, FrozenT]]:
    found = names.get(name, ())
    if not isinstance(found, list | tuple):
        document.problems.append(document.problem((name,), f"{name} is no list of {model.__name__}"))
        return
    for place, item in enumerate(found):
        if isinstance(item, model):
            problems = list(_no_json(item))
            for key, message in problems:
                document.problems.append(document.problem((name, place, *key), message))
            if not problems:
                yield (name, place), item
        else:
            what = f"it is a {type(item).__name__}, not a {model.__name__}"
            document.problems.append(document.problem((name, place), what))


def _no_json(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """(where, why) for every value in a model that a YAML file could not hold; only Python's own can be given such."""
    if isinstance(value, Frozen):
        for name, field in type(value).model_fields.items():
            yield from (((field.alias or name, *key), why) for key, why in _no_json(getattr(value, name)))
    elif isinstance(value, tuple):
        for place, item in enumerate(value):
            yield from (((place, *key), why) for key, why in _no_json(item))
    else:
        yield from not_json(value, max_depth=MAX_DEPTH)
