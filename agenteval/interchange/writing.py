"""A draft -> a suite's folder that loads, with a report beside it; all of it or nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.errors import FileProblemsError, InputError
from agenteval.interchange.draft import Draft
from agenteval.interchange.report import ImportReport
from agenteval.interchange.yaml_text import to_yaml
from agenteval.spec import Suite, load_suite

REPORT_FILE = "IMPORT.md"
MAX_CHUNK_BYTES = 600_000
"""A file of a suite is begun anew before it is larger; the loader takes 1,000,000."""
MAX_CHUNK_VALUES = 120_000
"""The same for its values; the loader takes 200,000."""
MAX_TURN_TOKENS = 1_024
"""Output tokens of one turn; the formats say nothing of it."""


def check_is_free(folder: Path) -> None:
    """Make sure that a suite can be written to a place, which is absent or an empty folder.

    Raises:
        InputError: If something is there.
    """
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        what = "is not empty" if folder.is_dir() else "is no folder"
        raise InputError(f"{folder} {what}, and nothing is overwritten. Name a folder that is absent or empty.")


def drop_oversized(draft: Draft) -> None:
    """Leave out every task that no file of a suite could hold."""
    for name, task in list(draft.tasks.items()):
        if len(to_yaml([task]).encode()) > MAX_CHUNK_BYTES or _count(task) > MAX_CHUNK_VALUES:
            reason = f"larger than a task may be ({MAX_CHUNK_BYTES:,} bytes, {MAX_CHUNK_VALUES:,} values)"
            draft.leave_out(draft.ids.pop(name), reason)
            del draft.tasks[name]


def write_suite(draft: Draft, folder: Path, report: ImportReport) -> ImportReport:
    """Write the suite and its report, and load it once to know that it is one.

    Args:
        draft: With at least one task.
        folder: Absent or empty; what stands there afterwards is whole.
        report: Of the import, without the suite's digest.

    Returns:
        The report as written, with the digest.

    Raises:
        FileProblemsError: If what was written does not load; nothing is left of it then.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f".{folder.name}.importing-{os.getpid()}")
    unfinished.mkdir()
    try:
        _write_files(draft, unfinished)
        digest = _load(unfinished, folder).digest()
        finished = replace(report, digest=digest)
        (unfinished / REPORT_FILE).write_text(finished.as_markdown(), encoding="utf-8")
        unfinished.replace(folder)
    finally:
        if unfinished.exists():
            shutil.rmtree(unfinished)
    return finished


def _load(unfinished: Path, folder: Path) -> Suite:
    try:
        return load_suite(unfinished)
    except FileProblemsError as error:
        # Named by the place where a person would have looked for them.
        problems = [replace(problem, path=folder / problem.path.name) for problem in error.problems]
        raise FileProblemsError(problems) from error


def _write_files(draft: Draft, folder: Path) -> None:
    head = {
        "name": draft.name,
        "description": draft.description,
        "agent": {
            "system_prompt": draft.system_prompt,
            "tool_choice": "auto",
            "max_turns": draft.max_turns,
            "max_tokens": MAX_TURN_TOKENS,
            "parallel_tool_calls": True,
            "finish_tool": None,
        },
        **({"tools": draft.default_tools} if draft.default_tools else {}),
    }
    (folder / "suite.yaml").write_text(to_yaml(head), encoding="utf-8")
    for section, items in (("tasks", list(draft.tasks.values())), ("tools", draft.tools)):
        chunks = list(_chunks(items))
        digits = len(str(len(chunks)))
        for number, chunk in enumerate(chunks, start=1):
            name = section if len(chunks) == 1 else f"{section}-{number:0{digits}}"
            (folder / f"{name}.yaml").write_text(f"{section}:\n{chunk}", encoding="utf-8")


def _chunks(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The texts of items in order, as many at a time as a file may hold."""
    texts: list[str] = []
    size = values = 0
    for item in items:
        text, item_values = to_yaml([item]), _count(item)
        item_size = len(text.encode())
        if texts and (size + item_size > MAX_CHUNK_BYTES or values + item_values > MAX_CHUNK_VALUES):
            yield "".join(texts)
            texts, size, values = [], 0, 0
        texts.append(text)
        size, values = size + item_size, values + item_values
    yield "".join(texts)


def _count(value: Any) -> int:
    """Values in a JSON value, itself included, as the loader counts them."""
    count, left = 0, [value]
    while left:
        item = left.pop()
        count += 1
        if isinstance(item, dict):
            left += item.values()
        elif isinstance(item, list):
            left += item
    return count
