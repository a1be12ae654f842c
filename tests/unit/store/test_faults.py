"""Disks that are full or read-only, databases that are locked, newer, foreign or broken: named, with what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
import structlog
from patience import LONG_S, does_not_hang

from agenteval.errors import SchemaVersionError, StoreLockedError, StoreUnreadableError, StoreUnwritableError
from agenteval.store import RunReader, RunWriter, list_runs, run_query
from agenteval.store.database import LOCK_WAIT_S, open_for_reading, open_for_writing

from .conftest import environment, make_run, make_turn, needs_mount, output_of, script
from .test_writer import leave_journal, line, stored_turns

FILL = """
    path = Path({database!r})
    run_writer, told, error = RunWriter(path, make_run()), 0, None
    {limit}
    try:
        while told < 10_000:
            run_writer.append(make_turn(told, text="text " * 400))()
            told += 1
    except StoreUnwritableError as problem:
        error = problem
    try:
        run_writer.close()
    except StoreUnwritableError:
        pass
    {unlimit}
    recover(path)
    found = len(RunReader(path=path, run_id="run-a").turns("run-a/00000"))
    print(json.dumps([told, found, str(error)]))
"""


@pytest.fixture
def made(database: Path) -> Path:
    """A database with one run."""
    with RunWriter(database, make_run()):
        pass
    return database


def check_full(answer: str, words: str) -> None:
    """Something was stored, then the disk was full; every turn that was told stored is there."""
    told, found, error = json.loads(answer)
    assert told > 0
    assert found == told
    assert words in error
    assert error.endswith("Name a writable place with --db, or free some space.")


def test_file_size_limit_loses_no_awaited_turn(database: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, resource.RLIM_INFINITY))"
    unlimit = "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))"
    check_full(output_of(FILL.format(database=str(database), limit=limit, unlimit=unlimit)), "File too large")


@needs_mount
def test_full_disk_loses_no_awaited_turn(tmp_path: Path) -> None:
    filler = tmp_path / "disk/filler"
    limit = f"Path({str(filler)!r}).write_bytes(bytes(os.statvfs({str(filler.parent)!r}).f_bavail * 4096 - 500_000))"
    answer = output_of(
        FILL.format(
            database=str(tmp_path / "disk/runs.duckdb"), limit=limit, unlimit=f"Path({str(filler)!r}).unlink()"
        ),
        before=f"mkdir {tmp_path}/disk; mount -t tmpfs -o size=6m tmpfs {tmp_path}/disk",
    )
    check_full(answer, "No space left on device")


def test_database_that_outgrows_the_disk_is_unwritable_and_stays_whole(made: Path) -> None:
    code = f"""
        import resource
        from agenteval.store.database import open_for_writing
        path = Path({str(made)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100_000, resource.RLIM_INFINITY))
        try:
            with open_for_writing(path) as connection:
                connection.execute("CREATE TABLE big AS SELECT md5(range::VARCHAR) AS a FROM range(200000)")
        except StoreUnwritableError as error:
            print(error)
    """
    assert "free some space" in output_of(code)
    assert len(list_runs(made)) == 1


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder, and all in it, that this user cannot write; root writes whatever the permissions say."""
    if os.geteuid() == 0:
        pytest.skip("root may write anyway; the mounted read-only folder is tested instead")
    modes = {path: path.stat().st_mode for path in [*folder.rglob("*"), folder]}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in reversed(modes.items()):
            path.chmod(mode)


def test_folder_without_permission_is_unwritable(made: Path) -> None:
    with read_only(made.parent), pytest.raises(StoreUnwritableError, match="--db"):
        RunWriter(made, make_run("run-b"))


READ_ONLY = "mount --bind {folder} {folder}; mount -o remount,ro,bind {folder}"


@needs_mount
@pytest.mark.parametrize("name", ["runs.duckdb", "new.duckdb"], ids=["file that exists", "new file"])
def test_read_only_disk_is_unwritable(made: Path, name: str) -> None:
    code = f"""
        try:
            RunWriter(Path({str(made.with_name(name))!r}), make_run("run-b"))
        except StoreUnwritableError as error:
            print(error)
    """
    assert "Name a writable place with --db" in output_of(code, before=READ_ONLY.format(folder=made.parent))


@needs_mount
def test_read_only_database_with_a_dead_runners_journal_can_be_read(made: Path) -> None:
    leave_journal(made, line(make_run("run-b")), "run-b")
    code = f"""
        path = Path({str(made)!r})
        print([row["run_id"] for row in list_runs(path)], run_query(path, "SELECT 1").rows)
    """
    shown = output_of(code, before=READ_ONLY.format(folder=made.parent))
    assert "unloaded_turns" in shown
    assert shown.endswith("['run-a'] [(1,)]\n")


@contextmanager
def held(path: Path, *, for_s: float, mode: bool = False) -> Iterator[int]:
    """Another process has the database open for a time."""
    code = f"import duckdb, time; c = duckdb.connect({str(path)!r}, read_only={mode}); print(1, flush=True)"
    code += f"; time.sleep({for_s})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.mark.parametrize("open_it", [open_for_reading, open_for_writing], ids=["reading", "writing"])
