"""Reading a run back as records."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from agenteval.errors import UnknownNameError
from agenteval.records import (
    Boot,
    BootEnd,
    Divergence,
    Episode,
    Evidence,
    FaultCount,
    Grade,
    Run,
    RunCosts,
    RunEnd,
    TaskRecord,
    Turn,
)
from agenteval.schema import RUN_SUMMARY
from agenteval.store import tables
from agenteval.store.database import has_table, open_for_reading
from agenteval.store.journal import recover_for_reading
from agenteval.store.lines import Row

_CHUNK = 2_000
"""Rows fetched at once."""
_IN_ORDER = "ORDER BY e.task, e.variant, e.sample, e.repeat, e.position"
"""Repeats of a sample beside each other; the three queries below are read alongside, so all have this order."""
_EPISODES_IN_ORDER = f"SELECT e.* FROM episodes e WHERE e.run_id = ? {_IN_ORDER}"
_TURNS_IN_ORDER = (
    "SELECT t.* FROM turns t JOIN episodes e USING (episode_id) "
    f"WHERE t.run_id = ? AND t.kind = 'episode' {_IN_ORDER}, t.turn"
)
_CALLS_IN_ORDER = (
    "SELECT c.* FROM tool_calls c JOIN turns t USING (episode_id, turn) JOIN episodes e USING (episode_id) "
    f"WHERE c.run_id = ? AND t.kind = 'episode' {_IN_ORDER}, c.turn, c.call"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReader:
    """One run of one database; each call opens the file for a moment."""

    path: Path
    run_id: str

    def run(self) -> tuple[Run, RunEnd | None]:
        """The run and how it ended.

        Raises:
            UnknownNameError: If the database has no such run.
        """
        rows = self._rows("SELECT * FROM runs WHERE run_id = ?")
        if not rows:
            raise UnknownNameError(
                what="run",
                name=self.run_id,
                known=run_ids(self.path),
                advice="List them with: agenteval runs",
            )
        return tables.run_from(rows[0]), tables.run_end_from(rows[0])

    def tasks(self) -> list[TaskRecord]:
        """The task variants of the run, in the order in which they ran; none in databases older than schema 2."""
        return self._records("tasks", "ORDER BY rowid") if self._has("tasks") else []

    def boots(self) -> list[tuple[Boot, BootEnd | None]]:
        """The run's boots, in order of their start."""
        rows = self._rows("SELECT * FROM boots WHERE run_id = ? ORDER BY started_at")
        return [(tables.boot_from(row), tables.boot_end_from(row)) for row in rows]

    def episodes(self) -> list[Episode]:
        """The episodes that have ended, in the run's order."""
        rows = self._rows("SELECT * FROM episodes WHERE run_id = ? ORDER BY position")
        return [tables.episode_from(row) for row in rows]

    def grades(self) -> list[Grade]:
        """All grades, by episode and check."""
        return self._records("grades", 'ORDER BY episode_id, "check"')

    def faults(self) -> list[FaultCount]:
        """Every declared fault of every episode that has ended, in the run's order; none before schema 2."""
        if not self._has("faults"):
            return []
        rows = self._rows("SELECT * FROM faults WHERE run_id = ? ORDER BY episode_id, fault")
        return [tables.fault_count_from(row) for row in rows]

    def evidence(self) -> list[Evidence]:
        """All evidence, in the order in which it was found."""
        return self._records("evidence", "ORDER BY rowid")

    def divergences(self) -> list[Divergence]:
        """All divergences between the run's repeats."""
        return self._records("divergences", "ORDER BY episode_a, episode_b")

    def trajectories(self) -> Iterator[tuple[Episode, tuple[Turn, ...]]]:
        """Each ended episode with its turns, or none, repeats of a sample together and in order.

        Beyond what DuckDB sorts with, memory holds the turns of one episode and a chunk of each table's rows.
        """
        turns = Groups(self._stream(_TURNS_IN_ORDER, [self.run_id]), "episode_id")
        calls = Groups(self._stream(_CALLS_IN_ORDER, [self.run_id]), "episode_id", "turn")
        for row in self._stream(_EPISODES_IN_ORDER, [self.run_id]):
            episode = tables.episode_from(row)
            yield episode, tuple(_turn_from(turn, calls) for turn in turns.take(episode.plan.episode_id))

    def costs(self) -> RunCosts:
        """What the run's episodes took, in tokens and time."""
        (row,) = self._rows(
            "SELECT count(*) AS turns, coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens, "
            "CASE WHEN count(*) = count(cached_tokens) THEN sum(cached_tokens)::BIGINT END AS cached_tokens, "
            "coalesce(sum(len(output_ids)), 0)::BIGINT AS output_tokens, "
            "(SELECT avg(elapsed_s) FROM episodes e WHERE e.run_id = any_value(t.run_id)) AS episode_s "
            "FROM turns t WHERE t.run_id = ? AND t.kind = 'episode'"
        )
        return RunCosts(**row)

    def probe_turns(self) -> tuple[Turn, ...]:
        """The probes of all boots, in order of their start."""
        query = "SELECT * FROM turns WHERE run_id = ? AND kind = 'probe' ORDER BY started_at"
        return tuple(tables.turn_from(row, ()) for row in self._stream(query, [self.run_id]))

    def turns(self, episode_id: str) -> tuple[Turn, ...]:
        """One episode's turns, in order."""
        where = "WHERE run_id = ? AND episode_id = ?"
        parameters = [self.run_id, episode_id]
        calls = Groups(
            self._stream(f"SELECT * FROM tool_calls {where} ORDER BY turn, call", parameters), "episode_id", "turn"
        )
        rows = self._stream(f"SELECT * FROM turns {where} ORDER BY turn", parameters)
        return tuple(_turn_from(row, calls) for row in rows)

    def _records(self, table: str, order: str) -> list[Any]:
        rows = self._rows(f"SELECT * FROM {table} WHERE run_id = ? {order}")
        return [tables.FROM_ROW[table](row) for row in rows]

    def _has(self, table: str) -> bool:
        with open_for_reading(self.path) as connection:
            return has_table(connection, table)

    def _rows(self, query: str) -> list[Row]:
        return list(self._stream(query, [self.run_id]))

    def _stream(self, query: str, parameters: list[Any]) -> Iterator[Row]:
        with open_for_reading(self.path) as connection:
            yield from stream_rows(connection.execute(query, parameters))


