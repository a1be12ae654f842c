"""`agenteval new suite`: what it writes loads, has no slips, and can be passed and failed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from agenteval.cli import main
from agenteval.cli.new import TASK
from agenteval.lint import inspect_suite
from agenteval.play import PlaySession
from agenteval.spec import TaskVariant, load_suite

PERFECT = {
    "find-shelf/novel": ['find_book title="The Salt Road"', "finish It stands on shelf C4."],
    "find-shelf/atlas": ['find_book title="Atlas of Rivers"', "finish F1"],
    "renew-loan/base": [
        'find_book title="The Salt Road"',
        "renew_loan code=B12 days=14",
        "renew_loan code=B12 days=14",
        "finish 17 days",
    ],
}
LAZY = ["finish done"]


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["new", "suite", str(tmp_path / "desk")]) == 0
    capsys.readouterr()
    return tmp_path / "desk"


def played(variant: TaskVariant, lines: list[str]) -> PlaySession:
    session = PlaySession(variant, clock="2026-01-15T09:00:00Z")
    for line in lines:
        session.take(line)
    return session


def test_it_loads_and_nothing_in_it_looks_like_a_slip(folder: Path) -> None:
    inspection = inspect_suite(folder)
    assert inspection.warnings == ()
    assert inspection.suite.name == "desk"


def test_agenteval_check_finds_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder)]) == 0
    assert "0 problems, 0 warnings" in capsys.readouterr().out


def test_a_perfect_player_passes_and_every_fault_fires(folder: Path) -> None:
    variants = {variant.label: variant for variant in load_suite(folder).variants}
    assert set(variants) == set(PERFECT)
    for label, lines in PERFECT.items():
        session = played(variants[label], lines)
        assert session.exit_status == 0, session.closing()
        assert "did not fire" not in session.closing()


def test_a_lazy_player_fails(folder: Path) -> None:
    assert [played(variant, LAZY).exit_status for variant in load_suite(folder).variants] == [1, 1, 1]


def test_it_shows_variants_state_a_fault_and_checks_of_several_kinds(folder: Path) -> None:
    variants = load_suite(folder).variants
    assert len({variant.task for variant in variants}) == 2
    assert {check.kind for variant in variants for check in variant.checks} >= {"answer", "world", "called", "order"}
    assert any(variant.faults and variant.task == TASK for variant in variants)


def test_it_says_what_was_written_and_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my suite"
    assert main(["new", "suite", str(folder)]) == 0
    shown = capsys.readouterr()
    assert shown.out.split("\n")[:-1] == [str(folder / "suite.yaml"), str(folder / "library.yaml")]
    commands = [shlex.split(line.removeprefix("next"))[1:] for line in shown.err.split("\n")[:-1]]
    assert commands == [
        ["check", str(folder)],
        ["play", str(folder), TASK],
        ["run", str(folder), "--contract", "strict"],
    ]
    assert main(commands[0]) == 0


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert main(["new", "suite", str(tmp_path)]) == 0


def test_the_folder_here_gives_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["new", "suite", "."]) == 0
    assert load_suite(Path()).name == "here"


@pytest.mark.parametrize(("place", "message"), [("full", "is not empty"), ("full/file", "is no folder")])
def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, message: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert main(["new", "suite", str(tmp_path / place)]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


def test_a_place_that_cannot_be_written_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["new", "suite", str(tmp_path / "file" / "below")]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert "Not a directory" in shown


@pytest.mark.parametrize(("last_part", "name"), [("My Suite 2", "My-Suite-2"), ("2026", "suite-2026")])
def test_the_last_part_of_a_path_becomes_a_name(tmp_path: Path, last_part: str, name: str) -> None:
    assert main(["new", "suite", str(tmp_path / last_part)]) == 0
    assert load_suite(tmp_path / last_part).name == name


@pytest.mark.parametrize("name", ["true", "Null", "no", "y"])
def test_a_name_that_yaml_reads_as_something_else_stays_a_name(tmp_path: Path, name: str) -> None:
    assert main(["new", "suite", str(tmp_path / name)]) == 0
    assert load_suite(tmp_path / name).name == name
