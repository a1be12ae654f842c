"""`runs`, `show` and `sql` on a database with two runs, and what happens where output goes nowhere."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agenteval.cli import main

from .conftest import SUITE, CommandLine


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, module_env: pytest.MonkeyPatch) -> Path:
    """A folder whose database holds a strict run and a default one."""
    folder = tmp_path_factory.mktemp("filled")
    common = ["--model", str(tiny_model), "--limit", "2", "--quiet", "--db", str(folder / "runs.duckdb")]
    assert main(["run", SUITE, "--contract", "strict", *common]) == 0
    assert main(["run", SUITE, "--contract", "default", *common]) == 1
    return folder


@pytest.fixture
def reader(filled: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(filled, tiny_model, capsys)


def ids(reader: CommandLine) -> list[str]:
    """Run ids, newest first."""
    return [str(row["run_id"]) for row in json.loads(reader("runs", "--json").out)]


def test_runs_as_a_table(reader: CommandLine) -> None:
    done = reader("runs")
    assert done.code == 0
    head, rule, newest, oldest = done.out.splitlines()
    assert head.split() == "run suite contract model episodes passed diverged verdict".split()
    assert set(rule) <= {"-", " "}
    assert (newest.split()[2], newest.split()[-1]) == ("default", "diverged")
    assert (oldest.split()[2], oldest.split()[-1], "4/4" in oldest) == ("strict", "kept", True)


def test_runs_as_json(reader: CommandLine) -> None:
    rows = json.loads(reader("runs", "--json").out)
    assert [(row["contract"], row["verdict"], row["finished_episodes"]) for row in rows] == [
        ("default", "diverged", 4),
        ("strict", "kept", 4),
    ]


def test_show_prints_the_last_run_and_exits_as_it_did(reader: CommandLine) -> None:
    done = reader("show")
    assert (done.code, ids(reader)[0] in done.out) == (1, True)


@pytest.mark.parametrize("length", [None, -2], ids=["whole id", "start of an id"])
def test_show_finds_a_run(reader: CommandLine, length: int | None) -> None:
    strict = ids(reader)[1]
    done = reader("show", strict[:length], "--json")
    assert (done.code, done.summary["run_id"]) == (0, strict)


@pytest.mark.parametrize("name", ["nothing", "2"])
def test_show_of_no_run_or_of_several_lists_what_there_is(reader: CommandLine, name: str) -> None:
    done = reader("show", name)
    assert done.code == 2
    assert all(run_id in done.err for run_id in ids(reader))
    assert done.err.rstrip().endswith("List them with: agenteval runs")


def test_sql_as_a_table(reader: CommandLine) -> None:
    done = reader("sql", "select contract, passed, 'a\nb' as text, null as nothing from run_summary order by 1")
    assert done.code == 0
    assert done.out.splitlines()[0].split() == ["contract", "passed", "text", "nothing"]
    assert "a\\nb" in done.out
    assert done.out.splitlines()[-1] == "(2 rows)"


def test_sql_as_json(reader: CommandLine) -> None:
    query = "select r.contract, output_ids[1:2] ids, r.started_at from turns join runs r using (run_id) limit 1"
    (row,) = json.loads(reader("sql", query, "--json").out)
    assert len(row["ids"]) <= 2
    assert str(row["started_at"]).startswith("20")


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        pytest.param("1 as a, 2 as a, 3 as a", {"a": 1, "a_2": 2, "a_3": 3}, id="equal names"),
        pytest.param("1 as a, 2 as a, 3 as a_2", {"a": 1, "a_3": 2, "a_2": 3}, id="a number that is taken"),
    ],
)
def test_sql_as_json_keeps_every_column(reader: CommandLine, columns: str, row: dict[str, int]) -> None:
    assert json.loads(reader("sql", f"select {columns}", "--json").out) == [row]


def test_sql_as_csv(reader: CommandLine) -> None:
    done = reader("sql", "select contract, 'a,\"b\"\nc' as text from runs order by 1", "--csv")
    rows = list(csv.reader(io.StringIO(done.out)))
    assert rows == [["contract", "text"], ["default", 'a,"b"\nc'], ["strict", 'a,"b"\nc']]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("selekt 1", id="no SQL"),
        pytest.param("select * from nothing", id="no such table"),
        pytest.param("delete from turns", id="a write"),
        pytest.param("copy turns to '/tmp/stolen.csv'", id="a file written"),
        pytest.param("select * from read_text('/etc/passwd')", id="a file read"),
        pytest.param("attach '/tmp/other.duckdb'", id="another database"),
        pytest.param("set enable_external_access = true", id="its own locks"),
    ],
)
def test_sql_that_is_wrong_or_more_than_reading_is_refused(reader: CommandLine, query: str) -> None:
    done = reader("sql", query)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("agenteval: The query failed: ")
    assert done.err.rstrip().endswith('See the tables with: agenteval sql "show tables"')


def test_two_forms_at_once_are_a_usage_error(reader: CommandLine) -> None:
    assert reader("sql", "select 1", "--json", "--csv").code == 2


@pytest.mark.parametrize("command", [["runs"], ["show"], ["sql", "select 1"]], ids=lambda words: words[0])
@pytest.mark.parametrize("content", [None, b"no database at all " * 1000], ids=["no file", "no database"])
def test_a_wrong_database_is_named(cli: CommandLine, command: list[str], content: bytes | None) -> None:
    if content is not None:
        cli.db.write_bytes(content)
    done = cli(*command)
    assert (done.code, done.out) == (2, "")
    assert str(cli.db) in done.err
    assert "--db" in done.err.splitlines()[-1]


def shell(reader: CommandLine, script: str) -> subprocess.CompletedProcess[str]:
    """A shell line with `$agenteval` for the command."""
    command = f"{sys.executable} -m agenteval"
    return subprocess.run(
        ["bash", "-c", script],
        cwd=reader.folder,
        env={**os.environ, "agenteval": command, "AGENTEVAL_DB": str(reader.db)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("$agenteval runs >&-", 0, id="stdout closed"),
        pytest.param("$agenteval show >&-", 1, id="stdout closed: the run's own status"),
        pytest.param("$agenteval show 2>&-", 1, id="stderr closed"),
        pytest.param("$agenteval show nothing >&- 2>&-", 2, id="both closed"),
        pytest.param("$agenteval show | true; exit ${PIPESTATUS[0]}", 1, id="a reader that has gone"),
        pytest.param("$agenteval sql 'select 1' --csv | true; exit ${PIPESTATUS[0]}", 0, id="the same with csv"),
        pytest.param("PYTHONIOENCODING=ascii $agenteval sql \"select 'é'\"", 0, id="a terminal without é"),
    ],
)
def test_output_that_goes_nowhere_changes_no_exit_status(reader: CommandLine, script: str, code: int) -> None:
    done = shell(reader, script)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_full_disk_behind_stdout_is_said(reader: CommandLine) -> None:
    done = shell(reader, "$agenteval runs > /dev/full")
    assert done.returncode == 2
    assert done.stderr.startswith("agenteval: The output cannot be written: No space left on device.")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_talk_that_nobody_hears_does_not_end_a_run(reader: CommandLine, tiny_model: Path) -> None:
    run = f"$agenteval run {SUITE} --contract strict --model {tiny_model} --limit 1"
    done = shell(reader, f"{run} --db other.duckdb 2> >(true) > out.txt; echo $? > code.txt")
    assert done.stderr == ""
    assert (reader.folder / "code.txt").read_text().strip() == "0"
    assert "verdict   kept" in (reader.folder / "out.txt").read_text()
