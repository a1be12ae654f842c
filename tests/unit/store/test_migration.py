"""Databases of versions before: migrated when they are written to, and read as they are until then."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from agenteval.errors import QueryError
from agenteval.records import CauseKind, Divergence, FaultCount, Grade, Level, TaskRecord, ToolCall
from agenteval.schema import MIGRATIONS, VERSION
from agenteval.store import RunReader, RunWriter, files_folder, list_runs, recover, run_query
from agenteval.store.database import open_for_writing
from agenteval.store.lines import parse_line, to_line
from agenteval.store.tables import TABLES, rows_of

from .conftest import make_call, make_episode, make_run, make_turn

EPISODE = make_episode(0)
CALLS = tuple(replace(make_call(place), is_broken=None) for place in range(2))
TURN = replace(make_turn(0), tool_calls=CALLS)
GRADE = Grade(run_id="run-a", episode_id="run-a/00000", check=0, kind="turns", passed=True, reason="1 turn", weight=2.0)

DIVERGENCE = Divergence(
    run_id="run-a",
    episode_a="run-a/00000",
    episode_b="run-a/00001",
    task="task",
    variant="",
    sample=0,
    repeat_a=0,
    repeat_b=1,
    level=Level.TOKENS,
    turn=0,
    token=1,
    text_a="a",
    text_b="b",
    margin_a=0.5,
    margin_b=None,
    cause="cached tokens differ: 0 against 16",
    cause_kind=None,
)


@contextmanager
def opened(path: Path, *, read_only: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file as any DuckDB opens it."""
    connection = duckdb.connect(str(path), read_only=read_only)
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture(params=[migration.number for migration in MIGRATIONS[:-1]], ids="version-{}".format)
def old(database: Path, request: pytest.FixtureRequest) -> Path:
    """A database of an older version with a run in it, made as that version made it."""
    with opened(database, read_only=False) as connection:
        connection.execute("CREATE TABLE agenteval_schema (number INTEGER PRIMARY KEY)")
        for migration in MIGRATIONS[: request.param]:
            connection.execute(migration.sql)
            connection.execute("INSERT INTO agenteval_schema VALUES (?)", [migration.number])
        for record in (make_run(), EPISODE, TURN, GRADE, DIVERGENCE):
            for table, row in rows_of(json.loads(to_line(record))):
                insert(connection, table, row)
    return database


def insert(connection: duckdb.DuckDBPyConnection, table: str, row: dict[str, Any]) -> None:
    """Insert a row, without the columns that this version does not know."""
    known = {column[0] for column in connection.execute(f"DESCRIBE {table}").fetchall()}
    columns = {
        name: json.dumps(row[name]) if name in TABLES[table].json_columns else row[name]
        for name in TABLES[table].columns
        if name in known
    }
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(columns.values()))


def schema_of(path: Path) -> list[Any]:
    query = "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns ORDER BY ALL"
    with opened(path) as connection:
        return connection.execute(query).fetchall()


def test_a_migrated_database_has_the_schema_of_a_new_one(old: Path, tmp_path: Path) -> None:
    with open_for_writing(old) as connection:
        numbers = connection.execute("SELECT number FROM agenteval_schema ORDER BY 1").fetchall()
    assert numbers == [(number,) for number in range(1, VERSION + 1)]
    with open_for_writing(tmp_path / "new.duckdb"):
        pass
    assert schema_of(old) == schema_of(tmp_path / "new.duckdb")


def assert_is_whole(path: Path) -> None:
    """What the run had is all there, and what its version did not know is absent."""
    reader = RunReader(path=path, run_id="run-a")
    assert reader.run()[0] == make_run()
    assert reader.tasks() == []
    assert reader.faults() == []
    assert reader.episodes() == [EPISODE]
    assert reader.grades() == [GRADE]
    assert reader.turns("run-a/00000") == (TURN,)
    assert list(reader.trajectories()) == [(EPISODE, (TURN,))]
    (row,) = [row for row in list_runs(path) if row["run_id"] == "run-a"]
    counts = ("agent", "finished_episodes", "passed", "graded", "not_graded", "pass_rate")
    assert tuple(row[name] for name in counts) == ("agenteval", 1, 1, 1, 0, 1.0)


