"""What is said of a database, and that looking at it leaves it alone."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from agenteval.doctor.check import Check, State
from agenteval.doctor.places import database_check
from agenteval.schema import VERSION
from agenteval.store.database import open_for_writing


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """An agenteval database without a run."""
    path = tmp_path / "runs.duckdb"
    with open_for_writing(path):
        pass
    return path


def journal(database: Path) -> Path:
    folder = database.with_name(database.name + ".d")
    folder.mkdir(exist_ok=True)
    path = folder / "run-a.jsonl"
    path.write_text("{}\n")
    return path


def found(check: Check, path: Path) -> tuple[State, str]:
    return check.state, check.found.replace(str(path), "DB")


def test_it_is_named_with_its_schema_and_runs(database: Path) -> None:
    assert found(database_check(database), database) == (State.OK, f"DB, schema {VERSION}, 0 runs")


def test_an_older_one_is_brought_up_by_the_next_run(database: Path) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.execute("DELETE FROM agenteval_schema WHERE number = ?", [VERSION])
    expected = f"DB, schema {VERSION - 1}; the next run brings it to {VERSION}, 0 runs"
    assert found(database_check(database), database) == (State.OK, expected)


def test_one_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "runs.duckdb"
    assert found(database_check(path), path) == (State.OK, "DB, to be made by the first run")
    assert list(tmp_path.iterdir()) == []


def test_looking_changes_no_byte(database: Path) -> None:
    journal(database)
    before = {path: path.read_bytes() for path in database.parent.rglob("*") if path.is_file()}
    database_check(database)
    assert {path: path.read_bytes() for path in database.parent.rglob("*") if path.is_file()} == before


def test_a_newer_one_needs_a_newer_agenteval(database: Path) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.execute("INSERT INTO agenteval_schema VALUES (?)", [VERSION + 1])
    expected = f"DB has schema {VERSION + 1}, this agenteval knows up to {VERSION}"
    assert found(database_check(database), database) == (State.MISSING, expected)


@pytest.mark.parametrize("content", [b"", b"no database", b"\0" * 20_000], ids=["empty", "text", "zeros"])
def test_a_damaged_one_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.duckdb"
    path.write_bytes(content)
    check = database_check(path)
    assert (check.state, check.found.startswith(f"{path} cannot be read: ")) == (State.MISSING, True)


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    assert database_check(tmp_path).state is State.MISSING


def test_a_place_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "runs.duckdb"
    expected = f"DB cannot be made: {tmp_path / 'file'} is no folder"
    assert found(database_check(path), path) == (State.MISSING, expected)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_one_that_may_not_be_written_takes_no_run(database: Path) -> None:
    database.chmod(0o400)
    assert found(database_check(database), database) == (State.MISSING, "DB may not be written")


def test_a_program_that_holds_it_is_named(database: Path) -> None:
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        check = database_check(database)
        holder.communicate()
    assert found(check, database) == (State.WARNING, f"DB is held by process {holder.pid}")


def test_a_dead_runners_journal_is_told(database: Path) -> None:
    journal(database)
    assert database_check(database).found.endswith("killed runs left 1 journal beside it")


def test_a_live_runners_journal_is_not(database: Path) -> None:
    with journal(database).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert database_check(database).state is State.OK
