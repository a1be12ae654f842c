"""`agenteval report`: some runs as one page, or as a comment for a pull request."""

from __future__ import annotations

import argparse
from pathlib import Path

from agenteval.cli.common import emit, say
from agenteval.cli.database import find_run
from agenteval.errors import InputError
from agenteval.log import printable
from agenteval.report.markdown import report_markdown
from agenteval.report.page import make_report, report_html
from agenteval.store import RunReader, run_ids

STDOUT = Path("-")
"""The file that stands for stdout."""


def report(arguments: argparse.Namespace) -> int:
    """Write the report; it tells what the runs came to, and its own exit status only whether it was written."""
    markdown = arguments.markdown
    if markdown is None and arguments.html is None:
        markdown = STDOUT
    if markdown is not None:
        _refuse_a_run(arguments.db, markdown)
    names = arguments.runs or [None]
    if arguments.reference is not None:
        names = [arguments.reference, *names]
    chosen = dict.fromkeys(find_run(arguments.db, name) for name in names)
    found = make_report([RunReader(path=arguments.db, run_id=run_id) for run_id in chosen])
    if arguments.html is not None:
        _write(arguments.html, report_html(found), option="--html")
    if markdown == STDOUT:
        emit(report_markdown(found))
    elif markdown is not None:
        _write(markdown, f"{report_markdown(found)}\n", option="--markdown")
    return 0


def _refuse_a_run(db: Path, markdown: Path) -> None:
    """`--markdown RUN` would leave the run out and write a file of its name."""
    if any(run_id.startswith(str(markdown)) for run_id in run_ids(db)):
        name = printable(str(markdown))
        raise InputError(f"--markdown {name}: that is a run. Put runs first: agenteval report {name} --markdown")


def _write(path: Path, text: str, *, option: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write {printable(str(path))}: {reason}. Name another file with {option}.") from error
    say(f"report    {printable(str(path))}")
