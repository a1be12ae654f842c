"""What is written reads back equal, in files that the loader takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import REALS, TEXT

from agenteval import expressions
from agenteval.errors import InputError
from agenteval.interchange import import_suite, writing
from agenteval.interchange.checks import without_templates
from agenteval.interchange.yaml_text import to_yaml
from agenteval.loading import read_yaml
from agenteval.spec import load_suite

WORDS = st.sampled_from(
    "yes no on off y null ~ true 1e3 .5 0x1f 0o7 1_000 1:30 2001-01-01 .inf .NaN << = ? - -- --- ... !x &a *a % @ ` |"
    " > # {} [] '' \" ${a} $${".split()
)
LINES = st.text("ab \n\t\r:#-'\"$ {}|>\\\u2028\x85\ufeffé\U0001f600", max_size=30)
TEXTS = TEXT | WORDS | LINES
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | REALS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
@example("a long text that is folded " * 20)
@example({"": "", "a\nb": [" a\n  b\n\n", "\n", " "]})
@example([-0.0, 1e20, 5e-324, 10**31])
def test_yaml_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("yaml") / "a.yaml"
    path.write_text(to_yaml({"value": value}), encoding="utf-8")
    document = read_yaml(path)
    assert not document.problems
    # As texts, since 1 is not 1.0 here, nor 0.0 -0.0.
    assert repr(document.data) == repr({"value": value})


@given(st.lists(VALUES, min_size=1, max_size=4))
@example(["a\n\n", "b"])
@example([{"a": {"b": "c\n\n\n"}}, {"a": "\n"}, "\n\n"])
def test_items_that_are_written_one_by_one_are_one_list(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("yaml") / "a.yaml"
    path.write_text("tasks:\n" + "".join(to_yaml([{"x": item}]) for item in items), encoding="utf-8")
    document = read_yaml(path)
    assert not document.problems
    assert repr(document.data) == repr({"tasks": [{"x": item} for item in items]})


@given(VALUES)
@example("$$${a}")
@example(["${", "$${", "${vars.x}", "a ${1} b"])
def test_texts_of_a_source_are_no_templates(value: Any) -> None:
    escaped = without_templates(value)
    assert not expressions.problems(escaped, ())
    assert expressions.render(escaped, {}) == value


def source(folder: Path, tasks: int, length: int, actions: int = 1) -> Path:
    made = [{"name": "do", "arguments": {"n": n}} for n in range(actions)]
    path = folder / "tasks.json"
    path.write_text(
        json.dumps(
            [
                {
                    "id": f"t{number}",
                    "user_scenario": {"instructions": "x" * length},
                    "evaluation_criteria": {"actions": made},
                }
                for number in range(tasks)
            ]
        ),
        encoding="utf-8",
    )
    return path


def test_tasks_are_split_into_files_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_CHUNK_BYTES", 5_000)
    import_suite("tau2", source(tmp_path, tasks=80, length=400), tmp_path / "suite")
    files = sorted(file.name for file in (tmp_path / "suite").glob("tasks*"))
    assert len(files) > 10
    assert files[0] == "tasks-01.yaml"
    assert all((tmp_path / "suite" / name).stat().st_size < 5_500 for name in files)
    assert [variant.task for variant in load_suite(tmp_path / "suite").variants] == [f"t{n}" for n in range(80)]


@pytest.mark.parametrize(("limit", "value"), [("MAX_CHUNK_BYTES", 2_000), ("MAX_CHUNK_VALUES", 200)])
def test_a_task_that_no_file_could_hold_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(writing, limit, value)
    path = source(tmp_path, tasks=1, length=10)
    tasks = json.loads(path.read_text()) + json.loads(source(tmp_path, tasks=2, length=10, actions=100).read_text())[1:]
    path.write_text(json.dumps(tasks), encoding="utf-8")
    report = import_suite("tau2", path, tmp_path / "suite")
    assert list(report.ids.values()) == ["t0"]
    assert "larger than a task may be" in report.left_out["t1"]


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "mine").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="not empty"):
        import_suite("tau2", source(tmp_path, tasks=1, length=1), tmp_path / "suite")
    assert [file.name for file in (tmp_path / "suite").iterdir()] == ["mine"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    import_suite("tau2", source(tmp_path, tasks=1, length=1), tmp_path / "suite")
    assert {file.name for file in (tmp_path / "suite").iterdir()} == {
        "suite.yaml",
        "tasks.yaml",
        "tools.yaml",
        "IMPORT.md",
    }


def test_an_import_is_the_same_each_time(tmp_path: Path) -> None:
    path = source(tmp_path, tasks=3, length=5)
    texts = []
    for name in ("a", "b"):
        import_suite("tau2", path, tmp_path / name)
        texts.append({file.name: file.read_text() for file in (tmp_path / name).iterdir()})
    assert texts[0] == texts[1]
