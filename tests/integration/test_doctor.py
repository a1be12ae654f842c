"""`agenteval doctor` on the stand-in engine: it tells, changes nothing, and works where things are broken."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import CommandLine


@pytest.fixture
def doctor(cli: CommandLine) -> Callable[..., dict[str, dict[str, str]]]:
    """Runs the command with the tiny model and gives its checks by name, with the exit status as one of them."""

    def run(*arguments: str | Path) -> dict[str, dict[str, str]]:
        done = cli("doctor", "--json", "--model", cli.model, *arguments)
        told = json.loads(done.out)
        return {check["name"]: check for check in told["checks"]} | {"exit": {"state": str(done.code)}}

    return run


def states(checks: dict[str, dict[str, str]], *names: str) -> list[str]:
    return [checks[name]["state"] for name in names]


def test_a_whole_machine_is_ready(doctor: Callable[..., dict[str, dict[str, str]]]) -> None:
    assert states(doctor(), "engine", "model", "disk", "database", "port", "exit") == ["ok"] * 5 + ["0"]


def test_the_screen_ends_with_the_next_command(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cli.folder)
    assert cli("doctor", "--model", cli.model).out.endswith("\nnext: agenteval new suite first-suite\n")


def test_nothing_is_written(cli: CommandLine, cache: Path) -> None:
    cli("doctor", "--model", cli.model)
    places = (cache, cli.folder, cli.model)
    before = {path: path.stat().st_mtime_ns for place in places for path in place.rglob("*")}
    cli("doctor", "--model", cli.model)
    assert {path: path.stat().st_mtime_ns for place in places for path in place.rglob("*")} == before


def test_a_contract_of_ones_own_is_looked_at(cli: CommandLine) -> None:
    own = cli.folder / "own.yaml"
    own.write_text("name: own\ndescription: One repeat.\nextends: strict\nrepeats: {count: 1}\n")
    told = json.loads(cli("doctor", "--json", "--model", cli.model, "--contract", own).out)
    assert told["contracts"][-1]["contract"] == str(own)
    assert told["contracts"][-1]["clauses"]["repeats"]["prospect"] == "can only be unproven"


def test_a_wrong_contract_is_told_like_anywhere_else(cli: CommandLine) -> None:
    done = cli("doctor", "--contract", "nonsense")
    assert (done.code, done.out) == (2, "")
    assert "There is no contract 'nonsense'" in done.err


@pytest.fixture
def old_package(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that agenteval needs, in a version that it does not accept."""
    metadata = cli.folder / "site" / "regex-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: regex\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(metadata.parent))
    return "regex"


def test_where_a_package_is_wrong_that_alone_is_told(cli: CommandLine, old_package: str) -> None:
    done = cli("doctor")
    first, second, *_, last = done.out.splitlines()
    assert (done.code, first.split()[:2], second.split()[:2]) == (2, ["ok", "python"], ["missing", "packages"])
    assert last == f"next: {sys.executable} -m pip install --force-reinstall '{old_package}>=2024.11'"
    assert "engine" not in done.out


def test_where_a_package_is_wrong_json_keeps_its_form(cli: CommandLine, old_package: str) -> None:
    told = json.loads(cli("doctor", "--json").out)
    assert (told["is_ready"], [check["state"] for check in told["checks"]]) == (False, ["ok", "missing"])
    assert (told["contracts"], told["next"].startswith(sys.executable)) == ([], True)


def test_a_broken_interpreter_hides_nothing_else(
    doctor: Callable[..., dict[str, dict[str, str]]], cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = cli.folder / "python"
    python.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    python.chmod(0o755)
    monkeypatch.setenv("AGENTEVAL_ENGINE_PYTHON", str(python))
    assert states(doctor(), "engine", "model", "database", "exit") == ["missing", "ok", "ok", "2"]


def test_a_damaged_database_hides_nothing_else(
    doctor: Callable[..., dict[str, dict[str, str]]], cli: CommandLine
) -> None:
    cli.db.write_text("no database")
    assert states(doctor(), "database", "engine", "model", "exit") == ["missing", "ok", "ok", "2"]


def test_a_cache_that_is_no_folder_hides_nothing_else(
    doctor: Callable[..., dict[str, dict[str, str]]], cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cli.folder / "cache").write_text("")
    monkeypatch.setenv("AGENTEVAL_CACHE", str(cli.folder / "cache"))
    assert states(doctor(), "disk", "engine", "model", "servers", "exit") == ["missing", "ok", "ok", "ok", "2"]


def test_half_a_model_hides_nothing_else(cli: CommandLine) -> None:
    model = Path(shutil.copytree(cli.model, cli.folder / "half"))
    (model / "model.safetensors").unlink()
    done = cli("doctor", "--json", "--model", model)
    checks = {check["name"]: check for check in json.loads(done.out)["checks"]}
    assert states(checks, "model", "engine") == ["missing", "ok"]
    assert (done.code, checks["model"]["found"]) == (2, f"{model} cannot be served: it holds no weights")


def test_the_catalogues_model_is_not_fetched(cli: CommandLine, cache: Path) -> None:
    done = cli("doctor")
    assert done.out.endswith("\nnext: agenteval models pull qwen2.5-coder-0.5b-instruct\n")
    assert not (cache / "models").exists()
