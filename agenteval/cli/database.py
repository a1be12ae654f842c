"""`agenteval runs`, `show` and `sql`."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from datetime import datetime
from typing import Any

from agenteval.cli.common import Commands, table
from agenteval.errors import UnknownNameError
from agenteval.report import exit_code, summarize, summary_json, summary_text
from agenteval.store import QueryResult, RunReader, list_runs, run_ids, run_query

_CELL = 100
"""Characters of a value that a table shows; --json and --csv show all."""


def add_commands(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    runs = commands.add_parser("runs", help="list the runs of the database", parents=[common])
    runs.add_argument("--json", action="store_true", help="print JSON")
    runs.set_defaults(command=show_runs)
    show = commands.add_parser("show", help="print a run's summary again", parents=[common])
    show.add_argument("run", metavar="RUN", nargs="?", help="a run's id, or the start of one (default: the last run)")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(command=show_run)
    sql = commands.add_parser("sql", help="query the database, read-only", parents=[common])
    sql.add_argument("query", metavar="QUERY", help='for instance "select * from run_summary"')
    form = sql.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON array of objects")
    form.add_argument("--csv", action="store_true", help="print CSV with a header")
    sql.set_defaults(command=query)


def show_runs(arguments: argparse.Namespace) -> int:
    """Print one line a run, newest first."""
    rows = list_runs(arguments.db)
    if arguments.json:
        print(json.dumps(rows, default=_json_value, indent=2))
        return 0
    columns = ("run", "suite", "contract", "model", "episodes", "pass rate", "diverged", "verdict")
    print(table(columns, [_run_row(row) for row in rows]))
    return 0


def show_run(arguments: argparse.Namespace) -> int:
    """Print the summary of a run; the exit status is the run's own."""
    summary = summarize(RunReader(path=arguments.db, run_id=find_run(arguments)))
    print(json.dumps(summary_json(summary), indent=2) if arguments.json else summary_text(summary))
    return exit_code(summary)


def find_run(arguments: argparse.Namespace) -> str:
    """The run meant by an id, the start of one, or nothing (the last run).

    Raises:
        UnknownNameError: If there is none, or several start alike.
    """
    known = run_ids(arguments.db)
    matching = [run_id for run_id in known if run_id.startswith(arguments.run or "")]
    if not matching or (arguments.run and len(matching) > 1 and arguments.run not in matching):
        raise UnknownNameError(
            what="single run",
            name=arguments.run or "",
            known=known[-10:],
            advice="List them with: agenteval runs",
        )
    return arguments.run if arguments.run in matching else matching[-1]


def query(arguments: argparse.Namespace) -> int:
    """Print the result of one query."""
    result = run_query(arguments.db, arguments.query)
    if arguments.json:
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        print(json.dumps(rows, default=_json_value, indent=2))
    elif arguments.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows([_csv_value(value) for value in row] for row in result.rows)
    else:
        print(_result_table(result))
    return 0


def _run_row(row: dict[str, Any]) -> tuple[str, ...]:
    rate = row["pass_rate"]
    return (
        row["run_id"],
        row["suite"],
        row["contract"],
        row["model"],
        f"{row['finished_episodes']}/{row['planned_episodes']}",
        "-" if rate is None else f"{rate:.0%}",
        str(row["divergences"]),
        row["verdict"] or row["status"],
    )


def _result_table(result: QueryResult) -> str:
    cells = [tuple(_cell(value) for value in row) for row in result.rows]
    count = f"({len(cells)} row{'' if len(cells) == 1 else 's'})"
    return f"{table(result.columns, cells)}\n{count}"


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    # Model output must not steer the terminal, nor break the table.
    text = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def _json_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _csv_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return json.dumps(value, default=_json_value) if isinstance(value, list | dict) else value
