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
from agenteval.store import RunReader


def report(arguments: argparse.Namespace) -> int:
    """Write the report; it tells what the runs came to, and its own exit status only whether it was written."""
    names = arguments.runs or [None]
    run_ids = [find_run(arguments.db, name) for name in names]
    found = make_report([RunReader(path=arguments.db, run_id=run_id) for run_id in run_ids])
    if arguments.html is not None:
        _write(arguments.html, report_html(found))
    if arguments.markdown or arguments.html is None:
        emit(report_markdown(found))
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write {printable(str(path))}: {reason}. Name another file with --html.") from error
    say(f"report    {printable(str(path))}")
