"""CEL and templates: values depend on their inputs alone, and inserted text stays where it was put."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval import expressions
from agenteval.expressions import ExpressionError

WORLD = {"c": 1, "b": {"z": 1, "y": 2}, "a": [3, 1, 2]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text("abc/~"), children, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param("1 + 2 * 3", 7, id="arithmetic"),
        pytest.param("world.b.z", 1, id="field"),
        pytest.param("has(world.nope)", False, id="absent-field"),
        pytest.param("'c' in world", True, id="key"),
        pytest.param("world.a.filter(n, n > 1)", [3, 2], id="list-keeps-its-order"),
        pytest.param("timestamp('2026-01-15T09:30:00+01:00')", "2026-01-15T08:30:00Z", id="instant-in-utc"),
        pytest.param("1 == 1.0", True, id="numbers-compare-by-value"),
    ],
)
def test_an_expression_gives_a_json_value(source: str, value: Any) -> None:
    assert expressions.evaluate(source, {"world": WORLD}) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param("world.map(k, k)", ["a", "b", "c"], id="map"),
        pytest.param("world.filter(k, k != 'b')", ["a", "c"], id="filter"),
        pytest.param("world.b.map(k, world.b[k])", [2, 1], id="field"),
        pytest.param("world['b'].map(k, k)", ["y", "z"], id="index"),
        pytest.param("{'b': 1, 'a': 2}.map(k, k)", ["a", "b"], id="literal"),
        pytest.param("(true ? world : {}).map(k, k)", ["a", "b", "c"], id="parentheses"),
        pytest.param("world . b . map ( k , k )", ["y", "z"], id="blanks"),
        pytest.param("'x' in world.map(k, k)", False, id="after-in"),
        pytest.param("3 in [1, 2, 3].map(n, n)", True, id="list-after-in"),
        pytest.param("[['y'].map(s, s), world.b.map(k, k)]", [["y"], ["y", "z"]], id="two-in-a-list"),
        pytest.param("[1].map(n, world.b.map(k, k))", [["y", "z"]], id="nested"),
        pytest.param("world.map(k, k).map(k, k + '!')", ["a!", "b!", "c!"], id="chained"),
        pytest.param("-world.map(k, k).size()", -3, id="after-an-operator"),
        pytest.param("world.map(k, k + '.map(')", ["a.map(", "b.map(", "c.map("], id="macro-in-a-text"),
        pytest.param("world.map(k, k) // .map(k, k)", ["a", "b", "c"], id="macro-in-a-comment"),
        pytest.param(r"""r'\'.size() + "\".map(".size() == 7 ? world.map(k, k) : []""", ["a", "b", "c"], id="quotes"),
    ],
)
def test_a_macro_walks_a_maps_keys_in_order(source: str, value: Any) -> None:
    assert expressions.evaluate(source, {"world": WORLD}) == value


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(0, 9)))
def test_the_order_of_keys_never_depends_on_the_binding(world: dict[str, int]) -> None:
    assert expressions.evaluate("world.map(k, k)", {"world": world}) == sorted(world)
    assert list(expressions.evaluate("world", {"world": world})) == sorted(world)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("", id="empty"),
        pytest.param("1 +", id="unfinished"),
        pytest.param("nope", id="unknown-name"),
        pytest.param("world.nope", id="absent-key"),
        pytest.param("1 / 0", id="division-by-zero"),
        pytest.param("-9223372036854775808 / -1", id="overflow"),
        pytest.param("1 + 1.0", id="mixed-types"),
        pytest.param("world.a[9]", id="index"),
        pytest.param("'a'.matches('(')", id="bad-pattern"),
        pytest.param("1.0 / 0.0", id="infinity"),
        pytest.param("0.0 / 0.0", id="nan"),
        pytest.param("b'x'", id="bytes"),
        pytest.param("duration('1h')", id="duration"),
        pytest.param("{1: 2}", id="number-as-key"),
        pytest.param("now()", id="no-clock-of-its-own"),
        pytest.param("agenteval_ordered(1, 2)", id="helper-misused"),
        pytest.param("(" * 900 + "1" + ")" * 900, id="nested"),
        pytest.param("1" + " + 1" * 600, id="too-long"),
    ],
)
def test_what_cannot_be_evaluated_is_an_expression_error(source: str) -> None:
    with pytest.raises(ExpressionError):
        expressions.evaluate(source, {"world": WORLD})


