"""`agenteval check`: what it looks at, what it prints, and its exit status."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agenteval.cli import main

ROOT = Path(__file__).parents[3]
STARTER, STRICT = ROOT / "tasks" / "starter", ROOT / "contracts" / "strict.yaml"
UNUSED_TOOL = "tools: [{name: ping, description: Answers pong., parameters: {type: object}, default: {returns: pong}}]"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite in which nothing is wrong."""
    return Path(shutil.copytree(STARTER, tmp_path / "suites" / "starter"))


def test_a_suite_without_problems_is_named_with_its_size_and_digest(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(suite)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{suite}  suite starter: 16 tasks, 17 variants, 15 tools, sha256:")
    assert last == "0 problems, 0 warnings"


def test_a_warning_is_shown_and_changes_no_exit_status(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (suite / "more.yaml").write_text(UNUSED_TOOL)
    assert main(["check", str(suite)]) == 0
    shown = capsys.readouterr().out
    assert f"  warning  {suite / 'more.yaml'}:1: tools[0].name: no task uses the tool 'ping'" in shown
    assert shown.endswith("0 problems, 1 warning\n")


def test_every_problem_of_every_path_is_shown_at_once(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (suite / "more.yaml").write_text("tools: []\ntasks: [{name: a}, {nmae: b}]")
    contract = suite.parent / "mine.yaml"
    contract.write_text("name: mine\ndescription: d\nextends: strict\ncach: {}\n")
    assert main(["check", str(suite), str(contract), str(STRICT)]) == 2
    shown = capsys.readouterr().out
    for words in ("the key 'checks' is missing", "Did you mean 'name'?", "Did you mean 'cache'?"):
        assert words in shown
    assert f"{STRICT}  contract strict, sha256:" in shown


def test_a_folder_without_a_suite_stands_for_those_below_it(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(suite, suite.parent / "deep" / "other")
    assert main(["check", str(suite.parent), "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [report["path"] for report in reports] == [str(suite.parent / "deep" / "other"), str(suite)]
    assert len({report["digest"] for report in reports}) == 1


@pytest.mark.parametrize("place", ["", "nowhere"])
def test_a_place_without_any_suite_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str) -> None:
    assert main(["check", str(tmp_path / place), "--json"]) == 2
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["digest"], report["warnings"]) == (None, [])
    (problem,) = report["problems"]
    assert (problem["path"], problem["line"], problem["key"]) == (str(tmp_path / place), None, "")
    assert "it has no suite.yaml. A suite is a folder" in problem["message"]
    assert "`agenteval new suite FOLDER`" in problem["message"]


@pytest.mark.parametrize("name", ["suite.yaml", "travel.yaml"])
def test_a_file_of_a_suite_stands_for_the_suite(suite: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["check", str(suite / name)]) == 0
    assert capsys.readouterr().out.startswith(f"{suite}  suite starter: ")


def test_what_a_file_says_cannot_steer_the_terminal(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (suite / "more.yaml").write_text('"\\e[2J": 1\n')
    assert main(["check", str(suite)]) == 2
    assert all(character.isprintable() or character == "\n" for character in capsys.readouterr().out)
