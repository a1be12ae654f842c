"""`agenteval runs`, `show` and `sql`."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from agenteval.cli.common import emit
from agenteval.columns import table
from agenteval.errors import InputError, UnknownNameError
from agenteval.log import printable
from agenteval.records import OWN_AGENT, RunStatus, Verdict
from agenteval.report import exit_code, passed_text, summarize, summary_json, summary_text
from agenteval.store import QueryResult, RunReader, list_runs, run_query

_CELL = 100
"""Characters of a value that a table shows; --json and --csv show all."""


def show_runs(arguments: argparse.Namespace) -> int:
    """Print one line a run, newest first."""
    rows = list_runs(arguments.db)
    if arguments.json:
        emit(json.dumps(rows, default=_json_value, indent=2))
        return 0
    shows_agents = any(row["agent"] != OWN_AGENT for row in rows)
    columns = ("run", "suite", "contract", "model", *(["agent"] if shows_agents else []))
    columns = (*columns, "episodes", "passed", "diverged", "verdict")
    emit(table(columns, [_run_row(row, shows_agents=shows_agents) for row in rows]))
    return 0


def show_run(arguments: argparse.Namespace) -> int:
    """Print the summary of a run; the exit status is the run's own."""
    return print_summary(arguments.db, find_run(arguments.db, arguments.run), as_json=arguments.json)


def print_summary(path: Path, run_id: str, *, as_json: bool) -> int:
    """Print a run's summary and give the exit status that follows from it."""
    summary = summarize(RunReader(path=path, run_id=run_id))
    emit(json.dumps(summary_json(summary), indent=2) if as_json else summary_text(summary))
    return exit_code(summary)


def find_run(path: Path, name: str | None) -> str:
    """The run meant by an id, the start of one, or nothing (the last run).

    Raises:
        InputError: If there is no run at all.
        UnknownNameError: If there is none of that name, or several start alike.
    """
    known = [str(row["run_id"]) for row in reversed(list_runs(path))]
    if not known:
        raise InputError(f"{path} holds no run yet. Make one with: agenteval run tasks/toolsuite --contract strict")
    if name is None:
        return known[-1]
    matching = [name] if name in known else [run_id for run_id in known if run_id.startswith(name)]
    if len(matching) != 1:
        what = "run" if not matching else "single run that starts with"
        raise UnknownNameError(what=what, name=name, known=known[-10:], advice="List them with: agenteval runs")
    return matching[0]


def query(arguments: argparse.Namespace) -> int:
    """Print the result of one query."""
    result = run_query(arguments.db, arguments.query)
    if arguments.json:
        names = _distinct(result.columns)
        rows = [dict(zip(names, row, strict=True)) for row in result.rows]
        emit(json.dumps(_without_nan(rows), default=_json_value, indent=2))
    elif arguments.csv:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows([_csv_value(value) for value in row] for row in result.rows)
        emit(text.getvalue().removesuffix("\n"))
    else:
        emit(_result_table(result))
    return 0


def _run_row(row: dict[str, Any], *, shows_agents: bool) -> tuple[str, ...]:
    return (
        row["run_id"],
        row["suite"],
        row["contract"],
        row["model"],
        *([printable(row["agent"])] if shows_agents else []),
        f"{row['finished_episodes']}/{row['planned_episodes']}",
        passed_text(passed=row["passed"], graded=row["graded"], not_graded=row["not_graded"]),
        str(row["divergences"]),
        _outcome(row["status"], row["verdict"]),
    )


def _outcome(status: str, verdict: str | None) -> str:
    """The verdict, else how the run stands; `damaged` where no run writes the two so, since a list shows every run."""
    is_written = (
        status == "finished" if verdict in tuple(Verdict) else verdict is None and status in get_args(RunStatus)
    )
    return (verdict or status) if is_written else "damaged"


def _distinct(columns: tuple[str, ...]) -> list[str]:
    """The names as keys of an object: a second `name` is `name_2`, or the next number that is free."""
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name in names or (number > 1 and name in columns):
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return names


def _result_table(result: QueryResult) -> str:
    cells = [tuple(_cell(value) for value in row) for row in result.rows]
    count = f"({len(cells)} row{'' if len(cells) == 1 else 's'})"
    return f"{table(result.columns, cells)}\n{count}"


def _cell(value: Any) -> str:
    text = "" if value is None else printable(str(value))
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def _without_nan(value: Any) -> Any:
    """NaN and infinities, which SQL has and JSON lacks, as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    return [_without_nan(item) for item in value] if isinstance(value, list | tuple) else value


def _json_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _csv_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return json.dumps(value, default=_json_value) if isinstance(value, list | dict) else value
