"""A run's writer: durable when awaited, out of the readers' way, and nothing lost when the runner is killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
from pathlib import Path

import pytest
from patience import LONG_S

from agenteval.errors import StoreError, StoreUnreadableError, StoreUnwritableError
from agenteval.records import RunEnd, Verdict
from agenteval.store import RunReader, RunWriter, files_folder, list_runs, recover, run_query
from agenteval.store import journal as journals
from agenteval.store.database import open_for_reading
from agenteval.store.lines import to_line

from .conftest import NOW, environment, make_run, make_turn, output_of, script

ENDED = RunEnd(run_id="run-a", ended_at=NOW, status="finished", verdict=Verdict.KEPT, message=None)


def lines_of(journal: Path) -> list[str]:
    """Kinds of the whole lines of a journal."""
    return [json.loads(line)["record"] for line in journal.read_text().splitlines()]


def stored_turns(database: Path, run_id: str = "run-a") -> list[int]:
    """Numbers of the run's turns, as they stand in the database."""
    return [
        turn for (turn,) in run_query(database, f"SELECT turn FROM turns WHERE run_id = '{run_id}' ORDER BY 1").rows
    ]


def leave_journal(database: Path, content: bytes, run_id: str = "run-a") -> Path:
    """What a runner that was killed leaves behind."""
    path = files_folder(database) / f"{run_id}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b'{"record":"Journal","pid":1}\n' + content)
    return path


def line(record: object) -> bytes:
    """A record's line with its end."""
    return to_line(record).encode() + b"\n"  # type: ignore[arg-type]