def test_locked_database_names_the_process_after_a_wait(made: Path, open_it: Callable[..., object]) -> None:
    with held(made, for_s=60) as pid:
        began = time.monotonic()
        with pytest.raises(StoreLockedError, match=rf"process {pid}\)"), open_it(made, wait_s=0.3):  # type: ignore[attr-defined]
            pass
        assert 0.3 <= time.monotonic() - began < LOCK_WAIT_S, "it waits as long as it was told"


@pytest.mark.parametrize("open_it", [open_for_reading, open_for_writing], ids=["reading", "writing"])
def test_lock_that_ends_in_time_is_waited_for(made: Path, open_it: Callable[..., object]) -> None:
    with held(made, for_s=0.5), open_it(made, wait_s=20) as connection:  # type: ignore[attr-defined]
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)


@does_not_hang
def test_word_lock_in_a_path_is_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock and key.duckdb"
    path.write_text("no database")
    with pytest.raises(StoreUnreadableError), open_for_reading(path, wait_s=2 * LONG_S):
        pass


def test_reader_goes_on_without_a_dead_runners_turns_while_another_reads(made: Path) -> None:
    leave_journal(made, line(make_run("run-b")), "run-b")
    with held(made, for_s=60, mode=True), structlog.testing.capture_logs() as logs:
        assert [row["run_id"] for row in list_runs(made)] == ["run-a"]
    assert [entry["event"] for entry in logs] == ["unloaded_turns"]
    assert len(list_runs(made)) == 2


def test_newer_schema_is_refused(made: Path) -> None:
    with duckdb.connect(str(made)) as connection:
        connection.execute("INSERT INTO agenteval_schema VALUES (999)")
    for use in (lambda: list_runs(made), lambda: RunWriter(made, make_run("run-b"))):
        with pytest.raises(SchemaVersionError, match="has schema 999"):
            use()


def foreign(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE runs (a INTEGER)")


def cut(path: Path) -> None:
    with RunWriter(path, make_run()) as writer:
        writer.flush()
    path.write_bytes(path.read_bytes()[:20_000])


def scrambled(path: Path) -> None:
    with RunWriter(path, make_run()):
        pass
    content = path.read_bytes()
    path.write_bytes(content[:4000] + bytes(byte ^ 255 for byte in content[4000:12_000]) + content[12_000:])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(foreign, "some other program's database", id="foreign database"),
        pytest.param(lambda path: path.write_text("hello\n" * 1000), "not a valid DuckDB database", id="text"),
        pytest.param(lambda path: path.write_bytes(b""), "not a valid DuckDB database", id="empty"),
        pytest.param(cut, "Could not read enough bytes", id="cut off"),
        pytest.param(scrambled, "Corrupt database file", id="scrambled"),
    ],
)
def test_file_that_is_no_database_of_ours_is_unreadable_and_untouched(
    database: Path, make: Callable[[Path], object], words: str
) -> None:
    make(database)
    content = database.read_bytes()
    with pytest.raises(StoreUnreadableError, match=words):
        list_runs(database)
    with pytest.raises(StoreUnreadableError, match="--db") as failure:
        RunWriter(database, make_run("run-b"))
    assert failure.value.path == database
    assert database.read_bytes() == content


def test_damage_that_is_found_only_on_reading_is_unreadable(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        for turn in range(200):
            writer.append(make_turn(turn, text=f"text {turn} " * 100))
    content = bytearray(database.read_bytes())
    # The headers and the first block are read on opening; each other block is checked when it is used.
    content[400_000::100_000] = bytes(byte ^ 255 for byte in content[400_000::100_000])
    database.write_bytes(content)
    with pytest.raises(StoreUnreadableError, match="--db") as failure:
        RunReader(path=database, run_id="run-a").turns("run-a/00000")
    assert failure.value.path == database


@pytest.mark.parametrize("path", ["missing.duckdb", "missing/runs.duckdb", "."], ids=["file", "folder", "a folder"])
def test_database_that_is_not_there_is_unreadable(tmp_path: Path, path: str) -> None:
    with pytest.raises(StoreUnreadableError, match="there is no such file"):
        run_query(tmp_path / path, "SELECT 1")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_a_file_is_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritableError, match="--db"):
        RunWriter(tmp_path / "file/runs.duckdb", make_run())


def test_reader_in_this_process_waits_for_the_writer(made: Path) -> None:
    def write() -> None:
        with open_for_writing(made):
            time.sleep(0.3)

    thread = threading.Thread(target=write)
    thread.start()
    assert RunReader(path=made, run_id="run-a").run()[0] == make_run()
    thread.join()


def test_database_left_by_a_killed_command_is_read_with_its_log(made: Path) -> None:
    code = f"""
        from agenteval.store.database import open_for_writing
        with open_for_writing(Path({str(made)!r})) as connection:
            connection.execute("INSERT INTO evidence VALUES ('run-a', 'c', 'f', 'kept', '', '', '{{}}')")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert subprocess.run(script(code), env=environment(), stdout=subprocess.DEVNULL, check=False).returncode == -9
    assert made.with_name(made.name + ".wal").exists()
    assert len(RunReader(path=made, run_id="run-a").evidence()) == 1
    assert stored_turns(made) == []