def test_a_migrated_database_loses_nothing(old: Path) -> None:
    with open_for_writing(old):
        pass
    assert_is_whole(old)
    with opened(old) as connection:
        found = connection.execute("SELECT passed, score, tags FROM episode_results").fetchall()
        trajectory = connection.execute("SELECT calls FROM trajectories").fetchall()
        summary = connection.execute("SELECT passed, pass_rate FROM run_summary").fetchall()
    assert (found, summary) == ([(True, 1.0, None)], [(1, 1.0)])
    assert trajectory == [("look({}) > look({})",)]


def test_a_database_of_an_older_version_is_read_as_it_is(old: Path) -> None:
    """A file on a disk that cannot be written, or of a colleague's, must be readable without being changed."""
    before = hashlib.sha256(old.read_bytes()).hexdigest()
    assert_is_whole(old)
    assert hashlib.sha256(old.read_bytes()).hexdigest() == before


def test_a_query_for_what_an_older_version_lacks_is_told_when_it_will_be_there(old: Path) -> None:
    """That it lacks something is said of no database of the newest version."""
    query = "select count(cause_kind) from divergences"
    with pytest.raises(QueryError, match=rf"has schema \d, .* up to schema {VERSION} .* next run that is stored there"):
        run_query(old, query)
    with open_for_writing(old):
        pass
    assert run_query(old, query).rows == [(1,)]
    with pytest.raises(QueryError) as caught:
        run_query(old, "select nothing from tool_calls")
    assert "schema" not in str(caught.value)


def test_the_kind_of_an_older_cause_follows_from_its_words(old: Path) -> None:
    reader = RunReader(path=old, run_id="run-a")
    assert [item.cause_kind for item in reader.divergences()] == [None]
    with open_for_writing(old):
        pass
    assert [item.cause_kind for item in reader.divergences()] == [CauseKind.CACHE]


def test_an_older_runners_journal_has_divergences_without_a_kind() -> None:
    line = json.loads(to_line(DIVERGENCE))
    del line["cause_kind"]
    assert parse_line(json.dumps(line).encode())["cause_kind"] is None


def test_a_new_run_goes_into_a_database_of_an_older_version(old: Path) -> None:
    task = TaskRecord(run_id="run-b", task="task", variant="", tags=("x",), definition={"faults": []})
    with RunWriter(old, make_run("run-b")) as writer:
        writer.append(task)
    assert RunReader(path=old, run_id="run-b").tasks() == [task]
    assert_is_whole(old)


def test_a_journal_that_a_runner_of_an_older_version_left_is_loaded_whole(old: Path) -> None:
    """What had finished is never lost, also where the next command is that of a newer version."""
    turn = json.loads(to_line(replace(TURN, turn=1)))
    for call in turn["tool_calls"]:
        del call["fault"], call["is_broken"]
    journal = files_folder(old) / "run-a.jsonl"
    journal.parent.mkdir()
    journal.write_text(
        "".join(json.dumps(line) + "\n" for line in ({"record": "Journal", "pid": 1, "host": "x"}, turn))
    )
    assert recover(old) == ["run-a"]
    assert not journal.exists()
    assert RunReader(path=old, run_id="run-a").turns("run-a/00000")[1] == replace(TURN, turn=1)


def test_a_migration_that_fails_leaves_the_database_as_it_was(old: Path) -> None:
    with opened(old, read_only=False) as connection:
        connection.execute("CREATE TABLE sweep_pairs (mine VARCHAR)")
    before = schema_of(old)
    with pytest.raises(Exception, match="sweep_pairs"), open_for_writing(old):
        pass
    assert schema_of(old) == before


FAULTS = [
    {"kind": "error", "tool": "look", "at": [1], "message": "x"},
    {"kind": "stale", "tool": "look", "every": 2},
    {"kind": "timeout", "tool": "push", "at": [3]},
]


def faulty_run(path: Path) -> None:
    """Two repeats of one task with three faults, and one of a task without any."""
    with RunWriter(path, make_run()) as writer:
        writer.append(
            TaskRecord(run_id="run-a", task="task", variant="", tags=("a", "b"), definition={"faults": FAULTS})
        )
        writer.append(TaskRecord(run_id="run-a", task="calm", variant="", tags=(), definition={"faults": []}))
        for position, labels in enumerate((["error#0", "stale#1", "stale#1"], [None, "error#0"])):
            calls = tuple(replace(make_call(place), fault=label) for place, label in enumerate(labels))
            episode = make_episode(position, repeat=position)
            writer.append(replace(make_turn(0), episode_id=episode.plan.episode_id, tool_calls=calls))
            writer.append(episode)
        calm = make_episode(2)
        writer.append(replace(calm, plan=replace(calm.plan, task="calm")))


