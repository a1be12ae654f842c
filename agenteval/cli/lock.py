"""`agenteval lock show` and `lock diff`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from agenteval.cli.common import emit
from agenteval.cli.database import find_run
from agenteval.digest import canonical_json
from agenteval.errors import LockFileError, UnknownNameError
from agenteval.lock import Comparison, Lock, compare_locks, flat_fields, parse_lock, read_lock
from agenteval.store import RunReader

_EXIT_STATUS = {"equal": 0, "different": 1, "unknown": 2}
"""2 where nobody can tell, as for a run without a verdict."""


def show_lock(arguments: argparse.Namespace) -> int:
    """Print every field of a lock with its dotted path, or the lock's file as it is."""
    lock = _find_lock(arguments.db, arguments.lock)
    if arguments.json:
        emit(lock.text().removesuffix("\n"))
        return 0
    fields = flat_fields(lock)
    width = max(len(path) for path, _ in fields)
    emit("\n".join(f"{path:<{width}}  {value}" for path, value in fields))
    return 0


def diff_locks(arguments: argparse.Namespace) -> int:
    """Print the fields in which two locks differ; the exit status says whether they do."""
    comparison = compare_locks(_find_lock(arguments.db, arguments.a), _find_lock(arguments.db, arguments.b))
    emit(json.dumps(_as_json(comparison), indent=2, ensure_ascii=False) if arguments.json else _text(comparison))
    return _EXIT_STATUS[_verdict(comparison)]


def _verdict(comparison: Comparison) -> str:
    if comparison.differences:
        return "different"
    return "unknown" if comparison.unknown else "equal"


def _text(comparison: Comparison) -> str:
    lines = [str(difference) for difference in comparison.differences]
    if comparison.unknown:
        names = ", ".join(comparison.unknown)
        lines.append(f"unknown, since someone else ran the server: {names}")
    return "\n".join(lines or ["equal in every field that is compared"])


def _as_json(comparison: Comparison) -> dict[str, object]:
    return {
        "verdict": _verdict(comparison),
        "differences": [{"field": each.field, "a": each.a, "b": each.b} for each in comparison.differences],
        "unknown": list(comparison.unknown),
    }


def _find_lock(database: Path, name: str | None) -> Lock:
    """The lock in a file, or that of a run of the database; None is the last run.

    Raises:
        LockFileError: If there is no such file or run, or it holds no lock.
        UnknownNameError: If no file and no run, or more than one run, has that name.
        InputError: If the database holds no run.
        StoreError: If the database cannot be read.
    """
    if name is not None and (Path(name).exists() or "/" in name or name.endswith(".json")):
        return read_lock(Path(name))
    if name is not None and not database.is_file():
        reason = f"there is no such file, and no database {database} with a run of that name"
        advice = "Name a lock's file, or the database of the run with --db."
        raise LockFileError(origin=name, reason=reason, advice=advice)
    try:
        run_id = find_run(database, name)
    except UnknownNameError as error:
        what, advice = f"file and no {error.what}", "Runs are listed by: agenteval runs"
        raise UnknownNameError(what=what, name=error.name, known=error.known, advice=advice) from error
    run, _ = RunReader(path=database, run_id=run_id).run()
    held = run.facts.get("lock")
    if held is None:
        reason = f"agenteval {run.agenteval_version} wrote none"
        raise LockFileError(origin=f"run {run_id}", reason=reason, advice="Run it again to have one.")
    return parse_lock(canonical_json(held).encode(), origin=f"run {run_id}")
