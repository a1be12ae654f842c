"""Variants and the matrix that is crossed with them: names, order, collisions and limits."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.spec import load_suite, unfold
from agenteval.spec.unfold import MAX_VARIANTS

from .conftest import HEAD, TASK, TOOL, labels, load, one_problem, problems_of, variants_of, write


@pytest.mark.parametrize(
    ("variants", "matrix", "names"),
    [
        pytest.param({}, {}, ["base"], id="neither"),
        pytest.param({"b": {}, "a": {}}, {}, ["b", "a"], id="variants-as-written"),
        pytest.param({}, {"x": ["b", "a"]}, ["b", "a"], id="one-axis"),
        pytest.param({}, {"x": ["a", "b"], "y": [1, 2]}, ["a-1", "a-2", "b-1", "b-2"], id="two-axes"),
        pytest.param({"few": {}, "many": {}}, {"x": ["a", "b"]}, ["few-a", "few-b", "many-a", "many-b"], id="crossed"),
        pytest.param({}, {"x": {"small": 0.5, "none": None}}, ["small", "none"], id="named-values"),
        pytest.param({}, {"x": [True, False, None, 12]}, ["true", "false", "null", "12"], id="words-of-json"),
        pytest.param({}, {"x": {"only": [1, {"a": 2}]}}, ["only"], id="a-value-of-any-form"),
    ],
)
def test_variants_are_named_and_ordered_as_written(
    tmp_path: Path, variants: dict[str, Any], matrix: dict[str, Any], names: list[str]
) -> None:
    assert labels(variants_of(tmp_path, variants=variants, matrix=matrix)) == names


def test_each_variant_has_its_variables(tmp_path: Path) -> None:
    found = variants_of(
        tmp_path,
        prompt="${vars.n} of ${vars.what} at ${vars.price}",
        variants={"few": {"n": 2}},
        matrix={"what": ["lamp"], "price": {"cheap": 0.5, "dear": [9]}},
    )
    assert [variant.vars for variant in found] == [
        {"n": 2, "what": "lamp", "price": 0.5},
        {"n": 2, "what": "lamp", "price": [9]},
    ]
    assert [variant.prompt for variant in found] == ["2 of lamp at 0.5", "2 of lamp at [9]"]


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        pytest.param(
            {"variants": {"a b": {}}},
            "tasks[0].variants.a b",
            "'a b' cannot name a variant: it takes up to 64 letters, digits, - and _; write name: value",
            id="blank-in-a-name",
        ),
        pytest.param({"variants": {"a\n": {}}}, "tasks[0].variants.a\n", None, id="line-break-in-a-name"),
        pytest.param({"variants": {"": {}}}, "tasks[0].variants.", None, id="no-name"),
        pytest.param({"variants": {"é": {}}}, "tasks[0].variants.é", None, id="letter-of-another-script"),
        pytest.param({"variants": {"x" * 65: {}}}, f"tasks[0].variants.{'x' * 65}", None, id="long-name"),
        pytest.param({"matrix": {"x": [1.5]}}, "tasks[0].matrix.x", None, id="value-that-is-no-word"),
        pytest.param({"matrix": {"x": [-1]}}, "tasks[0].matrix.x", None, id="negative-number"),
        pytest.param({"matrix": {"x": [{"a": 1}]}}, "tasks[0].matrix.x", None, id="value-that-is-an-object"),
        pytest.param({"matrix": {"x": ["a", "a"]}}, "tasks[0].matrix.x", "a value stands twice", id="value-twice"),
        pytest.param({"matrix": {"x": [1, "1"]}}, "tasks[0].matrix.x", "a value stands twice", id="number-and-text"),
        pytest.param({"matrix": {"x": []}}, "tasks[0].matrix.x", "there are no values", id="no-values"),
        pytest.param({"matrix": {"x": {}}}, "tasks[0].matrix.x", "there are no values", id="no-named-values"),
        pytest.param(
            {"variants": {"v": {"x": 1}}, "matrix": {"x": [2]}},
            "tasks[0].matrix.x",
            "'x' is a variable of the variant 'v' too",
            id="variable-given-twice",
        ),
        pytest.param(
            {"matrix": {"x": ["a", "a-b"], "y": ["c", "b-c"]}},
            "tasks[0].matrix",
            "two combinations are named 'a-b-c'",
            id="two-ways-to-one-name",
        ),
        pytest.param(
            {"variants": {"a": {}, "a-b": {}}, "matrix": {"x": ["b-c", "c"]}},
            "tasks[0].matrix",
            "two combinations are named 'a-b-c'",
            id="variant-and-value-to-one-name",
        ),
        pytest.param({"matrix": ["a"]}, "tasks[0].matrix", None, id="matrix-is-a-list"),
        pytest.param({"variants": ["a"]}, "tasks[0].variants", None, id="variants-are-a-list"),
        pytest.param({"variants": {"a": None}}, "tasks[0].variants.a", None, id="variant-is-null"),
    ],
)
def test_what_cannot_be_unfolded_is_said(tmp_path: Path, fields: dict[str, Any], key: str, message: str | None) -> None:
    found_key, found = one_problem(tmp_path, task=fields)
    assert found_key == key
    assert message is None or found == message


def test_an_axis_that_is_a_text_is_told_both_forms_that_it_may_have(tmp_path: Path) -> None:
    folder = write(tmp_path, a={"tools": [TOOL], "tasks": [{**TASK, "matrix": {"x": "ab"}}]})
    assert [(key, message) for _, key, message in problems_of(folder)] == [
        ("tasks[0].matrix.x", "must be a list or a mapping of keys to values, not 'ab'"),
    ]


def test_as_many_variants_as_are_allowed_unfold_and_one_more_does_not(tmp_path: Path) -> None:
    tens = list(range(10))
    matrix: dict[str, Any] = {"a": tens, "b": tens, "c": tens}
    found = labels(variants_of(tmp_path, matrix=matrix))
    assert (len(found), found[0], found[-1]) == (MAX_VARIANTS, "0-0-0", "9-9-9")
    key, message = one_problem(tmp_path, task={"matrix": {"a": list(range(MAX_VARIANTS + 1))}})
    assert (key, message) == ("tasks[0].matrix", "there are 1,001 variants; a task may have 1,000")


def test_a_matrix_of_millions_is_refused_and_not_unfolded(tmp_path: Path) -> None:
    matrix = {name: list(range(50)) for name in "abcdef"}
    expected = "there are 15,625,000,000 variants; a task may have 1,000"
    assert one_problem(tmp_path, task={"matrix": matrix}) == ("tasks[0].matrix", expected)


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        pytest.param({"matrix": {"a": list(range(100)), "b": list(range(100))}}, "tasks[0].matrix", id="many"),
        pytest.param({"variants": {f"v{n}": {} for n in range(1_001)}}, "tasks[0].variants", id="many-by-name"),
        pytest.param(
            {"matrix": {"a": list(range(500))}, "world": {"text": "x" * 50_000}}, "tasks[0].matrix", id="large"
        ),
    ],
)
def test_nothing_is_built_of_a_task_with_too_many_or_too_large_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], key: str
) -> None:
    built: list[str] = []
    monkeypatch.setattr(unfold, "_with_variables", lambda _task, name, *_: built.append(name))
    assert one_problem(tmp_path, task=fields)[0] == key
    assert built == []


NAMES = st.text("abc-_1", min_size=1, max_size=4).filter(lambda name: name[0] not in "-_")


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(NAMES, max_size=3, unique=True),
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.lists(NAMES, min_size=1, max_size=3, unique=True)),
        max_size=3,
        unique_by=lambda axis: axis[0],
    ),
)
def test_every_combination_stands_once_in_the_order_of_a_loop_in_a_loop(
    tmp_path: Path, names: list[str], axes: list[tuple[str, list[str]]]
) -> None:
    expected = [
        "-".join(parts) or "base"
        for parts in itertools.product(*([names] if names else []), *(values for _, values in axes))
    ]
    fields = {"variants": {name: {} for name in names}, "matrix": dict(axes)}
    folder = write(tmp_path, HEAD, a={"tools": [TOOL], "tasks": [{**TASK, **fields}]})
    if len(set(expected)) < len(expected):
        assert one_problem(tmp_path, task=fields)[0] == "tasks[0].matrix"
        return
    found = load_suite(folder).variants
    assert labels(found) == expected
    assert [list(variant.vars) for variant in found] == [[name for name, _ in axes]] * len(expected)


def test_variants_of_different_tasks_may_share_names(tmp_path: Path) -> None:
    tasks = [{**TASK, "name": name, "matrix": {"x": ["a"]}} for name in ("one", "two")]
    suite = load_suite(write(tmp_path, a={"tools": [TOOL], "tasks": tasks}))
    assert [variant.label for variant in suite.variants] == ["one/a", "two/a"]


def test_a_problem_of_one_variant_names_it(tmp_path: Path) -> None:
    fields = {"prompt": "${vars.a}", "variants": {"good": {"a": 1}, "bad": {"b": 1}}}
    assert one_problem(tmp_path, task=fields) == (
        "tasks[0]",
        "the variant 'bad' cannot be put in: 'vars.a' failed: there is no key 'a'",
    )


def test_the_order_of_variables_in_a_variant_does_not_matter(tmp_path: Path) -> None:
    texts = [{"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}]
    digests = {
        load(tmp_path, task={"prompt": "${vars.b}", "variants": {"v": variables}}).digest() for variables in texts
    }
    assert len(digests) == 1