@given(st.text(max_size=60) | st.text("world.ab[]{}()'\"\\map,:?+-&|!0 ", max_size=40))
def test_no_text_raises_anything_but_an_expression_error(source: str) -> None:
    with contextlib.suppress(ExpressionError):
        expressions.evaluate(source, {"world": WORLD})


@given(JSON, st.text(st.characters(codec="utf-8"), max_size=20))
def test_no_value_raises_anything_but_an_expression_error(value: Any, key: str) -> None:
    with contextlib.suppress(ExpressionError):
        expressions.evaluate("world[key]", {"world": value, "key": key})


def test_half_a_character_is_an_expression_error() -> None:
    with pytest.raises(ExpressionError):
        expressions.evaluate("text", {"text": "\ud800"})


@pytest.mark.parametrize("source", ["1", "'true'", "null", "[]"])
def test_a_condition_is_true_or_false(source: str) -> None:
    with pytest.raises(ExpressionError, match="not true or false"):
        expressions.evaluate_condition(source, {})


def test_other_processes_evaluate_to_the_same_bytes() -> None:
    """Hash seeds differ between processes; a value must not."""
    code = (
        "from agenteval import expressions as e; "
        "print(e.as_text(e.evaluate('world.map(k, [k, world[k]])', {'world': {c: c for c in 'hgfedcba'}})))"
    )
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(3)}
    assert len(runs) == 1


@given(JSON.filter(lambda value: "${" not in str(value)))
def test_a_template_without_an_expression_is_itself(template: Any) -> None:
    assert expressions.render(template, {}) == template


@given(JSON)
def test_a_template_that_is_one_expression_keeps_the_values_type(value: Any) -> None:
    rendered = expressions.render("${value}", {"value": value})
    assert rendered == value
    assert type(rendered) is type(value)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("a ${1 + 1} b", "a 2 b", id="inside-text"),
        pytest.param("${'x'}${'y'}", "xy", id="two"),
        pytest.param("${ {'b': 1, 'a': [true, null]} } ", '{"a":[true,null],"b":1} ', id="canonical-json"),
        pytest.param("$${1}", "${1}", id="escaped"),
        pytest.param("cost: $5", "cost: $5", id="dollar"),
        pytest.param("${'}'}", "}", id="brace-in-a-text"),
        pytest.param("${'\\'}'}", "'}", id="quote-in-a-text"),
        pytest.param("${{'a': {'b': 7}}.a.b} of ${[8][0]}", "7 of 8", id="nested-braces"),
    ],
)
def test_a_template_puts_values_into_text(template: str, text: str) -> None:
    assert expressions.render(template, {}) == text


def test_a_template_reaches_into_values_and_leaves_keys_alone() -> None:
    assert expressions.render({"${x}": ["${x}", {"k": "n=${x}"}]}, {"x": 1}) == {"${x}": [1, {"k": "n=1"}]}


def test_what_a_value_holds_is_never_evaluated() -> None:
    assert expressions.render("${x} and ${x}!", {"x": "${1 + 1}"}) == "${1 + 1} and ${1 + 1}!"


@pytest.mark.parametrize("template", ["${", "${x", "${'}", "a ${ {'b': 1 }", "${1 +}", "${}"])
def test_problems_finds_what_cannot_be_parsed(template: str) -> None:
    assert expressions.problems({"key": [template]}, ["x"])
    assert expressions.problems("fine ${x}", ["x"]) == []


