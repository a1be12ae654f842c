"""`agenteval import`: what it prints, its exit statuses, and that nothing makes it fall over."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_files import check_golden
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.cli import main
from agenteval.cli.parser import build_parser
from agenteval.errors import AgentevalError
from agenteval.interchange import FORMATS, import_suite

from .conftest import SOURCES, Imported

CASES = [pytest.param("tau2", "library", id="tau2"), pytest.param("bfcl-multi-turn", "kitchen", id="bfcl-multi-turn")]


@pytest.mark.parametrize(("source_format", "source"), CASES)
def test_the_report_as_people_read_it(
    source_format: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["import", source_format, str(SOURCES / source), "suite"]) == 0
    check_golden(f"import/{source_format}.txt", capsys.readouterr().out)
    check_golden(f"import/{source_format}.md", Path("suite/IMPORT.md").read_text(encoding="utf-8"))


def test_the_report_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "tau2", str(SOURCES / "library"), str(tmp_path / "suite"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["tasks"]["found"] == report["tasks"]["imported"] + len(report["tasks"]["left_out"]) == 6
    assert set(report["ids"].values()) | set(report["tasks"]["left_out"]) == {
        "0",
        "[late]pays a fee|twice [PERSONA:None]",
        "refuse",
        "goes on",
        "judged by a model",
        "always",
    }
    assert report["suite"]["digest"].startswith("sha256:")
    assert all(set(row) == {"source", "field", "reason"} for row in report["unmapped"])


@pytest.mark.parametrize("problem", ["no-source", "no-task", "not-json", "not-empty", "a-file"])
def test_what_cannot_be_imported_is_said_and_nothing_is_written(
    problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder = tmp_path / "tasks.json", tmp_path / "suite"
    if problem != "no-source":
        always_passed = [{"id": "a", "user_scenario": {"instructions": "x"}}]
        source.write_text("{" if problem == "not-json" else json.dumps(always_passed), encoding="utf-8")
    if problem == "not-empty":
        (folder / "mine").mkdir(parents=True)
    if problem == "a-file":
        folder.write_text("", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    assert main(["import", "tau2", str(source), str(folder)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("agenteval: ")
    assert "Traceback" not in said.err
    assert sorted(tmp_path.rglob("*")) == before


def test_every_format_has_a_word_on_the_command_line() -> None:
    for name in FORMATS:
        assert build_parser().parse_args(["import", name, "a", "b"]).format == name


def test_all_tasks_are_accounted_for(library: Imported, kitchen_report: Any) -> None:
    for report in (library.report, kitchen_report):
        assert report.found == len(report.ids) + len(report.left_out)


@pytest.fixture
def kitchen_report(tmp_path: Path) -> Any:
    return import_suite("bfcl-multi-turn", SOURCES / "kitchen", tmp_path / "kitchen")


ODD: list[Any] = [
    None, True, 0, -1, 1.5, 10**40, "", "x", "${a}", "$${", "off(1)", "f(x=1)", "\0\x85\u2028", "yes", "DB", "user",
    "system", "a" * 300, "\ud800", [], [[]], [None], ["a", "a"], {}, {"a": 1}, {"": ""}, {"$ref": "x"},
    {"type": "dict"},
]  # fmt: skip
FILES = [path.relative_to(SOURCES).as_posix() for path in sorted(SOURCES.rglob("*.json"))]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 2**32), st.integers(1, 4))
def test_a_source_with_anything_anywhere_is_imported_or_refused(
    tmp_path_factory: pytest.TempPathFactory, file: str, seed: int, changes: int
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    kind = file.partition("/")[0]
    shutil.copytree(SOURCES / kind, folder / kind)
    text = (SOURCES / file).read_text(encoding="utf-8")
    values = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
    changed = mutated(values, random.Random(seed), changes)
    lines = changed if isinstance(changed, list) else [changed]
    (folder / file).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    source_format = "tau2" if kind == "library" else "bfcl-multi-turn"
    try:
        import_suite(source_format, folder / kind, folder / "suite")
    except AgentevalError as error:
        reason = str(error)
        assert not (folder / "suite").exists()
        assert str(folder / "suite") not in reason, "a suite was written that does not load"


def mutated(value: Any, chance: random.Random, changes: int) -> Any:
    """A JSON value with odd values put in, keys taken away, or unknown ones added, anywhere."""
    value = copy.deepcopy(value)
    for _ in range(changes):
        *path, last = chance.choice([place for place in places(value) if place])
        inside = value
        for part in path:
            inside = inside[part]
        what = chance.random()
        if what < 0.6:
            inside[last] = copy.deepcopy(chance.choice(ODD))
        elif what < 0.75:
            del inside[last]
        elif isinstance(inside, dict):
            inside[chance.choice(["$ref", "new", "${k}", "type", "x" * 200])] = copy.deepcopy(chance.choice(ODD))
        else:
            inside.append(copy.deepcopy(chance.choice(ODD)))
        if not value:
            return value
    return value


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of a value and of all below it."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from places(inner, (*path, key))
