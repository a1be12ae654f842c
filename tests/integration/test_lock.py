"""The environment lock of a run: written, shown, compared and held, on the stand-in."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_vllm import FakeConfig, FakeVllm

from agenteval.lock import read_lock
from agenteval.store import files_folder

from .conftest import SUITE, CommandLine, Done

LIMIT_S = 20.0
CUT = ("--limit", "1", "--repeats", "1", "--quiet")


@pytest.fixture
def locked(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock's file of a run with a variable that reaches the engine."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    cli.run("strict", *CUT)
    (path,) = files_folder(cli.db).glob("*.lock.json")
    return path


def changed(path: Path, section: str, field: str, value: Any) -> Path:
    """A lock's file beside another one, with one field changed."""
    fields = json.loads(path.read_text())
    fields[section][field] = value
    written = path.with_name("changed.json")
    written.write_text(json.dumps(fields))
    return written


def test_a_run_writes_its_lock_and_says_where(cli: CommandLine) -> None:
    done = cli.run("strict", "--limit", "1", "--repeats", "1")
    (path,) = files_folder(cli.db).glob("*.lock.json")
    assert [line for line in done.err.splitlines() if line.startswith("lock ")] == [f"lock      {path}"]


def test_the_lock_is_in_the_database_too(cli: CommandLine, locked: Path) -> None:
    (row,) = cli.sql("select (facts->'lock')::varchar held from runs")
    assert json.loads(row["held"]) == json.loads(locked.read_text())


def test_the_lock_holds_what_the_server_was_started_with(cli: CommandLine, locked: Path) -> None:
    (boot,) = cli.sql("select argv, env from boots")
    server = read_lock(locked).server
    assert server is not None
    assert len(server.argv) == len(boot["argv"])
    assert set(server.argv) - set(boot["argv"]) == {"MODEL", "NAME"}
    assert server.variables.keys() == json.loads(boot["env"]).keys()
    assert server.inherited["OMP_NUM_THREADS"] == "2"


def test_a_killed_run_has_its_lock(cli: CommandLine) -> None:
    running = cli.start(cli.words("strict", "--limit", "1"))
    assert running.stderr is not None
    assert any("server    ready" in line for line in running.stderr)
    running.kill()
    running.communicate()
    (path,) = files_folder(cli.db).glob("*.lock.json")
    assert read_lock(path).engine is not None
    deadline = time.monotonic() + LIMIT_S
    (log,) = files_folder(cli.db).glob("*.log")
    while "the server exited" not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "the server exited" in log.read_text()


def test_an_equal_run_is_not_refused(cli: CommandLine, locked: Path) -> None:
    done = cli.run("strict", *CUT, "--locked", locked)
    assert "This run is not what" not in done.err
    assert len(cli.sql("select run_id from runs")) == 2


def test_another_environment_is_refused_before_a_database_is_written(
    cli: CommandLine, locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.db.unlink()
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    done = cli.run("strict", *CUT, "--locked", changed(locked, "engine", "torch", "2.11.0"))
    assert done.code == 2
    assert "  engine.torch: 2.11.0 → 2.13.0+cpu\n  server.inherited.OMP_NUM_THREADS: 2 → 4\n" in done.err
    assert done.err.rstrip().endswith("or leave out --locked for a run with a lock of its own.")
    assert not cli.db.exists()


def test_a_wrong_lock_is_refused_before_the_engine_is_looked_for(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTEVAL_ENGINE_PYTHON", "/nowhere/python")
    done = cli.run("strict", "--locked", cli.folder / "none.json")
    assert (done.code, "there is no such file" in done.err) == (2, True)


def outside(cli: CommandLine, *arguments: str) -> Done:
    with FakeVllm(FakeConfig(prefix_caching=False, max_num_seqs=1)) as server:
        return cli("run", SUITE, "--contract", "strict", *CUT, "--base-url", server.base_url, *arguments)


def test_someone_elses_server_has_a_lock_of_what_is_known(cli: CommandLine) -> None:
    outside(cli)
    lock = json.loads(cli("lock", "show", "--json").out)
    assert (lock["engine"], lock["machine"], lock["server"]) == (None, None, None)
    assert lock["model"] == {"name": "fake", "digest": None}


def test_someone_elses_server_cannot_be_held_to_a_lock(cli: CommandLine, locked: Path) -> None:
    done = outside(cli, "--locked", str(locked))
    assert done.code == 2
    assert "unknown of a server that someone else runs. Leave out --locked, or --base-url." in done.err


def test_a_shown_lock_is_the_last_runs_as_its_file_has_it(cli: CommandLine, locked: Path) -> None:
    assert cli("lock", "show", "--json").out == locked.read_text()


def test_fields_are_shown_a_line_each(cli: CommandLine, locked: Path) -> None:
    lines = cli("lock", "show", locked).out.splitlines()
    assert [line.split() for line in lines if line.startswith("engine.")] == [
        ["engine.vllm", "0.32.0"],
        ["engine.torch", "2.13.0+cpu"],
        ["engine.cuda", "(none)"],
        ["engine.device", "cpu"],
        ["engine.flashinfer", "false"],
    ]


def test_a_run_equals_its_file(cli: CommandLine, locked: Path) -> None:
    done = cli("lock", "diff", locked, locked.name.removesuffix(".lock.json"))
    assert (done.code, done.out) == (0, "equal in every field that is compared\n")


def test_locks_that_differ(cli: CommandLine, locked: Path) -> None:
    done = cli("lock", "diff", locked, changed(locked, "machine", "cpu", "Other CPU"))
    cpu = read_lock(locked).machine.cpu  # type: ignore[union-attr]
    assert (done.code, done.out) == (1, f"machine.cpu: {cpu} → Other CPU\n")


def test_differences_as_json(cli: CommandLine, locked: Path) -> None:
    done = cli("lock", "diff", locked, changed(locked, "agenteval", "python", "2.7"), "--json")
    here = read_lock(locked).agenteval.python
    assert (done.code, json.loads(done.out)) == (
        1,
        {
            "verdict": "different",
            "differences": [{"field": "agenteval.python", "a": here, "b": "2.7"}],
            "unknown": [],
        },
    )


def test_equality_with_someone_elses_server_cannot_be_told(cli: CommandLine, locked: Path) -> None:
    outside(cli)
    last = cli.sql("select run_id from runs order by started_at desc limit 1")[0]["run_id"]
    done = cli("lock", "diff", locked, last)
    assert done.code == 2
    assert done.out == "unknown, since someone else ran the server: engine, machine, model.digest, server\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("none.json", "Cannot read a lock from none.json: there is no such file.", id="a file"),
        pytest.param("nobody", "There is no file and no run 'nobody'. Known: ", id="a run"),
    ],
)
def test_what_is_not_there_is_said(cli: CommandLine, locked: Path, name: str, words: str) -> None:
    done = cli("lock", "diff", locked, name)
    assert (done.code, words in done.err) == (2, True)


def test_a_run_needs_a_database(cli: CommandLine) -> None:
    done = cli("lock", "show", "20260101")
    assert done.code == 2
    assert "Name a lock's file, or the database of the run with --db." in done.err


def test_a_run_of_an_older_agenteval_has_none(cli: CommandLine, engine_env: Callable[..., None]) -> None:
    import duckdb

    cli.run("strict", *CUT)
    with duckdb.connect(str(cli.db)) as connection:
        connection.execute("update runs set facts = '{}'")
    done = cli("lock", "show")
    assert done.code == 2
    assert done.err.rstrip().endswith("wrote none. Run it again to have one.")
