"""YAML files: read as what they look like, or refused with every problem and its place."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from agenteval import words
from agenteval.errors import FileProblemsError
from agenteval.loading import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_FINDINGS,
    Document,
    Frozen,
    findings_text,
    key_text,
    raise_if_any,
    read_yaml,
    validate,
)
from agenteval.words import nearest


class Circle(Frozen):
    """One member of a union."""

    kind: Literal["circle"]
    radius: float


class Square(Frozen):
    """The other member."""

    kind: Literal["square"]
    side: int = Field(ge=1)


class Drawing(Frozen):
    """A model with what the real ones have: choices, unions, lists, free data."""

    name: str
    unit: Literal["metre", "inch"] = "metre"
    shapes: tuple[Annotated[Circle | Square, Field(discriminator="kind")], ...] = Field(default=(), min_length=1)
    free: dict[str, Any] = Field(default_factory=dict)
    mixed: list[int] | dict[str, int] = Field(default_factory=list)


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def load(path: Path) -> Drawing | None:
    """As the loaders of suites and contracts do it."""
    document = read_yaml(path)
    drawing = None if document.problems else validate(document, Drawing)
    raise_if_any([document])
    return drawing


def problems_of(folder: Path, text: str | bytes) -> list[tuple[int | None, str, str]]:
    """Line, key and message of every problem."""
    with pytest.raises(FileProblemsError) as caught:
        load(write(folder, text))
    return [(problem.line, problem.key, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("yes", "yes", id="yes-is-a-text"),
        pytest.param("on", "on", id="on-is-a-text"),
        pytest.param("NO", "NO", id="norway"),
        pytest.param("2026-01-15", "2026-01-15", id="a-date-is-a-text"),
        pytest.param("12:30:45", "12:30:45", id="a-time-is-a-text"),
        pytest.param("1_000", "1_000", id="underscores-are-a-text"),
        pytest.param("007", "007", id="leading-zeros-are-a-text"),
        pytest.param("007.5", "007.5", id="leading-zeros-before-a-point-too"),
        pytest.param("0x1f", "0x1f", id="hexadecimal-is-a-text"),
        pytest.param(".nan", ".nan", id="nan-is-a-text"),
        pytest.param(".inf", ".inf", id="infinity-is-a-text"),
        pytest.param("NaN", "NaN", id="nan-of-other-languages-is-a-text"),
        pytest.param("True", True, id="true"),
        pytest.param("FALSE", False, id="false"),
        pytest.param("~", None, id="null-sign"),
        pytest.param("Null", None, id="null-word"),
        pytest.param("", None, id="nothing"),
        pytest.param("-12", -12, id="integer"),
        pytest.param("1.50", 1.5, id="decimal"),
        pytest.param("1e3", 1000.0, id="exponent"),
        pytest.param("'5'", "5", id="quoted-number"),
        pytest.param('"null"', "null", id="quoted-null"),
        pytest.param("9" * 31, int("9" * 31), id="large-integer"),
        pytest.param("[1, {a: b}]", [1, {"a": "b"}], id="flow"),
    ],
)
def test_a_value_is_what_it_looks_like(tmp_path: Path, text: str, value: Any) -> None:
    document = read_yaml(write(tmp_path, f"free: {text}\n"))
    assert document.problems == []
    assert document.data == {"free": value}
    assert type(document.data["free"]) is type(value)


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param(BOMB, 1, "more than 200,000 values; are aliases (*name) nested?", id="bomb"),
        pytest.param("&a [*a]", 1, f"nested deeper than {MAX_DEPTH} levels", id="alias-of-itself"),
        pytest.param("name: &a {x: *a}", 1, f"nested deeper than {MAX_DEPTH} levels", id="map-in-itself"),
        pytest.param(f"a: {'[' * 61}{']' * 61}", 1, f"nested deeper than {MAX_DEPTH} levels", id="nested"),
        pytest.param("[" * 100_000, 1, "not YAML: exceeded maximum nesting depth", id="never-closed"),
        pytest.param("{a: " * 5_000, 1, "not YAML: exceeded maximum nesting depth", id="deep-maps"),
        pytest.param(
            "".join(" " * n + "-\n" for n in range(1_200)),
            1_000,
            "not YAML: exceeded maximum nesting depth",
            id="stairs",
        ),
        pytest.param("name: x\nfree: \0", 2, "not YAML: the character '\\x00' is not allowed", id="null-byte"),
        pytest.param("name: x\n---\nname: y", 2, "not YAML: but found another document", id="two-documents"),
        pytest.param("name: *nope", 1, "not YAML: found undefined alias", id="undefined-alias"),
        pytest.param("a: b: c", 1, "not YAML: mapping values are not allowed in this context", id="syntax"),
        pytest.param("a: 'x", 1, "not YAML: found unexpected end of stream", id="open-quote"),
        pytest.param('a: "\\ud800"', 1, "not YAML: found invalid Unicode character escape code", id="surrogate"),
        pytest.param('"\\ud800": 1', 1, "not YAML: found invalid Unicode character escape code", id="surrogate-as-key"),
        pytest.param("%YAML 9.9\n---\na: 1", 1, None, id="version"),
    ],
)
def test_what_is_no_yaml_is_one_problem(tmp_path: Path, text: str, line: int | None, message: str | None) -> None:
    ((found_line, key, found),) = problems_of(tmp_path, text)
    assert (found_line, key) == (line, "")
    assert message is None or found == message


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        pytest.param("!!python/object:os.system x", 2, "free.a", "the tag !!python/object:os.system", id="object"),
        pytest.param("!!python/object/apply:os.system [x]", 2, "free.a", "the tag !!python/object/apply", id="apply"),
        pytest.param("!!python/name:os.system ''", 2, "free.a", "the tag !!python/name:os.system", id="name"),
        pytest.param("!!binary aGk=", 2, "free.a", "the tag !!binary", id="binary"),
        pytest.param("!!set {x}", 2, "free.a", "the tag !!set", id="set"),
        pytest.param("!!str 5", 2, "free.a", "the tag !!str", id="even-str"),
        pytest.param("!mine x", 2, "free.a", "the tag !mine", id="local"),
        pytest.param("{? [x] : y}", 2, "free.a", "a key must be a plain text", id="list-as-key"),
        pytest.param("{<<: {b: 1}}", 2, "free.a", "merge keys (<<) are not read", id="merge-key"),
        pytest.param("1e999", 2, "free.a", "1e999 is too large for a number", id="infinite-float"),
        pytest.param("9" * 5_000, 2, "free.a", "9" * 40 + " is too large for a number", id="endless-integer"),
        pytest.param("{b: 1, b: 2}", 2, "free.a.b", "the key 'b' stands twice; first on line 2", id="duplicate"),
        pytest.param("{1: x, '1': y}", 2, "free.a.1", "the key '1' stands twice; first on line 2", id="as-text"),
    ],
)
def test_what_could_be_misread_is_refused(tmp_path: Path, text: str, line: int, key: str, message: str) -> None:
    ((found_line, found_key, found),) = problems_of(tmp_path, f"name: x\nfree: {{a: {text}}}\n")
    assert (found_line, found_key) == (line, key)
    assert found.startswith(message)


def test_a_quoted_merge_key_is_an_ordinary_key(tmp_path: Path) -> None:
    document = read_yaml(write(tmp_path, 'free: {"<<": 1}\n'))
    assert (document.problems, document.data) == ([], {"free": {"<<": 1}})


def test_nothing_is_constructed_or_run(tmp_path: Path) -> None:
    target = tmp_path / "run"
    problems_of(tmp_path, f"free: !!python/object/apply:os.system ['touch {target}']\n")
    assert not target.exists()


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert [problem.message for problem in read_yaml(path).problems] == ["larger than 1,000,000 bytes"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("name: é".encode("latin-1"), id="latin-1"),
        pytest.param("name: x".encode("utf-16"), id="utf-16"),
        pytest.param(b"\xff\xfe\x00", id="bytes"),
        pytest.param(b"name: \xed\xa0\x80", id="encoded-surrogate"),
    ],
)
def test_what_is_no_utf8_is_one_problem(tmp_path: Path, content: bytes) -> None:
    ((line, key, message),) = problems_of(tmp_path, content)
    assert (line, key) == (None, "")
    assert message.startswith("cannot be read as text")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert read_yaml(write(tmp_path, b"\xef\xbb\xbfname: x")).data == {"name": "x"}


def test_a_folder_or_a_missing_file_is_one_problem(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.yaml"):
        (problem,) = read_yaml(path).problems
        assert problem.message.startswith("cannot be read as text")


KEYS = st.text("abcdefgh", min_size=1, max_size=3)
TREES = st.recursive(
    st.integers(-(2**63), 2**63) | st.text("xyz ", max_size=4),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(KEYS, children, max_size=3),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(depth=st.integers(0, 20), other=KEYS.filter(lambda key: key != "twice"))
def test_a_key_that_stands_twice_is_reported_at_any_depth(tmp_path: Path, depth: int, other: str) -> None:
    lines = ["  " * level + f"level{level}:" for level in range(depth)]
    lines += ["  " * depth + line for line in ("twice: 1", f"{other}: 2", "twice: 3")]
    document = read_yaml(write(tmp_path, "\n".join(lines)))
    (problem,) = document.problems
    assert problem.line == depth + 3
    assert problem.message == f"the key 'twice' stands twice; first on line {depth + 1}"
    assert problem.key.split(".") == [*(f"level{level}" for level in range(depth)), "twice"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES)
def test_what_yaml_writes_reads_back_equal(tmp_path: Path, tree: Any) -> None:
    document = read_yaml(write(tmp_path, yaml.safe_dump({"free": tree})))
    assert document.problems == []
    assert document.data == {"free": tree}


HOSTILE = st.text("ab:-{}[]&*!?|>'\"#%@,\n \t<.~0", max_size=60)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(text=st.text(max_size=60) | HOSTILE | HOSTILE.map(lambda text: f"name: x\nshapes: {text}"))
def test_no_text_raises_anything_but_file_problems(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with contextlib.suppress(FileProblemsError):
        load(path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60))
def test_no_bytes_raise_anything_but_file_problems(tmp_path: Path, content: bytes) -> None:
    with contextlib.suppress(FileProblemsError):
        load(write(tmp_path, content))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "name: x\nnam: y\nshapes: [{kind: square, side: 1}]",
            (2, "nam", "unknown key 'nam'. Did you mean 'name'? Known: free, mixed, name, shapes, unit."),
            id="unknown-key",
        ),
        pytest.param(
            "name: x\nshapes:\n  - kind: circle\n    radius: 1\n    radus: 2",
            (5, "shapes[0].radus", "unknown key 'radus'. Did you mean 'radius'? Known: kind, radius."),
            id="unknown-key-of-a-union-member",
        ),
        pytest.param(
            "name: x\nshapes:\n  - kind: sqare\n    side: 1",
            (3, "shapes[0]", "'sqare' is not one of 'circle', 'square'. Did you mean 'square'?"),
            id="unknown-kind",
        ),
        pytest.param(
            "name: x\nshapes:\n  - side: 1",
            (3, "shapes[0]", "the key 'kind' is missing; it says which is meant: circle, square"),
            id="no-kind",
        ),
        pytest.param(
            "name: x\nshapes: [{kind: 5, side: 1}]",
            (2, "shapes[0]", "5 is not one of 'circle', 'square'."),
            id="a-kind-that-is-no-text",
        ),
        pytest.param(
            "name: x\nshapes: [{kind: square, side: " + "x" * 90 + "}]",
            (2, "shapes[0].side", "must be a whole number, not a text of 90 characters"),
            id="a-long-text",
        ),
        pytest.param(
            "name: [" + "word, " * 90 + "]\nshapes: [{kind: square, side: 1}]",
            (1, "name", "must be a text (in quotes where it looks like something else), not a list of 90"),
            id="a-long-list",
        ),
        pytest.param(
            "name: x\nshapes: [{kind: square, side: 1, " + "y" * 500 + ": 1}]",
            (2, f"shapes[0].{'y' * 500}", "unknown key a text of 500 characters. Known: kind, side."),
            id="a-long-key",
        ),
        pytest.param(
            "name: x\nshapes: [{kind: square, side: 1}]\nmixed: 5",
            (3, "mixed", "must be a list or a mapping of keys to values, not 5"),
            id="one-of-two-forms",
        ),
        pytest.param("shapes: [{kind: square, side: 1}]", (1, "name", "the key 'name' is missing"), id="missing"),
        pytest.param(
            "name: x\nunit: meter\nshapes: [{kind: square, side: 1}]",
            (2, "unit", "'meter' is not one of 'metre' or 'inch'. Did you mean 'metre'?"),
            id="unknown-word",
        ),
        pytest.param(
            "name: 5\nshapes: [{kind: square, side: 1}]",
            (1, "name", "must be a text (in quotes where it looks like something else), not 5"),
            id="nothing-is-coerced-to-text",
        ),
        pytest.param(
            "name: x\nshapes: [{kind: circle, radius: '1'}]",
            (2, "shapes[0].radius", "must be a number, not '1'"),
            id="nothing-is-coerced-to-a-number",
        ),
        pytest.param(
            "name: x\nshapes: [{kind: circle, radius: .nan}]",
            (2, "shapes[0].radius", "must be a number, not '.nan'"),
            id="nan",
        ),
        pytest.param("name: x\nshapes: []", (2, "shapes", "needs 1 or more items, not []"), id="empty"),
        pytest.param("[]", (1, "", "must be a mapping of keys to values, not []"), id="list"),
        pytest.param("", (None, "", "must be a mapping of keys to values, not None"), id="empty-file"),
    ],
)
def test_a_problem_names_its_place_and_the_nearest_right_word(
    tmp_path: Path, text: str, expected: tuple[int | None, str, str | None]
) -> None:
    ((line, key, message),) = problems_of(tmp_path, text)
    assert (line, key) == expected[:2]
    assert expected[2] is None or message == expected[2]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("same: 1\n", id="one-key-many-times"),
        pytest.param("<<: 1\n", id="merge-keys"),
        pytest.param("? [a]\n: 1\n", id="keys-that-are-lists"),
    ],
)
def test_after_so_many_problems_the_rest_of_a_file_is_not_read(tmp_path: Path, line: str) -> None:
    found = read_yaml(write(tmp_path, line * 1_000)).problems
    assert len(found) == MAX_FINDINGS + 1
    assert found[-1].message == "more than 100 problems; the rest of the file was not read"


def test_a_mapping_is_searched_once_for_the_lines_of_all_its_keys(tmp_path: Path) -> None:
    document = read_yaml(write(tmp_path, "".join(f"k{number}: 1\n" for number in range(50))))
    assert [document.line((f"k{number}",)) for number in range(50)] == list(range(1, 51))
    assert len(document._pairs) == 1


def test_a_model_made_in_python_has_its_findings_in_the_same_words() -> None:
    with pytest.raises(pydantic.ValidationError) as caught:
        Drawing(name="x", shapes=({"kind": "circle", "radus": 1.0, "radius": "1"},))  # type: ignore[arg-type]
    assert findings_text(caught.value) == (
        "shapes[0].radius: must be a number, not '1'; "
        "shapes[0].radus: unknown key 'radus'. Did you mean 'radius'? Known: kind, radius."
    )


def test_every_problem_is_reported_at_once_in_order_of_line(tmp_path: Path) -> None:
    text = "nme: x\nunit: foot\nshapes:\n  - kind: square\n    side: 0\n  - kind: circle\n"
    found = problems_of(tmp_path, text)
    assert [(line, key) for line, key, _ in found] == [
        (1, "name"),
        (1, "nme"),
        (2, "unit"),
        (5, "shapes[0].side"),
        (6, "shapes[1].radius"),
    ]


def test_too_few_items_is_no_problem_of_its_own_where_an_item_is_wrong(tmp_path: Path) -> None:
    """pydantic counts only the items that are right; the person did write one."""
    found = problems_of(tmp_path, "name: x\nshapes:\n  - kind: square\n    side: 0\n")
    assert [key for _, key, _ in found] == ["shapes[0].side"]


def test_problems_of_many_files_come_in_order_of_file_and_line(tmp_path: Path) -> None:
    documents = []
    for name in ("b.yaml", "a.yaml"):
        path = tmp_path / name
        path.write_text("x: 1\nx: 2\nx: 3\n", encoding="utf-8")
        documents.append(read_yaml(path))
    with pytest.raises(FileProblemsError) as caught:
        raise_if_any(documents)
    places = [(problem.path.name, problem.line) for problem in caught.value.problems]
    assert places == [("a.yaml", 2), ("a.yaml", 3), ("b.yaml", 2), ("b.yaml", 3)]
    assert str(caught.value).startswith("4 problems; nothing was run:\n")


def test_no_problem_raises_nothing(tmp_path: Path) -> None:
    raise_if_any([Document(path=tmp_path / "a.yaml")])


def test_a_part_of_a_document_is_validated_at_its_place(tmp_path: Path) -> None:
    document = read_yaml(write(tmp_path, "inner:\n  kind: square\n  side: 0\n"))
    assert validate(document, Square, document.data["inner"], ("inner",)) is None
    (problem,) = document.problems
    assert (problem.line, problem.key) == (3, "inner.side")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_one_problem(tmp_path: Path) -> None:
    path = write(tmp_path, "name: x")
    path.chmod(0)
    assert len(read_yaml(path).problems) == 1


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ((), ""),
        (("tasks", 2, "prompt"), "tasks[2].prompt"),
        ((0, "a"), "[0].a"),
        (("a", 0, 1, "b"), "a[0][1].b"),
    ],
)
def test_a_key_path_as_text(key: tuple[str | int, ...], text: str) -> None:
    assert key_text(key) == text


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("temprature", " Did you mean 'temperature'?"),
        ("zzz", ""),
        ("", ""),
        ("seed", " Did you mean 'seed'?"),
    ],
)
def test_nearest_names_a_word_only_where_one_is_near(word: str, hint: str) -> None:
    assert nearest(word, ["temperature", "seed"]) == hint


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("get_thong_1234", id="like-many"),
        pytest.param("x" * 100_000, id="long"),
        pytest.param("", id="empty"),
    ],
)
def test_a_word_is_compared_with_so_many_others_at_most(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[list[str]] = []
    monkeypatch.setattr(words.difflib, "get_close_matches", lambda _, known, **__: compared.append(known) or [])
    nearest(word, [f"get_thing_{number}" for number in range(5_000)])
    assert [len(known) <= words.MAX_COMPARED for known in compared] == [True]


def test_the_nearest_of_thousands_is_found_by_its_length_and_an_end() -> None:
    known = [*(f"other_{number}" for number in range(5_000)), "kilo_stock"]
    assert nearest("kilo_stokc", known) == " Did you mean 'kilo_stock'?"


def test_a_loaded_model_cannot_be_changed(tmp_path: Path) -> None:
    drawing = load(write(tmp_path, "name: x\nshapes: [{kind: square, side: 1}]"))
    assert drawing is not None
    with pytest.raises(ValueError, match="frozen"):
        drawing.name = "y"
