"""What an expression may take: steps, sizes and time are bounded, and a value never depends on the binding's chance."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import LONG_S, does_not_hang

from agenteval import expressions
from agenteval.expressions import MAX_STEPS, ExpressionError, scope, values

LIST = list(range(2_000))
STEPS = f"its macros take more than {MAX_STEPS:,} steps"
SIZE = "a value in it is larger than 1,000,000 values and characters"


pytestmark = does_not_hang


def why_refused(source: str, **names: Any) -> str:
    """Why an expression has no value."""
    with pytest.raises(ExpressionError) as caught:
        expressions.evaluate(source, names)
    return str(caught.value).rpartition(" failed: ")[2]


@pytest.mark.parametrize(
    "source",
    [
        "l.map(a, l.map(b, a + b))",
        "l.map(a, l.map(b, l.map(c, a + b + c)))",
        "l.filter(a, l.exists(b, a + b == -1))",
        "l.all(a, l.all(b, a >= 0 && b >= 0))",
        "l.exists(a, l.exists(b, l.exists(c, a == -1)))",
        "l.exists_one(a, l.exists_one(b, a == -b))",
        "l.existsOne(a, l.existsOne(b, a == -b))",
        "l.exists(a, l.filter(b, b == a).size() == 0)",
        "l.map(a, a).map(a, a).map(a, a).map(a, a).map(a, a).map(a, a)",
        "[l.map(a, a), l.map(a, a), l.map(a, a), l.map(a, a), l.map(a, a), l.map(a, a)].size() == 0",
        "l.all(a, true) && l.all(a, true) && l.all(a, true) && l.all(a, true) && l.all(a, true) && l.all(a, true)",
        "l.exists(a, l.map(b, l.map(c, c)).size() == 1) || true",
    ],
)
def test_macros_within_macros_stop_after_so_many_steps(source: str) -> None:
    assert why_refused(source, l=LIST) == STEPS


def test_a_map_counts_as_many_steps_as_it_has_keys() -> None:
    names = {"m": {f"k{n}": n for n in range(2_000)}}
    assert why_refused("m.all(a, m.all(b, true))", **names) == STEPS


def test_the_steps_of_one_expression_are_not_the_next_ones() -> None:
    one = expressions.Scope({"l": LIST})
    assert [one.evaluate("l.all(a, a >= 0)") for _ in range(10)] == [True] * 10


@pytest.mark.parametrize("count", [0, 1, 2_000])
def test_as_many_steps_as_are_allowed_are_taken(count: int) -> None:
    assert expressions.evaluate("l.map(a, a + 1)", {"l": list(range(count))}) == list(range(1, count + 1))


def test_a_text_that_grows_by_nested_macros_is_stopped() -> None:
    grow = "['x']" + ".map(s, s + s + s + s + s + s + s + s)" * 20
    assert why_refused(f"{grow}[0].size()") == SIZE


def test_a_list_that_grows_by_nested_macros_is_stopped() -> None:
    grow = "[[1]]" + ".map(s, s + s + s + s + s + s + s + s)" * 20
    assert why_refused(f"{grow}[0].size()") == SIZE


@pytest.mark.parametrize(
    "source",
    [
        "replace(t, 'x', 'yyyyyyyyyy')",
        "replace(replace(t, 'x', 'yy'), 'y', 'zzz')",
        "join(l.map(a, t), ',')",
        "split(t + t + t, '')",
        "sort([t, t, t])",
    ],
)
def test_what_functions_are_given_and_give_is_bounded(source: str) -> None:
    assert why_refused(source, t="x" * 400_000, l=[1, 2, 3])


def test_a_function_that_is_called_over_and_over_runs_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "EVALUATION_TIMEOUT_S", 0.1)
    assert "it takes longer than 0.1 s" in why_refused("l.map(a, replace(t, 'x', 'y')).size()", t="x" * 50_000, l=LIST)


def test_a_problem_that_a_macro_swallows_is_still_a_problem() -> None:
    """`exists` and `||` settle for what another element says; that a bound was met must not be lost by that."""
    assert why_refused("l.exists(a, l.all(b, l.all(c, c >= 0))) || true", l=LIST) == STEPS


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("(x+x+)+y", "x" * 20_000, id="backtracking"),
        pytest.param("(a|a)*b", "a" * 20_000, id="alternatives"),
        pytest.param("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 20_000, id="nested"),
        pytest.param("((a{100}){100}){100}", "a", id="large-when-compiled"),
    ],
)
def test_cels_own_patterns_take_no_long_time(pattern: str, text: str) -> None:
    try:
        assert expressions.evaluate("t.matches(p)", {"t": text, "p": pattern}) is False
    except ExpressionError:
        assert "{100}" in pattern


def test_a_pattern_that_backtracks_for_years_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "PATTERN_TIMEOUT_S", 0.1)
    with pytest.raises(ExpressionError, match=r"was not settled within 0\.1 s"):
        expressions.pattern_matches("^(a|a)*$", "a" * 100 + "!")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("(" * 1_000 + "1" + ")" * 1_000, id="parentheses"),
        pytest.param("[" * 900 + "]" * 900, id="lists"),
        pytest.param("-" * 1_999 + "1", id="signs"),
        pytest.param("!" * 1_995 + "true", id="negations"),
        pytest.param("a" + ".a" * 900, id="fields"),
        pytest.param("a" + "[0]" * 600, id="indices"),
        pytest.param("true" + "?true:false" * 150, id="choices"),
        pytest.param("[1]" + ".map(a,a)" * 200, id="macros"),
        pytest.param("[1].map(a," * 150 + "a" + ")" * 150, id="nested-macros"),
        pytest.param("'" + "\\" * 1_998, id="backslashes"),
        pytest.param("x" * 2_001, id="too-long"),
        pytest.param("''''''" * 300, id="quotes"),
        pytest.param("r'" * 900, id="raw-quotes"),
    ],
)
def test_no_text_of_an_expression_takes_long_or_ends_the_process(source: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\nfrom agenteval import expressions\n"
            "try:\n    expressions.evaluate(sys.argv[1], {'a': [[1]]})\n"
            "except expressions.ExpressionError:\n    pass\n",
            source,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG_S,
    )
    assert done.returncode == 0, done.stderr


ORDER = "hgfedcbaijklmnop"


@pytest.mark.parametrize(
    "source",
    [
        "m",
        "m.map(k, k)",
        "m.map(k, m[k])",
        "m.filter(k, m[k] > 2)",
        "[m, m]",
        "{'a': m}",
        "sort(m.map(k, k))",
        "join(m.map(k, k), ',')",
        "m.map(k, {k: m[k]})",
        "m.existsOne(k, m[k] > 3)",
        "[m].map(x, x)",
        "[m].map(x, x.map(k, k))",
        "min(m.map(k, k))",
        "sort(m)",
        "max(m)",
    ],
)
def test_a_value_is_the_same_whatever_order_a_map_was_made_in(source: str) -> None:
    found = {
        expressions.as_text(expressions.evaluate(source, {"m": dict(zip(keys, map(ORDER.index, keys), strict=True))}))
        for keys in itertools.islice(itertools.permutations(ORDER), 0, 2_000, 97)
    }
    assert len(found) == 1


def of_maps(random: Random, depth: int) -> str:
    """An expression that is a map, however it is come by."""
    if depth == 0:
        return random.choice(["m", "w.m", "w['a]b']", "l[0]", "{'b': 1, 'a': 2, 'd': 3}"])
    inner = of_maps(random, depth - 1)
    forms = [
        "(true ? {} : m)",
        "[{}][0]",
        "{{'x': {}}}.x",
        "dyn({})",
        "( {} )",
        "[{}].filter(q, true)[0]",
        "[{}].map(q,q)[0]",
    ]
    return random.choice(forms).format(inner)


def of_keys(random: Random, depth: int) -> str:
    """An expression that walks the keys of maps, and of maps inside."""
    walked = of_maps(random, random.randint(0, depth))
    if depth == 0:
        return f"{walked}.map(k, k)"
    inner = of_keys(random, depth - 1)
    forms = [
        f"{walked} . map ( k ,k )",
        f"{walked}.filter(k, k != '.map(')",
        f"{walked}.map(k, k != 'b', k + '.map(k')",
        f"{walked}.map(k, {inner}[0] + k)",
        f"({inner} + {walked}\n.map(k, k))",
        f"split(join({inner}, ','), ',')",
        f"[{inner}][0].map(k, k)",
        f"('a' in {walked} ? {inner} : {inner})",
    ]
    return random.choice(forms)


def test_no_way_to_come_by_a_map_shows_its_order_in_another_process() -> None:
    random = Random(7)
    sources = [of_keys(random, random.randint(0, 3)) for _ in range(400)]
    code = (
        "import json, sys\nfrom agenteval import expressions as e\n"
        "m = {c: c for c in 'hgfedcba'}\n"
        "names = {'m': m, 'l': [m], 'w': {'m': m, 'a]b': m}}\n"
        "print(json.dumps([e.evaluate(source, names) for source in json.load(sys.stdin)]))"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(sources), capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    ]
    differing = [row for row in zip(sources, *map(json.loads, found), strict=True) if not row[1] == row[2] == row[3]]
    assert differing == []


@pytest.mark.parametrize("source", ["join(m)", "join(m, ',')", "sum(m)"])
def test_a_function_on_lists_takes_no_map(source: str) -> None:
    """The binding hands a map over in an order that differs from process to process."""
    with pytest.raises(ExpressionError):
        expressions.evaluate(source, {"m": dict.fromkeys("abc", "x")})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param("lowerAscii('AbÉ')", "abÉ", id="lower"),
        pytest.param("'abé'.upperAscii()", "ABé", id="upper"),
        pytest.param("trim('  a b ')", "a b", id="trim"),
        pytest.param("split('a,b,,c', ',')", ["a", "b", "", "c"], id="split"),
        pytest.param("split('abc', '')", ["a", "b", "c"], id="split-to-characters"),
        pytest.param("split('', ',')", [""], id="split-nothing"),
        pytest.param("join(['a', 'b'])", "ab", id="join"),
        pytest.param("['a', 'b'].join('-')", "a-b", id="join-as-a-method"),
        pytest.param("replace('a.b.c', '.', '')", "abc", id="replace"),
        pytest.param("'hello'.substring(1, 3)", "el", id="substring"),
        pytest.param("'hello'.substring(3)", "lo", id="substring-to-the-end"),
        pytest.param("sort([3, 1, 2])", [1, 2, 3], id="sort"),
        pytest.param("sum([1, 2.5])", 3.5, id="sum"),
        pytest.param("sum([])", 0, id="sum-of-nothing"),
        pytest.param("min([2, 1]) + max([2, 1])", 3, id="min-and-max"),
        pytest.param("round(2.5)", 3.0, id="round-half"),
        pytest.param("round(-2.5)", -3.0, id="round-half-below-zero"),
        pytest.param("round(1.005, 2)", 1.01, id="round-as-written"),
        pytest.param("round(7)", 7.0, id="round-a-whole-number"),
        pytest.param("round(1234.5, -2)", 1200.0, id="round-to-hundreds"),
        pytest.param("round(123456789012345680000.0, 10)", 123456789012345680000.0, id="round-a-large-number"),
    ],
)
def test_functions_beyond_cels_own(source: str, value: Any) -> None:
    found = expressions.evaluate(source, {})
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "source",
    [
        "lowerAscii(1)",
        "trim([])",
        "split(1, ',')",
        "split('a', 1)",
        "join('ab')",
        "join([1])",
        "join(['a'], 1)",
        "replace('a', 1, 'b')",
        "substring('a', 'b')",
        "sort(['a', 1])",
        "sort([null, 1])",
        "sum(['a'])",
        "min([])",
        "max(1)",
        "round('1')",
        "round(1.5, 'a')",
        "round(1.5, 4000)",
        "round(1.0 / 0.0)",
        "sum([9223372036854775807, 9223372036854775807, 9223372036854775807, 9223372036854775807]) > 0 && nope",
    ],
)
def test_a_function_that_cannot_say_is_an_expression_error(source: str) -> None:
    with pytest.raises(ExpressionError):
        expressions.evaluate(source, {})


@given(st.floats(-1e15, 1e15, allow_nan=False), st.integers(-3, 6))
def test_rounding_is_at_most_half_a_step_away(number: float, digits: int) -> None:
    rounded = expressions.evaluate("round(n, d)", {"n": number, "d": digits})
    assert abs(rounded - number) <= 0.5 * 10.0**-digits * (1 + 1e-9) + abs(number) * 1e-15


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param("timestamp('2026-01-15T09:00:00.25Z')", "2026-01-15T09:00:00.250000Z", id="fraction"),
        pytest.param("timestamp('0031-01-15T09:00:00Z')", "0031-01-15T09:00:00Z", id="early-year"),
        pytest.param("type(1) == int && type('') == string && type({}) == map", True, id="types"),
        pytest.param("[1, 2, 3].map(n, n > 1, n * 2)", [4, 6], id="map-with-a-condition"),
        pytest.param("[1, 1].exists_one(n, n == 1)", False, id="exactly-one"),
        pytest.param("[1, 2].existsOne(n, n == 1)", True, id="exactly-one-by-its-other-name"),
    ],
)
def test_what_cel_says_of_values(source: str, value: Any) -> None:
    assert expressions.evaluate(source, {}) == value


@pytest.mark.parametrize(
    ("source", "known", "problem"),
    [
        pytest.param("args.x > 1", ["args"], None, id="known"),
        pytest.param(
            "arg.x > 1", ["args"], "there is no 'arg' here; known are args. Did you mean 'args'?", id="no-name"
        ),
        pytest.param("args.exists(arg, arg > 1)", ["args"], None, id="bound-by-a-macro"),
        pytest.param("args.exists(a, b > 1)", ["args"], "there is no 'b' here; known are args.", id="not-bound"),
        pytest.param("args.all(a, a.all(b, b > 1))", ["args"], None, id="bound-twice"),
        pytest.param("'${x}' == args", ["args"], None, id="template"),
        pytest.param("type(args) == int", ["args"], None, id="type"),
    ],
)
def test_names_are_checked_without_evaluating(source: str, known: list[str], problem: str | None) -> None:
    found = expressions.condition_problem(source, known)
    if "${" in source:
        assert found is not None
        assert "as it stands" in found
    else:
        assert found == problem