class Groups:
    """Rows that share a key, taken in the order in which the stream has the keys."""

    def __init__(self, rows: Iterator[Row], *key: str) -> None:
        self._groups = itertools.groupby(rows, key=lambda row: tuple(row[name] for name in key))
        self._next = next(self._groups, None)

    def take(self, *key: Any) -> list[Row]:
        """The rows of a key; none where the stream has other keys next."""
        if self._next is None or self._next[0] != key:
            return []
        rows = list(self._next[1])
        self._next = next(self._groups, None)
        return rows


def _turn_from(row: Row, calls: Groups) -> Turn:
    made = calls.take(row["episode_id"], row["turn"])
    return tables.turn_from(row, tuple(tables.tool_call_from(call) for call in made))


def stream_rows(result: duckdb.DuckDBPyConnection) -> Iterator[Row]:
    """Rows of a result as mappings, a chunk at a time."""
    names = [column[0] for column in result.description or []]
    while rows := result.fetchmany(_CHUNK):
        for row in rows:
            yield dict(zip(names, row, strict=True))


def list_runs(path: Path) -> list[Row]:
    """The rows of `run_summary`, newest first; journals of dead runners are loaded before.

    Of a database that nothing has been written to since its schema was the newest, they are the same.
    """
    recover_for_reading(path)
    with open_for_reading(path) as connection:
        return list(stream_rows(connection.execute(f"{RUN_SUMMARY} ORDER BY r.started_at DESC")))


def run_ids(path: Path) -> list[str]:
    """Ids of all runs, oldest first."""
    with open_for_reading(path) as connection:
        return [row[0] for row in connection.execute("SELECT run_id FROM runs ORDER BY started_at").fetchall()]