def test_the_view_faults_counts_how_often_each_declared_fault_fired_in_each_episode(database: Path) -> None:
    faulty_run(database)
    with opened(database) as connection:
        rows = connection.execute(
            "SELECT episode_id, task, repeat, fault, kind, tool, fired FROM faults ORDER BY episode_id, fault"
        ).fetchall()
    assert rows == [
        ("run-a/00000", "task", 0, "error#0", "error", "look", 1),
        ("run-a/00000", "task", 0, "stale#1", "stale", "look", 2),
        ("run-a/00000", "task", 0, "timeout#2", "timeout", "push", 0),
        ("run-a/00001", "task", 1, "error#0", "error", "look", 1),
        ("run-a/00001", "task", 1, "stale#1", "stale", "look", 0),
        ("run-a/00001", "task", 1, "timeout#2", "timeout", "push", 0),
    ]


def test_the_reader_gives_the_same_counts(database: Path) -> None:
    faulty_run(database)
    counts = RunReader(path=database, run_id="run-a").faults()
    assert len(counts) == 6
    assert counts[1] == FaultCount(
        episode_id="run-a/00000", task="task", variant="", fault="stale#1", tool="look", fired=2
    )


def test_faults_of_one_run_are_not_anothers(database: Path) -> None:
    faulty_run(database)
    with RunWriter(database, make_run("run-b")) as writer:
        other = make_episode(0)
        writer.append(replace(other, plan=replace(other.plan, run_id="run-b")))
    assert RunReader(path=database, run_id="run-b").faults() == []
    assert RunReader(path=database, run_id="run-b").tasks() == []


def test_the_view_episode_results_tells_tags_pass_and_score(database: Path) -> None:
    faulty_run(database)
    with RunWriter(database, make_run("run-c")) as writer:
        for check, passed in enumerate((True, False)):
            writer.append(replace(GRADE, run_id="run-a", check=check, passed=passed, weight=1.0 + 2 * check))
        writer.append(replace(GRADE, episode_id="run-a/00001", passed=None))
    with opened(database) as connection:
        rows = connection.execute(
            "SELECT episode_id, tags, passed, score, checks_not_graded FROM episode_results ORDER BY episode_id"
        ).fetchall()
    assert rows == [
        ("run-a/00000", ["a", "b"], False, 0.25, 0),
        ("run-a/00001", ["a", "b"], None, None, 1),
        ("run-a/00002", [], None, None, 0),
    ]


def test_the_view_run_summary_counts_what_is_not_graded_apart_from_what_failed(database: Path) -> None:
    """Of three finished episodes one passed, one has a check that could not be evaluated, and one has no grade."""
    faulty_run(database)
    with RunWriter(database, make_run("run-c")) as writer:
        writer.append(replace(GRADE, check=0))
        writer.append(replace(GRADE, episode_id="run-a/00001", passed=None))
    with opened(database) as connection:
        names = "finished_episodes, passed, graded, not_graded, pass_rate, agent"
        rows = connection.execute(f"SELECT {names} FROM run_summary WHERE run_id = 'run-a'").fetchall()
    assert rows == [(3, 1, 1, 2, 1.0, "agenteval")]


def test_tasks_are_read_in_the_order_in_which_they_ran(database: Path) -> None:
    names = ["z", "a", "m", "b"]
    with RunWriter(database, make_run()) as writer:
        for name in names:
            writer.append(TaskRecord(run_id="run-a", task=name, variant="v", tags=(), definition={"faults": []}))
    assert [task.task for task in RunReader(path=database, run_id="run-a").tasks()] == names


def test_a_query_can_reach_into_a_tasks_definition(database: Path) -> None:
    faulty_run(database)
    rows = run_query(database, "select task, len(definition->'$.faults[*]') n from tasks order by task")
    assert [tuple(row) for row in rows.rows] == [("calm", 0), ("task", 3)]


def test_a_call_says_which_fault_it_met(database: Path) -> None:
    faulty_run(database)
    (turn,) = RunReader(path=database, run_id="run-a").turns("run-a/00001")
    assert [call.fault for call in turn.tool_calls] == [None, "error#0"]
    assert isinstance(turn.tool_calls[0], ToolCall)
