"""Sweeps in the database: written whole at their end, and read back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agenteval.errors import UnknownNameError
from agenteval.records import CellOutcome, ComparedPair, SweepRecord
from agenteval.store.database import has_table, open_for_reading, open_for_writing
from agenteval.store.journal import recover_for_reading
from agenteval.store.lines import fields_of, with_moments
from agenteval.store.reader import stream_rows
from agenteval.store.table import BOOL, INT, MOMENT, REAL, TEXT, Table, insert

_SWEEPS = Table(
    name="sweeps",
    columns={
        "sweep_id": TEXT,
        "name": TEXT,
        "description": TEXT,
        "definition": TEXT,
        "started_at": MOMENT,
        "elapsed_s": REAL,
    },
    json_columns=frozenset({"definition"}),
)
_CELLS = Table(
    name="sweep_cells",
    columns={
        "sweep_id": TEXT,
        "cell": TEXT,
        "place": INT,
        "values": TEXT,
        "reference": TEXT,
        "status": TEXT,
        "run_id": TEXT,
        "message": TEXT,
        "elapsed_s": REAL,
    },
    json_columns=frozenset({"values"}),
)
_PAIRS = Table(
    name="sweep_pairs",
    columns={
        "sweep_id": TEXT,
        "cell": TEXT,
        "against": TEXT,
        "task": TEXT,
        "variant": TEXT,
        "sample": INT,
        "repeat_a": INT,
        "repeat_b": INT,
        "episode_a": TEXT,
        "episode_b": TEXT,
        "passed_a": BOOL,
        "passed_b": BOOL,
        "level": TEXT,
        "turn": INT,
        "token": INT,
        "margin_a": REAL,
        "margin_b": REAL,
        "cause_kind": TEXT,
        "cause": TEXT,
    },
)


def write_sweep(path: Path, sweep: SweepRecord, outcomes: Sequence[CellOutcome], pairs: Sequence[ComparedPair]) -> None:
    """Store a sweep with its cells and compared pairs, all or nothing.

    Raises:
        StoreError: If the database cannot be written.
    """
    with open_for_writing(path) as connection:
        connection.begin()
        for table, records in ((_SWEEPS, [sweep]), (_CELLS, outcomes), (_PAIRS, pairs)):
            shared = {"sweep_id": sweep.sweep_id}
            rows = [
                with_moments({**shared, "place": place, **fields_of(record)}) for place, record in enumerate(records)
            ]
            insert(connection, table.name, table.to_arrow(rows))
        connection.commit()


def read_sweep(path: Path, sweep_id: str) -> tuple[SweepRecord, tuple[CellOutcome, ...], tuple[ComparedPair, ...]]:
    """A sweep, its cells in order, and every pair that was compared.

    Raises:
        UnknownNameError: If the database has no such sweep.
        StoreError: If it cannot be read.
    """
    sweeps = list(_records(path, SweepRecord, _SWEEPS, sweep_id, ""))
    if not sweeps:
        raise UnknownNameError(
            what="sweep",
            name=sweep_id,
            known=sweep_ids(path),
            advice="List them with: agenteval sql 'from sweeps'",
        )
    cells = tuple(_records(path, CellOutcome, _CELLS, sweep_id, "ORDER BY place"))
    pairs = tuple(_records(path, ComparedPair, _PAIRS, sweep_id, "ORDER BY rowid"))
    return sweeps[0], cells, pairs


def sweep_ids(path: Path) -> list[str]:
    """Ids of all sweeps, oldest first; none in a database that is older than sweeps."""
    recover_for_reading(path)
    with open_for_reading(path) as connection:
        if not has_table(connection, _SWEEPS.name):
            return []
        return [row[0] for row in connection.execute("SELECT sweep_id FROM sweeps ORDER BY started_at").fetchall()]


def _records(path: Path, kind: type[Any], table: Table, sweep_id: str, order: str) -> Iterator[Any]:
    names = [item.name for item in dataclasses.fields(kind)]
    columns = ", ".join(f'"{name}"' for name in names)
    with open_for_reading(path) as connection:
        result = connection.execute(f"SELECT {columns} FROM {table.name} WHERE sweep_id = ? {order}", [sweep_id])
        for row in stream_rows(result):
            parsed = {name: json.loads(row[name]) for name in names if name in table.json_columns}
            yield kind(**row | parsed)


def finished_runs(path: Path, *, contract_digest: str) -> list[tuple[str, Any]]:
    """Runs of a contract that came to a verdict, newest first, with their locks as JSON; none without a database.

    Raises:
        StoreError: If the database cannot be read.
    """
    if not path.exists():
        return []
    recover_for_reading(path)
    with open_for_reading(path) as connection:
        rows = connection.execute(
            "SELECT run_id, facts->'lock' FROM runs WHERE status = 'finished' AND contract_digest = ? "
            "AND (facts->'lock') IS NOT NULL ORDER BY started_at DESC",
            [contract_digest],
        ).fetchall()
    return [(run_id, json.loads(lock)) for run_id, lock in rows]
