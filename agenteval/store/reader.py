"""Reading a run back as records."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from agenteval.errors import UnknownNameError
from agenteval.records import Boot, BootEnd, Divergence, Episode, Evidence, Grade, Run, RunEnd, ToolCall, Turn
from agenteval.store import tables
from agenteval.store.database import open_for_reading
from agenteval.store.journal import recover_for_reading
from agenteval.store.lines import Row

_CHUNK = 2_000


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

    def evidence(self) -> list[Evidence]:
        """All evidence, in the order in which it was found."""
        return self._records("evidence", "ORDER BY rowid")

    def divergences(self) -> list[Divergence]:
        """All divergences between the run's repeats."""
        return self._records("divergences", "ORDER BY episode_a, episode_b")

    def trajectories(self) -> Iterator[tuple[Episode, tuple[Turn, ...]]]:
        """Each ended episode with its turns, repeats of a sample together; memory holds one chunk of turns."""
        episodes = {episode.plan.episode_id: episode for episode in self.episodes()}
        calls = self._tool_calls()
        rows = self._stream(
            "SELECT t.* FROM turns t JOIN episodes e USING (episode_id) WHERE t.run_id = ? AND t.kind = 'episode' "
            "ORDER BY e.task, e.variant, e.sample, e.repeat, t.turn",
            [self.run_id],
        )
        with_turns = set()
        for episode_id, group in itertools.groupby(rows, key=lambda row: str(row["episode_id"])):
            with_turns.add(episode_id)
            turns = (tables.turn_from(row, tuple(calls.get((episode_id, row["turn"]), ()))) for row in group)
            yield episodes[episode_id], tuple(turns)
        for episode_id in sorted(episodes.keys() - with_turns):
            yield episodes[episode_id], ()

    def probe_turns(self) -> tuple[Turn, ...]:
        """The probes of all boots, in order of their start."""
        query = "SELECT * FROM turns WHERE run_id = ? AND kind = 'probe' ORDER BY started_at"
        return tuple(tables.turn_from(row, ()) for row in self._stream(query, [self.run_id]))

    def turns(self, episode_id: str) -> tuple[Turn, ...]:
        """One episode's turns, in order."""
        calls = self._tool_calls(episode_id)
        query = "SELECT * FROM turns WHERE run_id = ? AND episode_id = ? ORDER BY turn"
        rows = self._stream(query, [self.run_id, episode_id])
        return tuple(tables.turn_from(row, tuple(calls.get((episode_id, row["turn"]), ()))) for row in rows)

    def _tool_calls(self, episode_id: str | None = None) -> dict[tuple[str, int], list[ToolCall]]:
        """Calls by episode and turn; of the whole run where no episode is named."""
        calls: dict[tuple[str, int], list[ToolCall]] = defaultdict(list)
        query = (
            "SELECT * FROM tool_calls WHERE run_id = $1 AND ($2 IS NULL OR episode_id = $2) "
            "ORDER BY episode_id, turn, call"
        )
        for row in self._stream(query, [self.run_id, episode_id]):
            calls[row["episode_id"], row["turn"]].append(tables.tool_call_from(row))
        return calls

    def _records(self, table: str, order: str) -> list[Any]:
        rows = self._rows(f"SELECT * FROM {table} WHERE run_id = ? {order}")
        return [tables.FROM_ROW[table](row) for row in rows]

    def _rows(self, query: str) -> list[Row]:
        return list(self._stream(query, [self.run_id]))

    def _stream(self, query: str, parameters: list[Any]) -> Iterator[Row]:
        with open_for_reading(self.path) as connection:
            yield from stream_rows(connection.execute(query, parameters))


def stream_rows(result: duckdb.DuckDBPyConnection) -> Iterator[Row]:
    """Rows of a result as mappings, a chunk at a time."""
    names = [column[0] for column in result.description or []]
    while rows := result.fetchmany(_CHUNK):
        for row in rows:
            yield dict(zip(names, row, strict=True))


def list_runs(path: Path) -> list[Row]:
    """The rows of `run_summary`, newest first; journals of dead runners are loaded before."""
    recover_for_reading(path)
    with open_for_reading(path) as connection:
        return list(stream_rows(connection.execute("SELECT * FROM run_summary ORDER BY started_at DESC")))


def run_ids(path: Path) -> list[str]:
    """Ids of all runs, oldest first."""
    with open_for_reading(path) as connection:
        return [row[0] for row in connection.execute("SELECT run_id FROM runs ORDER BY started_at").fetchall()]
