"""A database as one small file: there and back, opened in a database's place, and every file that is none."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from agenteval.store import run_ids

from .conftest import CommandLine

TABLES = ("runs", "boots", "episodes", "turns", "tool_calls", "grades", "evidence", "divergences", "tasks")


@pytest.fixture
def archive(cli: CommandLine, tmp_path: Path) -> Path:
    """Of a run with divergences."""
    cli.run("default", "--limit", "2", "--quiet")
    path = tmp_path / "runs.agenteval"
    assert cli("db", "export", path).code == 0
    return path


def changed(archive: Path, path: Path, **members: bytes | None) -> Path:
    """An archive with other members: replaced, added, or left out."""
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(path, "w") as new:
        content = {name: old.read(name) for name in old.namelist()}
        content |= {name.replace("__", "."): value for name, value in members.items()}
        for name, value in content.items():
            if value is not None:
                new.writestr(name, value)
    return path


def test_what_comes_back_is_what_went_in(cli: CommandLine, archive: Path, tmp_path: Path) -> None:
    other = CommandLine(tmp_path / "other", cli.model, cli.capture)
    done = other("db", "import", archive)
    assert (done.code, done.out.split()) == (0, run_ids(cli.db))
    for table in TABLES:
        query = f"select * from {table} order by all"
        assert other.sql(query) == cli.sql(query), table
    assert other("verify").code == cli("verify").code == 1


def test_an_archive_is_much_smaller(cli: CommandLine, archive: Path) -> None:
    assert archive.stat().st_size * 5 < cli.db.stat().st_size


@pytest.mark.parametrize(
    "command", [("runs",), ("show",), ("verify",), ("diff",), ("report",), ("sql", "select count(*) from turns")]
)
def test_commands_that_read_take_an_archive_as_a_database(
    cli: CommandLine, archive: Path, command: tuple[str, ...]
) -> None:
    database = cli(*command)
    cli.db.unlink()
    archive.rename(cli.db)
    assert cli(*command) == database


def test_commands_that_write_do_not(cli: CommandLine, archive: Path) -> None:
    archive.replace(cli.db)
    done = cli.run("strict", "--limit", "1")
    assert done.code == 2
    assert "is an archive, which is only read" in done.err


def test_a_run_is_not_added_twice(cli: CommandLine, archive: Path) -> None:
    done = cli("db", "import", archive)
    assert done.code == 2
    assert "already, so nothing was added" in done.err
    assert len(run_ids(cli.db)) == 1


def test_an_archive_is_not_overwritten(cli: CommandLine, archive: Path) -> None:
    before = archive.read_bytes()
    done = cli("db", "export", archive)
    assert done.code == 2
    assert "is there already" in done.err
    assert archive.read_bytes() == before


@pytest.mark.parametrize(
    ("members", "said"),
    [
        pytest.param({"agenteval__json": None}, "it is no archive of agenteval", id="no manifest"),
        pytest.param({"agenteval__json": b"{"}, "it is damaged", id="broken manifest"),
        pytest.param({"agenteval__json": b"[]"}, "it is damaged", id="other manifest"),
        pytest.param({"runs__parquet": b"PAR1"}, "Cannot", id="broken table"),
        pytest.param({"runs__parquet": None}, "Cannot", id="no runs"),
    ],
)
def test_what_is_no_archive_is_told(
    cli: CommandLine, archive: Path, tmp_path: Path, members: dict[str, bytes | None], said: str
) -> None:
    other = CommandLine(tmp_path / "other", cli.model, cli.capture)
    done = other("db", "import", changed(archive, tmp_path / "changed.agenteval", **members))
    assert done.code == 2
    assert said in done.err


def test_a_newer_archive_is_told(cli: CommandLine, archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        manifest = json.loads(file.read("agenteval.json"))
    manifest["schema"] += 1
    newer = changed(archive, tmp_path / "newer.agenteval", agenteval__json=json.dumps(manifest).encode())
    done = cli("db", "import", newer)
    assert done.code == 2
    assert "newer" in done.err or "schema" in done.err


def test_members_that_are_no_tables_stay_where_they_are(cli: CommandLine, archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        manifest = json.loads(file.read("agenteval.json"))
    manifest["rows"]["../escaped"] = 1
    hostile = changed(archive, tmp_path / "hostile.agenteval", agenteval__json=json.dumps(manifest).encode())
    with zipfile.ZipFile(hostile, "a") as file:
        file.writestr("../escaped.parquet", b"x")
    done = cli("db", "import", hostile)
    assert done.code == 2
    assert "is no table's name" in done.err
    assert not (tmp_path.parent / "escaped").exists()