@given(
    st.text(st.characters(codec="utf-8")),
    st.dictionaries(st.text("ab/~-0", max_size=4), st.integers(), max_size=4),
)
def test_a_value_in_a_pointer_cannot_reach_another_place(name: str, other: dict[str, int]) -> None:
    """The pointer's parts are the written one and the value, whatever the value holds."""
    pointer = expressions.render_pointer("/items/${name}", {"name": name})
    assert jsonpointer.JsonPointer(pointer).parts == ["items", name]
    world = {"items": dict(other), "secret": 1}
    patch = [{"op": "add", "path": pointer, "value": 0}]
    assert jsonpatch.JsonPatch(patch).apply(world) == {"items": {**other, name: 0}, "secret": 1}


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        pytest.param(5, 5.0, True, id="integer-and-float"),
        pytest.param([{"a": 5}], [{"a": 5.0}], True, id="deep"),
        pytest.param(1, True, False, id="one-and-true"),
        pytest.param([0], [False], False, id="zero-and-false-deep"),
        pytest.param(None, 0, False, id="null-and-zero"),
        pytest.param("5", 5, False, id="text-and-number"),
        pytest.param({"a": 1}, {"a": 1, "b": None}, False, id="absent-and-null"),
        pytest.param([1, 2], [2, 1], False, id="order"),
        pytest.param([], {}, False, id="empty-list-and-object"),
    ],
)
def test_is_same_compares_json_values(a: Any, b: Any, same: bool) -> None:
    assert expressions.is_same(a, b) is same
    assert expressions.is_same(b, a) is same


@pytest.mark.parametrize(
    ("given", "wanted", "has"),
    [
        pytest.param({"a": 5.0, "b": 1}, {"a": 5}, True, id="others-may-be-there"),
        pytest.param({"a": 1}, {}, True, id="nothing-is-wanted"),
        pytest.param({"a": 1}, {"a": True}, False, id="another-type"),
        pytest.param({}, {"a": None}, False, id="absent-is-not-null"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, False, id="values-are-compared-whole"),
    ],
)
def test_has_all_asks_for_some_keys(given: dict[str, Any], wanted: dict[str, Any], has: bool) -> None:
    assert expressions.has_all(given, wanted) is has


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("a", ["a"]),
        ("a && b", ["a", "b"]),
        ("a && (b && c) && f(d && e)", ["a", "(b && c)", "f(d && e)"]),
        ('a == "x && y" && b', ['a == "x && y"', "b"]),
        ("a && b || c", ["a && b || c"]),
        ("a ? b && c : d", ["a ? b && c : d"]),
    ],
)
def test_a_condition_is_cut_into_what_it_joins(condition: str, parts: list[str]) -> None:
    assert expressions.conjuncts(condition) == parts


@pytest.mark.parametrize(
    ("source", "hint"),
    [("a = 1", "CEL writes =="), ("a and b", "CEL writes &&"), ("len(a)", "CEL has size")],
)
def test_a_word_of_another_language_is_answered_with_cels_own(source: str, hint: str) -> None:
    with pytest.raises(expressions.ExpressionError, match=hint):
        expressions.compile_expression(source)


@pytest.mark.parametrize(
    ("source", "size"),
    [
        pytest.param("size('é')", 1, id="accent"),
        pytest.param("'😀b'.size()", 2, id="beyond-the-first-plane"),
        pytest.param("size ( world.t )", 3, id="of-a-name"),
        pytest.param("world.t.split('').size()", 3, id="after-a-call"),
        pytest.param("[1, 2].size() + size({'a': 1})", 3, id="list-and-map"),
        pytest.param("size(b'é')", 2, id="bytes"),
        pytest.param("world.size", 7, id="field-of-that-name"),
        pytest.param("['size(é)'].map(s, s.size())[0]", 7, id="in-a-macro"),
    ],
)
def test_size_counts_characters(source: str, size: int) -> None:
    assert expressions.evaluate(source, {"world": {"t": "aéb", "size": 7}}) == size