def test_awaited_record_is_in_the_journal(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        writer.append(make_turn(0))()
        assert lines_of(writer.journal) == ["Journal", "Run", "Turn"]


def test_flushed_records_are_in_the_database(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        writer.append(make_turn(0))
        writer.flush()
        assert stored_turns(database) == [0]


def test_closing_leaves_everything_in_the_database_and_no_journal(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        for turn in range(3):
            writer.append(make_turn(turn))
        writer.append(ENDED)
    assert stored_turns(database) == [0, 1, 2]
    assert list(files_folder(database).iterdir()) == []
    assert RunReader(path=database, run_id="run-a").run()[1] == ENDED


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "new/folder/runs.duckdb", make_run()):
        pass
    assert len(list_runs(tmp_path / "new/folder/runs.duckdb")) == 1


def test_name_that_duckdb_takes_for_memory_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with RunWriter(Path(":memory:"), make_run()):
        pass
    assert len(list_runs(Path(":memory:"))) == 1


def test_records_come_from_many_threads(database: Path, often: None) -> None:
    with RunWriter(database, make_run()) as writer:

        def write(first: int) -> None:
            for turn in range(first, first + 25):
                writer.append(make_turn(turn))()

        threads = [threading.Thread(target=write, args=(25 * place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            writer.flush()
        for thread in threads:
            thread.join()
    assert stored_turns(database) == list(range(100))


def test_closed_writer_takes_nothing_more(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        pass
    with pytest.raises(StoreUnwritableError, match="the run has ended"):
        writer.append(make_turn(0))


def test_idle_writer_leaves_the_database_alone(database: Path, often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunWriter(database, make_run()) as writer:
        writer.flush()
        changed = database.stat().st_mtime_ns
        threading.Event().wait(0.3)
        assert database.stat().st_mtime_ns == changed


def test_database_that_was_removed_meanwhile_is_made_anew(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        writer.append(make_turn(0))
        writer.flush()
        database.unlink()
    assert stored_turns(database) == [0]


def test_same_run_twice_is_refused(database: Path) -> None:
    with RunWriter(database, make_run()) as first:
        with pytest.raises(StoreUnwritableError, match="exists"):
            RunWriter(database, make_run())
        first.append(make_turn(0))()
    assert stored_turns(database) == [0]


def test_journal_of_a_live_runner_is_left_alone(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        writer.append(make_turn(0))()
        assert recover(database) == []
        assert writer.journal.exists()


def test_two_runs_in_one_process_share_a_database(database: Path, often: None) -> None:
    with RunWriter(database, make_run("run-a")) as a, RunWriter(database, make_run("run-b")) as b:
        for turn in range(30):
            a.append(make_turn(turn, "run-a"))
            b.append(make_turn(turn, "run-b"))()
    assert stored_turns(database, "run-a") == stored_turns(database, "run-b") == list(range(30))


def test_two_runners_at_once_share_a_database(database: Path) -> None:
    code = """
        writer.INGEST_EVERY_S = 0.05
        run_id = {run_id!r}
        with RunWriter(Path({database!r}), make_run(run_id)) as run_writer:
            for turn in range(40):
                run_writer.append(make_turn(turn, run_id))()
                time.sleep(0.01)
    """
    runners = [
        subprocess.Popen(script(code.format(run_id=run_id, database=str(database))), env=environment())
        for run_id in ("run-a", "run-b")
    ]
    assert [runner.wait(60) for runner in runners] == [0, 0]
    assert stored_turns(database, "run-a") == stored_turns(database, "run-b") == list(range(40))


def test_others_read_while_a_run_writes(database: Path, often: None) -> None:
    code = f"""
        path, seen, ends = Path({str(database)!r}), [], time.monotonic() + {LONG_S}
        while len(set(seen)) < 3 and time.monotonic() < ends:
            seen.append(len(RunReader(path=path, run_id="run-a").turns("run-a/00000")))
            list_runs(path)
        print(json.dumps(seen))
    """
    with RunWriter(database, make_run()) as writer:
        writer.flush()
        reader = subprocess.Popen(script(code), env=environment(), stdout=subprocess.PIPE, text=True)
        turn = 0
        while reader.poll() is None:
            writer.append(make_turn(turn))()
            turn += 1
    assert reader.stdout is not None
    seen = json.loads(reader.stdout.read())
    reader.stdout.close()
    assert seen == sorted(seen)
    assert seen[-1] > seen[0], "what is written is seen while the run goes on"


def test_killed_runner_loses_no_awaited_turn_and_duplicates_none(database: Path, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    code = f"""
        # One process that imports everything and forks a runner a round, so that twenty take seconds.
        path, chance, told = Path({str(database)!r}), random.Random({seed}), {{}}
        writer.INGEST_EVERY_S = 0.03
        for number in range(20):
            run_id = f"run-{{number}}"
            read_end, write_end = os.pipe()
            child = os.fork()
            if child == 0:
                run_writer = RunWriter(path, make_run(run_id))
                for turn in range(10_000):
                    run_writer.append(make_turn(turn, run_id, text="text " * 50))()
                    os.write(write_end, b".")
            os.close(write_end)
            time.sleep(chance.uniform(0.0, 0.8))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged = b""
            while part := os.read(read_end, 65536):
                acknowledged += part
            os.close(read_end)
            told[run_id] = len(acknowledged)
        print(json.dumps(told))
    """
    told = json.loads(output_of(code))
    recover(database)
    assert list(files_folder(database).glob("*.jsonl*")) == []
    for run_id, count in told.items():
        turns = stored_turns(database, run_id)
        # At most the one that was on its way when it was killed is there besides.
        assert turns in (list(range(count)), list(range(count + 1))), (seed, run_id)
    assert sum(told.values()) > 0, seed
    statuses = run_query(database, "SELECT DISTINCT status, message FROM runs").rows
    assert statuses == [("failed", "the runner ended before the run")]


def test_torn_last_line_is_ignored(database: Path) -> None:
    leave_journal(database, line(make_run()) + line(make_turn(0)) + line(make_turn(1))[:-20])
    assert recover(database) == ["run-a"]
    assert stored_turns(database) == [0]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"\0\0\0\0\n", id="zeros"),
        pytest.param(b'{"record":"Turn","turn":1}\n', id="fields missing"),
        pytest.param(b'{"record":"Nonsense"}\n', id="no such record"),
        pytest.param(b"[]\n", id="no object"),
        pytest.param(b"\xff\xfe\n", id="no text"),
        pytest.param(b"\n", id="empty"),
        pytest.param(line(make_turn(1)).replace(b'"turn":1', b'"turn":"x"'), id="wrong type"),
        pytest.param(line(make_turn(1)).replace(b"2026-01-15T09", b"someday"), id="no moment"),
        pytest.param(line(make_turn(1)).replace(b'"prompt_tokens":5', b'"prompt_tokens":99999999999'), id="too big"),
    ],
)
def test_damaged_line_costs_itself_only_and_the_journal_is_kept(database: Path, damage: bytes) -> None:
    journal = leave_journal(database, line(make_run()) + line(make_turn(0)) + damage + line(make_turn(2)))
    content = journal.read_bytes()
    assert recover(database) == ["run-a"]
    assert stored_turns(database) == [0, 2]
    assert journal.with_suffix(".jsonl.damaged").read_bytes() == content
    assert recover(database) == []


def test_line_damaged_under_a_live_writer_is_told(database: Path) -> None:
    writer = RunWriter(database, make_run())
    writer.append(make_turn(0))()
    with writer.journal.open("r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.write(b"damage")
    writer.append(make_turn(1))()
    with pytest.raises(StoreUnreadableError, match="1 of its lines") as failure:
        writer.close()
    assert str(failure.value).endswith("start the run again with the same command.")
    assert stored_turns(database) == [1]


def test_records_that_the_database_refuses_are_kept_aside_and_block_nothing(database: Path) -> None:
    journal = leave_journal(database, line(make_run()) + line(make_turn(0)) * 2)
    assert recover(database) == ["run-a"]
    assert list_runs(database) == []
    assert journal.with_suffix(".jsonl.damaged").exists()


def test_ingestion_is_all_or_nothing(database: Path) -> None:
    journal = leave_journal(database, line(make_run()) + line(make_turn(0)) + line(make_turn(0)))
    with pytest.raises(StoreUnreadableError, match="duplicate key"):
        journals.ingest(database, journal)
    tables = ("runs", "turns", "journals")
    assert [run_count(database, table) for table in tables] == [0, 0, 0]


def run_count(database: Path, table: str) -> int:
    """Rows of a table, without loading journals first."""
    with open_for_reading(database) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert row is not None
        return int(row[0])


def test_journal_is_loaded_once_however_often_it_is_ingested(database: Path) -> None:
    journal = leave_journal(database, line(make_run()) + line(make_turn(0)))
    assert [journals.ingest(database, journal).lines for _ in range(3)] == [3, 0, 0]


def test_two_commands_may_recover_at_once(database: Path) -> None:
    for number in range(8):
        run_id = f"run-{number}"
        leave_journal(database, line(make_run(run_id)) + line(make_turn(0, run_id)), run_id)
    problems: list[StoreError] = []

    def load() -> None:
        try:
            recover(database)
        except StoreError as error:
            problems.append(error)

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    recover(database)
    assert len(list_runs(database)) == 8


def test_journal_has_its_name_only_once_it_is_locked(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def look(file: object, lines: list[str]) -> None:
        seen.append(recover(database))
        seen.append([path.name for path in files_folder(database).glob("*.jsonl")])

    monkeypatch.setattr(journals, "write_lines", look)
    journals.create_journal(files_folder(database) / "run-a.jsonl").close()
    assert seen == [[], []]


def test_journal_that_is_being_closed_is_nobody_elses(database: Path) -> None:
    done = threading.Event()
    taken: list[str] = []

    def look() -> None:
        while not done.is_set():
            taken.extend(recover(database))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for number in range(8):
            with RunWriter(database, make_run(f"run-{number}")) as writer:
                writer.append(make_turn(0, f"run-{number}"))
    finally:
        done.set()
        thread.join()
    assert taken == []
    assert list(files_folder(database).iterdir()) == []
    assert len(list_runs(database)) == 8


def test_run_that_ended_before_its_runner_died_keeps_its_end(database: Path) -> None:
    leave_journal(database, line(make_run()) + line(ENDED))
    recover(database)
    assert RunReader(path=database, run_id="run-a").run()[1] == ENDED
