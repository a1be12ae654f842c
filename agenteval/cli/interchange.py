"""`agenteval import`: task files of other benchmarks become a suite, and what is lost is said."""

from __future__ import annotations

import argparse
import json

from agenteval.cli.common import emit
from agenteval.interchange import ImportReport, import_suite
from agenteval.interchange.writing import REPORT_FILE
from agenteval.log import printable

_SHOWN = 25
"""Reasons on the screen; the report has all of them."""


def import_tasks(arguments: argparse.Namespace) -> int:
    """Import a suite and print what became of its source; 0 also where fields were lost, which is no mistake."""
    report = import_suite(arguments.format, arguments.source, arguments.folder)
    emit(json.dumps(report.as_json(), indent=2) if arguments.json else _as_text(report))
    return 0


def _as_text(report: ImportReport) -> str:
    counts = report.counts()
    left_out = f"; {len(report.left_out)} are left out" if report.left_out else ""
    lines = [
        f"imported  {len(report.ids)} of {report.found} tasks{left_out}",
        f"with      tools: {report.tools}, checks: {report.checks}",
        f"suite     {report.folder}  {report.suite}, {report.digest}",
        f"lost      fields that are not mapped, or not as they were: {len(report.unmapped)}",
    ]
    lines += [f"{number:>9} {printable(field)}: {printable(reason)}" for field, reason, number in counts[:_SHOWN]]
    if len(counts) > _SHOWN:
        lines.append(f"{'':>9} and {len(counts) - _SHOWN} more reasons")
    lines.append(f"report    {report.folder / REPORT_FILE}")
    return "\n".join(lines)