@pytest.mark.parametrize("source", ["size(5)", "true.size()", "size(null)"])
def test_what_has_no_size_is_an_error(source: str) -> None:
    with pytest.raises(ExpressionError):
        expressions.evaluate(source, {})


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("[] + world", id="name"),
        pytest.param("[1]+world.b", id="field"),
        pytest.param("[] + world['b']", id="index"),
        pytest.param("[] + (true ? world : {})", id="parentheses"),
        pytest.param("[] + {'b': 1, 'a': 2}", id="literal"),
        pytest.param("[] + dyn(world)", id="call"),
        pytest.param("[] + [world][0] . b", id="blanks"),
        pytest.param("[[]].map(l, l + world)", id="in-a-macro"),
        pytest.param("([] + world).size() == 3 || true", id="swallowed"),
    ],
)
def test_a_map_is_not_added_to_a_list(source: str) -> None:
    """The binding would add its keys, in an order that differs from process to process."""
    with pytest.raises(ExpressionError, match="a map cannot be added"):
        expressions.evaluate(source, {"world": WORLD})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param("1 + 2 * 3 + 4", 11, id="numbers"),
        pytest.param("n + n * n - -n", 15, id="names"),
        pytest.param("1.5e+1 + double(n)", 18.0, id="exponent"),
        pytest.param("t + t + string(n)", "aa3", id="texts"),
        pytest.param("[n] + [n, n] + l", [3, 3, 3, 1], id="lists"),
        pytest.param("l + l.map(x, x + n)", [1, 4], id="macro-added"),
        pytest.param("l + (l + (l + l))", [1, 1, 1, 1], id="nested"),
        pytest.param("true ? n + n : n + 1", 6, id="choice"),
        pytest.param("uint(n) + uint(n) == 6u", True, id="unsigned"),
        pytest.param("timestamp('2026-01-01T00:00:00Z') + duration('1h')", "2026-01-01T01:00:00Z", id="times"),
        pytest.param("'+' + t + '+world'", "+a+world", id="plus-in-a-text"),
        pytest.param("n + n in [6]", True, id="before-in"),
    ],
)
def test_what_can_be_added_is(source: str, value: Any) -> None:
    assert expressions.evaluate(source, {"n": 3, "t": "a", "l": [1], "world": WORLD}) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param(r"""[r"\"] + world.map(k, k) + ["x"]""", ["\\", "a", "b", "c", "x"], id="double"),
        pytest.param(r"""[R'\'] + world.map(k, k) + ['x']""", ["\\", "a", "b", "c", "x"], id="single"),
        pytest.param(r"""[r'''\'''] + world.map(k, k) + ['x']""", ["\\", "a", "b", "c", "x"], id="triple"),
        pytest.param(r"""['''a\''''] + world.map(k, k)""", ["a'", "a", "b", "c"], id="escaped-in-a-triple"),
    ],
)
def test_a_raw_text_ends_at_its_quote_whatever_stands_before(source: str, value: Any) -> None:
    assert expressions.evaluate(source, {"world": WORLD}) == value
    assert expressions.render(f"${{{source}}}", {"world": WORLD}) == value


def test_a_sum_is_taken_from_left_to_right() -> None:
    """Python's own compensates since 3.12, and gives exactly 1.0."""
    assert expressions.evaluate("sum(l)", {"l": [0.1] * 10}) == 0.9999999999999999


@pytest.mark.parametrize("source", ["split(world, '')", "replace(world, 'a', 'b')", "world.split('')"])
def test_a_map_is_no_text(source: str) -> None:
    with pytest.raises(ExpressionError, match="not a text"):
        expressions.evaluate(source, {"world": WORLD})


def test_many_expressions_in_one_text_are_cut_in_one_pass() -> None:
    """A text is neither copied nor searched to its end for each of them, which would take hours."""
    parts = expressions.split_template("$${ ' ${x} " * 50_000)
    assert len(parts) == 100_001


def test_an_expression_that_never_ends_is_looked_for_within_its_longest_length() -> None:
    with pytest.raises(ExpressionError, match=r"not closed by \} within 2,000 characters"):
        expressions.split_template("${" + "x" * 2_001 + "}")
