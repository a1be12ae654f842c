"""One import: read the source, draft the suite, write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agenteval.errors import FileProblemsError, InputError, Problem, UnknownNameError
from agenteval.interchange import bfcl, tau2
from agenteval.interchange.draft import Draft
from agenteval.interchange.report import ImportReport
from agenteval.interchange.writing import check_is_free, drop_oversized, write_suite

FORMATS: Mapping[str, tuple[Callable[[Path], Draft], Sequence[tuple[str, str]]]] = {
    "tau2": (tau2.draft_of, tau2.MAPPED),
    "bfcl-multi-turn": (bfcl.draft_of, bfcl.MAPPED),
}
"""Name on the command line to what reads the format, and what of it maps."""


def import_suite(source_format: str, source: Path, folder: Path) -> ImportReport:
    """Import task files into a new suite.

    Args:
        source_format: A name of `FORMATS`.
        source: A file or folder of that format.
        folder: Where the suite goes; absent or empty.

    Raises:
        UnknownNameError: If there is no such format.
        InputError: If the source is not there, or the folder is not free.
        FileProblemsError: With every problem of the source; nothing is written then.
    """
    if source_format not in FORMATS:
        raise UnknownNameError(what="format", name=source_format, known=list(FORMATS), advice="")
    if not source.exists():
        raise InputError(f"{source} does not exist. Name a file or folder of the format {source_format}.")
    check_is_free(folder)
    draft_of, mapped = FORMATS[source_format]
    draft = draft_of(source)
    drop_oversized(draft)
    if not draft.tasks:
        raise FileProblemsError(_why_nothing(draft, source))
    report = ImportReport(
        source_format=source_format,
        source=source,
        folder=folder,
        suite=draft.name,
        digest="",
        found=draft.found,
        ids=draft.ids,
        left_out=draft.left_out,
        tools=len(draft.tools),
        checks=sum(len(task["checks"]) for task in draft.tasks.values()),
        mapped=mapped,
        unmapped=draft.unmapped,
    )
    return write_suite(draft, folder, report)


def _why_nothing(draft: Draft, source: Path) -> list[Problem]:
    """One problem a task; a suite without tasks would be none."""
    problems = [
        Problem(path=source, line=None, key=name, message=f"this task cannot be imported: {reason}")
        for name, reason in draft.left_out.items()
    ]
    return problems or [Problem(path=source, line=None, key="", message="there is no task in it")]
