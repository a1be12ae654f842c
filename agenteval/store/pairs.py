"""What of two runs' episodes is equal, found by the database; and the turns of those that are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from agenteval.records import Turn
from agenteval.store import tables
from agenteval.store.database import open_for_reading, quoted
from agenteval.store.lines import Row
from agenteval.store.reader import Groups, RunReader, stream_rows

_DID = """
SELECT episode_id, turn, list((tool, arguments, result, error) ORDER BY call) AS did
FROM {schema}.tool_calls WHERE run_id = ? GROUP BY ALL
"""
_SHARED = """
WITH a AS (SELECT * FROM main.turns WHERE run_id = ?), b AS (SELECT * FROM {other}.turns WHERE run_id = ?),
    did_a AS ({did_a}), did_b AS ({did_b}),
    left_side AS (SELECT p.pair, a.*, did_a.did FROM pairs p JOIN a ON a.episode_id = p.a
        LEFT JOIN did_a ON did_a.episode_id = a.episode_id AND did_a.turn = a.turn),
    right_side AS (SELECT p.pair, b.*, did_b.did FROM pairs p JOIN b ON b.episode_id = p.b
        LEFT JOIN did_b ON did_b.episode_id = b.episode_id AND did_b.turn = b.turn)
SELECT pair,
    bool_and(x.turn IS NOT NULL AND y.turn IS NOT NULL AND x.prompt_kept = y.prompt_kept
        AND x.prompt_added = y.prompt_added AND x.output_ids = y.output_ids
        AND x.did IS NOT DISTINCT FROM y.did) AS has_equal_tokens,
    min(coalesce(x.turn, y.turn)) FILTER (x.logprobs IS DISTINCT FROM y.logprobs
        OR x.runner_up_tokens IS DISTINCT FROM y.runner_up_tokens
        OR x.runner_up_logprobs IS DISTINCT FROM y.runner_up_logprobs) AS first_other_logprobs
FROM left_side x FULL JOIN right_side y USING (pair, turn) GROUP BY pair
"""
_TURNS = """
SELECT t.* REPLACE ('{}' AS request, '{}' AS response), w.place
FROM turns t JOIN wanted w ON w.episode = t.episode_id AND t.turn <= w.last ORDER BY w.place, t.turn
"""
_CALLS = """
SELECT c.*, w.place
FROM tool_calls c JOIN wanted w ON w.episode = c.episode_id AND c.turn <= w.last
ORDER BY w.place, c.turn, c.call
"""
ALL_TURNS, NO_TURN = 2**31 - 1, -1
"""Numbers of a last turn that mean every turn and none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the turns of two episodes have in common."""

    has_equal_tokens: bool
    """Prompts, output tokens, tool calls and results are equal to the character, in every turn."""
    first_other_logprobs: int | None
    """First turn with another logprob or runner-up; None where there is none."""

    @property
    def last_telling_turn(self) -> int:
        """Turns after it cannot change where two episodes part, or that they do not; `NO_TURN` where none can."""
        if not self.has_equal_tokens:
            return ALL_TURNS
        return NO_TURN if self.first_other_logprobs is None else self.first_other_logprobs


_NO_TURNS = Shared(has_equal_tokens=True, first_other_logprobs=None)


def shared_turns(a: RunReader, b: RunReader, pairs: Sequence[tuple[str, str]]) -> list[Shared]:
    """What each pair's turns have in common.

    Args:
        a: The run of the first episodes.
        b: The run of the second ones; of another database, or the same.
        pairs: Ids of two episodes.

    Raises:
        StoreError: If a database cannot be read.
    """
    with _both(a, b) as (connection, other):
        table = {
            "pair": range(len(pairs)),
            "a": [left for left, _ in pairs],
            "b": [right for _, right in pairs],
        }
        connection.register("pairs", pa.table({name: pa.array(list(values)) for name, values in table.items()}))
        query = _SHARED.format(other=other, did_a=_DID.format(schema="main"), did_b=_DID.format(schema=other))
        found = {
            row["pair"]: Shared(
                has_equal_tokens=row["has_equal_tokens"], first_other_logprobs=row["first_other_logprobs"]
            )
            for row in stream_rows(connection.execute(query, [a.run_id, b.run_id, a.run_id, b.run_id]))
        }
    return [found.get(pair, _NO_TURNS) for pair in range(len(pairs))]


def telling_turns(reader: RunReader, wanted: Sequence[tuple[str, int]]) -> Iterator[tuple[Turn, ...]]:
    """Turns of episodes, each up to a turn, without what was sent and received: request and response are empty.

    Beyond what DuckDB sorts with, memory holds the turns of one episode and a chunk of each table's rows.

    Args:
        reader: The episodes' run.
        wanted: Id of an episode, and the number of its last turn that is wanted.

    Raises:
        StoreError: If the database cannot be read.
    """
    places = pa.table(
        {
            "place": pa.array(range(len(wanted)), pa.int32()),
            "episode": pa.array([episode for episode, _ in wanted], pa.string()),
            "last": pa.array([last for _, last in wanted], pa.int32()),
        }
    )
    turns = Groups(_rows(reader, _TURNS, places), "place")
    calls = Groups(_rows(reader, _CALLS, places), "place", "turn")
    for place in range(len(wanted)):
        yield tuple(
            tables.turn_from(row, tuple(tables.tool_call_from(call) for call in calls.take(place, row["turn"])))
            for row in turns.take(place)
        )


def _rows(reader: RunReader, query: str, wanted: pa.Table) -> Iterator[Row]:
    with open_for_reading(reader.path) as connection:
        connection.register("wanted", wanted)
        yield from stream_rows(connection.execute(query))


@contextmanager
def _both(a: RunReader, b: RunReader) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """A connection that sees both databases, and the schema of the second one."""
    with open_for_reading(a.path) as connection:
        if a.path.resolve() == b.path.resolve():
            yield connection, "main"
            return
        # Opened by itself first: a file that is missing, damaged or newer is then told in our words.
        with open_for_reading(b.path):
            pass
        connection.execute(f"ATTACH {quoted(b.path.absolute())} AS other (READ_ONLY)")
        yield connection, "other"
