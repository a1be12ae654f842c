"""Reading JSON of all shapes, and what is refused of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import JSON

from agenteval.interchange import source
from agenteval.interchange.source import MAX_DEPTH, Known, read_json_values, unknown_fields


def read(folder: Path, text: str | bytes) -> source.JsonDocument:
    path = folder / "source.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_json_values(path)


@pytest.mark.parametrize(
    ("text", "values", "lines"),
    [
        pytest.param('[{"a": 1},\n {"a": 2}]', [{"a": 1}, {"a": 2}], [1, 2], id="list"),
        pytest.param('{"a": 1}\n\n{"a": 2}\n', [{"a": 1}, {"a": 2}], [1, 3], id="lines"),
        pytest.param('{"a":\n1}{"a": 2}', [{"a": 1}, {"a": 2}], [1, 2], id="one-after-the-other"),
        pytest.param('\ufeff{"a": 1}', [{"a": 1}], [1], id="byte-order-mark"),
        pytest.param("\n[ 1 , [2] ]\n", [1, [2]], [2, 2], id="plain-values"),
    ],
)
def test_values_and_their_lines(tmp_path: Path, text: str, values: list[Any], lines: list[int]) -> None:
    document = read(tmp_path, text)
    assert not document.problems
    assert (document.data, document.lines) == (values, lines)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("", [(None, "", "nothing in it")], id="empty"),
        pytest.param("[]", [(None, "", "nothing in it")], id="empty-list"),
        pytest.param("[1,\n", [(2, "[0]", "the list has no end")], id="no-end"),
        pytest.param("[1 2]", [(1, "[0]", "a comma or a ]")], id="no-comma"),
        pytest.param("[1] 2", [(1, "[0]", "after the list's end")], id="more-behind"),
        pytest.param('1\n{"a": }\n3\n{', [(2, "[1]", "not JSON"), (4, "[3]", "not JSON")], id="wrong-lines"),
        pytest.param('[NaN,\n{"a":1,"a":2},\n1e999,\n-Infinity]', [
            (1, "[0]", "NaN is no JSON number"),
            (2, "[1]", "'a' stands twice"),
            (3, "[2]", "too large for a number"),
            (4, "[3]", "-Infinity is no JSON number"),
        ], id="refused-values"),
        pytest.param("[" + "9" * 33 + "]", [(1, "[0]", "more than 32 digits")], id="long-integer"),
        pytest.param("[" + "9" * 5_000 + "]", [(1, "[0]", "more than 32 digits")], id="very-long-integer"),
        pytest.param('["\\ud800"]', [(1, "[0]", "half a character")], id="half-a-character"),
        pytest.param('[{"x": {"\\ud800": 1}}]', [(1, "[0].x", "no text that a file can store")], id="in-a-key"),
        pytest.param("[" * 50 + "]" * 50, [(1, "[0][0][0][0]", "nested deeper")], id="deep"),
        pytest.param("[" * 100_000, [(1, "[0]", "nested deeper")], id="deeper-than-the-stack"),
        pytest.param(b"\xff", [(None, "", "cannot be read as text")], id="no-text"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str | bytes, found: list[tuple[int | None, str, str]]) -> None:
    problems = read(tmp_path, text).problems
    assert [(problem.line, problem.key) for problem in problems] == [(line, key) for line, key, _ in found]
    for problem, (_, _, words) in zip(problems, found, strict=True):
        assert words in problem.message


def test_a_larger_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_SOURCE_BYTES", 3)
    assert [problem.message for problem in read(tmp_path, "[1, 2]").problems] == ["larger than 3 bytes"]


def test_problems_without_end_are_cut_short(tmp_path: Path) -> None:
    problems = read(tmp_path, "x\n" * 1_000).problems
    assert len(problems) == source.MAX_PROBLEMS + 1
    assert "too many problems" in problems[-1].message


@given(st.lists(JSON, min_size=1, max_size=3), st.booleans())
def test_what_json_holds_is_read_back_equal(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], is_list: bool
) -> None:
    text = json.dumps(values) if is_list else "\n".join(map(json.dumps, values))
    document = read(tmp_path_factory.mktemp("source"), text)
    # A text line that starts with a list is a list of values.
    if is_list or not isinstance(values[0], list):
        assert not document.problems
        assert repr(document.data) == repr(values)


class Inner(Known):
    a: int = 0


class Outer(Known):
    inner: Inner
    several: list[Inner]


def test_unknown_fields_are_found_at_every_depth() -> None:
    data = {"inner": {"a": 1, "b": 2}, "several": [{}, {"c": None}], "d": {"e": 1}}
    assert list(unknown_fields(Outer.model_validate(data))) == ["d", "inner.b", "several[1].c"]


def test_the_depth_that_is_allowed_fits_the_loader() -> None:
    from agenteval.loading import MAX_DEPTH as LOADER_DEPTH

    assert MAX_DEPTH + 10 <= LOADER_DEPTH
