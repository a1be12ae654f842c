"""`agenteval sweep`: a matrix of runs, and its table."""

from __future__ import annotations

import argparse
import json
import platform
import secrets
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from agenteval import models
from agenteval.cli.common import emit, stop_on_signals
from agenteval.cli.progress import StepLine, SweepProgress
from agenteval.errors import InputError
from agenteval.log import printable
from agenteval.records import CellOutcome, Model, SweepRecord
from agenteval.report.sweep_text import sweep_exit_code, sweep_json, sweep_text
from agenteval.server import end_orphans, read_engine_facts
from agenteval.store import sweep_ids, write_sweep
from agenteval.sweep import Sweep, SweepSetting, SweepStop, compare_cells, load_sweep, run_cells, summarize_sweep


def sweep(arguments: argparse.Namespace) -> int:
    """Run the cells that have not been run, compare all, store the sweep and print its table."""
    if arguments.show:
        return _print(arguments.db, _last_sweep(arguments.db), as_json=arguments.json)
    if arguments.file is None:
        raise InputError("Name the sweep's file, or give --show for the table of the last sweep again.")
    loaded = load_sweep(arguments.file)
    started_at, started = datetime.now(UTC), time.monotonic()
    with stop_on_signals(SweepStop()) as stop:
        outcomes = _run(loaded, arguments, stop)
    record = SweepRecord(
        sweep_id=f"{started_at:%Y%m%d-%H%M%S}-{loaded.file.name}-{secrets.token_hex(2)}",
        name=loaded.file.name,
        description=loaded.file.description,
        definition=loaded.file.model_dump(mode="json"),
        started_at=started_at,
        elapsed_s=time.monotonic() - started,
    )
    write_sweep(arguments.db, record, outcomes, list(compare_cells(arguments.db, outcomes)))
    return _print(arguments.db, record.sweep_id, as_json=arguments.json)


def _run(loaded: Sweep, arguments: argparse.Namespace, stop: SweepStop) -> list[CellOutcome]:
    cache_dir = models.cache_folder()
    facts = read_engine_facts(cache_dir)
    end_orphans(cache_dir)
    found: dict[str, Model] = {}

    def resolve(name: str) -> Model:
        if name not in found:
            with StepLine() as line:
                found[name] = models.resolve(name, cache_dir=cache_dir, progress=line)
        return found[name]

    setting = SweepSetting(
        facts=facts,
        cache_dir=cache_dir,
        database=arguments.db,
        resolve=resolve,
        only=tuple(arguments.only) or ("*",),
        machine={"python": platform.python_version(), "platform": platform.platform(), "argv": sys.argv[1:]},
    )
    progress = SweepProgress(cells=len(loaded.cells), is_quiet=arguments.quiet)
    try:
        return run_cells(loaded, setting, progress, stop)
    finally:
        progress.close()


def _print(path: Path, sweep_id: str, *, as_json: bool) -> int:
    summary = summarize_sweep(path, sweep_id)
    emit(json.dumps(sweep_json(summary), indent=2) if as_json else sweep_text(summary))
    return sweep_exit_code(summary)


def _last_sweep(path: Path) -> str:
    known = sweep_ids(path)
    if not known:
        raise InputError(f"{printable(str(path))} holds no sweep yet. Make one with: agenteval sweep FILE")
    return known[-1]
