"""Sweeps in the database: written whole at their end, and read back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agenteval.digest import canonical_json
from agenteval.errors import UnknownNameError
from agenteval.records import CellOutcome, ComparedPair, SweepRecord
from agenteval.store.database import open_for_reading, open_for_writing
from agenteval.store.journal import recover_for_reading
from agenteval.store.reader import stream_rows

_JSON_FIELDS = frozenset({"values", "definition"})


def write_sweep(path: Path, sweep: SweepRecord, outcomes: Sequence[CellOutcome], pairs: Sequence[ComparedPair]) -> None:
    """Store a sweep with its cells and compared pairs, all or nothing.

    Raises:
        StoreError: If the database cannot be written.
    """
    with open_for_writing(path) as connection:
        connection.begin()
        for table, records in (
            ("sweeps", [sweep]),
            ("sweep_cells", outcomes),
            ("sweep_pairs", pairs),
        ):
            rows = [_row(record, sweep.sweep_id, place) for place, record in enumerate(records)]
            if rows:
                columns = ", ".join(f'"{name}"' for name in rows[0])
                marks = ", ".join("?" for _ in rows[0])
                connection.executemany(
                    f"INSERT INTO {table} ({columns}) VALUES ({marks})", [list(row.values()) for row in rows]
                )
        connection.commit()


def _row(record: Any, sweep_id: str, place: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"sweep_id": sweep_id}
    fields |= {item.name: getattr(record, item.name) for item in dataclasses.fields(record)}
    if isinstance(record, CellOutcome):
        fields["place"] = place
    return {name: canonical_json(value) if name in _JSON_FIELDS else value for name, value in fields.items()}


def read_sweep(path: Path, sweep_id: str) -> tuple[SweepRecord, tuple[CellOutcome, ...], tuple[ComparedPair, ...]]:
    """A sweep, its cells in order, and every pair that was compared.

    Raises:
        UnknownNameError: If the database has no such sweep.
        StoreError: If it cannot be read.
    """
    sweeps = list(_records(path, SweepRecord, "sweeps", sweep_id, ""))
    if not sweeps:
        raise UnknownNameError(
            what="sweep",
            name=sweep_id,
            known=sweep_ids(path),
            advice="List them with: agenteval sql 'from sweeps'",
        )
    cells = tuple(_records(path, CellOutcome, "sweep_cells", sweep_id, "ORDER BY place"))
    pairs = tuple(_records(path, ComparedPair, "sweep_pairs", sweep_id, "ORDER BY rowid"))
    return sweeps[0], cells, pairs


def sweep_ids(path: Path) -> list[str]:
    """Ids of all sweeps, oldest first; none in a database that is older than sweeps."""
    recover_for_reading(path)
    with open_for_reading(path) as connection:
        tables = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
        if ("sweeps",) not in tables:
            return []
        return [row[0] for row in connection.execute("SELECT sweep_id FROM sweeps ORDER BY started_at").fetchall()]


def _records(path: Path, kind: type[Any], table: str, sweep_id: str, order: str) -> Iterator[Any]:
    names = [item.name for item in dataclasses.fields(kind)]
    columns = ", ".join(f'"{name}"' for name in names)
    with open_for_reading(path) as connection:
        result = connection.execute(f"SELECT {columns} FROM {table} WHERE sweep_id = ? {order}", [sweep_id])
        for row in stream_rows(result):
            yield kind(**{name: json.loads(value) if name in _JSON_FIELDS else value for name, value in row.items()})


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
