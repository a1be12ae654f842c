"""Checks that look at calls: by condition, together in a turn, by tokens, and by a function of the suite's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.grade import Played, grade_episode, has_passed
from agenteval.grade.played import SHOWN_CHARACTERS
from agenteval.spec import SuiteFunction

from .conftest import call, check, episode, judge, variant

PAID = [
    (0, call("pay", '{"sum":5,"to":"ann"}', result='{"left":95}')),
    (1, call("pay", '{"sum":7.0,"to":"bob"}', result="paid in full")),
    (1, call("pay", '{"sum":9}', error="refused", result='{"error":"refused"}')),
    (2, call("look", "", result="[1,2]")),
    (3, call("pay", "not json", error="the arguments are not JSON", result='{"error":"not JSON"}')),
]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        pytest.param("args.sum > 4", 2, id="args"),
        pytest.param("args.sum + 1 == 8", 1, id="whole-number-written-as-a-fraction"),
        pytest.param("args.to == vars.who", 1, id="vars"),
        pytest.param("turn == 1", 1, id="turn"),
        pytest.param("result == 'paid in full'", 1, id="result-that-is-no-json"),
        pytest.param("type(result) == map && result.left == 95", 1, id="result-that-is-json"),
        pytest.param("has(args.note)", 0, id="absent"),
    ],
)
def test_called_counts_the_successful_calls_for_which_a_condition_holds(where: str, count: int) -> None:
    wanted = check(kind="called", tool="pay", where=where, at_least=0, at_most=count)
    assert judge(wanted, episode(), *PAID, variables={"who": "bob"}).passed is True
    if count:
        less = check(kind="called", tool="pay", where=where, at_least=count + 1)
        assert judge(less, episode(), *PAID, variables={"who": "bob"}).passed is False


def test_a_call_without_arguments_has_none_to_ask_for() -> None:
    assert (
        judge(check(kind="called", tool="look", where="turn == 2 && result[1] == 2"), episode(), *PAID).passed is True
    )


@pytest.mark.parametrize(
    ("fields", "count", "how"),
    [
        pytest.param({}, 2, "succeeded", id="success-where-nothing-is-said"),
        pytest.param({"outcome": "success"}, 2, "succeeded", id="success"),
        pytest.param({"outcome": "error"}, 2, "failed", id="error"),
        pytest.param({"outcome": "any"}, 4, "was called", id="any"),
        pytest.param({"outcome": "error", "where": "has(args.sum) && args.sum == 9"}, 1, "failed", id="error-where"),
        pytest.param({"outcome": "any", "arguments": {"sum": 7}}, 1, "was called", id="any-with-arguments"),
        pytest.param({"outcome": "error", "arguments": {"sum": 7}}, 0, "failed", id="none"),
    ],
)
def test_called_may_ask_for_calls_that_failed(fields: dict[str, Any], count: int, how: str) -> None:
    exactly = check(kind="called", tool="pay", at_least=count, at_most=count, **fields)
    grade = judge(exactly, episode(), *PAID)
    assert grade.passed is True
    assert f" {how} {count} times; wanted at least {count}, at most {count}" in grade.reason


@pytest.mark.parametrize(
    ("where", "passed"),
    [
        pytest.param("has(args.sum) && args.sum == 9", False, id="a-call-in-vain-counts"),
        pytest.param("has(args.sum) && args.sum == 10", True, id="no-such-call"),
        pytest.param("args.to == 'ann'", False, id="the-one-that-is-meant-decides"),
        pytest.param("args.to == 'eve'", True, id="not-meant-where-it-cannot-be-asked-of-a-call-in-vain"),
        pytest.param("result.left == 0", None, id="cannot-be-asked-of-a-call-that-succeeded"),
        pytest.param("result.left == 95", False, id="cannot-be-asked-of-one-and-is-true-of-another"),
    ],
)
def test_not_called_looks_at_calls_in_vain_too(where: str, passed: bool | None) -> None:
    assert judge(check(kind="not_called", tool="pay", where=where), episode(), *PAID).passed is passed


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        pytest.param({"outcome": "error", "at_least": 1}, False, id="no-call-in-vain-is-meant"),
        pytest.param({"outcome": "any", "at_most": 1}, True, id="the-call-in-vain-is-not-meant"),
        pytest.param({"outcome": "success"}, True, id="success"),
    ],
)
def test_a_call_in_vain_of_which_the_condition_cannot_be_asked_is_not_meant(
    fields: dict[str, Any], passed: bool
) -> None:
    wanted = check(kind="called", tool="pay", where="args.to == 'ann'", **fields)
    assert judge(wanted, episode(), *PAID).passed is passed


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        pytest.param({"at_least": 1}, True, id="enough-without-it"),
        pytest.param({"at_least": 3}, False, id="too-few-even-with-it"),
        pytest.param({"at_least": 0, "at_most": 0}, False, id="too-many-without-it"),
        pytest.param({"at_least": 0, "at_most": 2}, True, id="not-too-many-even-with-it"),
        pytest.param({"at_least": 2}, None, id="it-decides-whether-there-are-enough"),
        pytest.param({"at_least": 1, "at_most": 1}, None, id="it-decides-whether-there-are-too-many"),
    ],
)
def test_a_condition_that_cannot_be_asked_of_a_success_matters_only_where_it_decides(
    fields: dict[str, Any], passed: bool | None
) -> None:
    """Of two payments that succeeded, the first has something left, and the result of the second is no object."""
    wanted = check(kind="called", tool="pay", where="result.left == 95", **fields)
    assert judge(wanted, episode(), *PAID).passed is passed


def test_arguments_and_condition_must_both_hold() -> None:
    both = check(kind="called", tool="pay", arguments={"to": "ann"}, where="turn > 0")
    assert judge(both, episode(), *PAID).passed is False


@pytest.mark.parametrize("where", ["args.gone == 1", "args.sum", "1 / 0 == 1"])
def test_a_condition_that_cannot_be_evaluated_is_not_graded(where: str) -> None:
    grade = judge(check(kind="called", tool="pay", where=where), episode(), *PAID)
    assert grade.passed is None
    assert grade.reason.startswith("not graded: ")


def test_a_condition_is_told_with_what_was_counted() -> None:
    grade = judge(check(kind="called", tool="pay", where="turn > 5", at_most=2), episode(), *PAID)
    assert grade.reason == "pay where turn > 5 succeeded 0 times; wanted at least 1, at most 2"


@pytest.mark.parametrize(
    ("tools", "passed"),
    [
        pytest.param(["a", "b"], True, id="in-one-turn"),
        pytest.param(["b", "a"], True, id="in-any-order"),
        pytest.param(["a", "a"], True, id="twice"),
        pytest.param(["b", "b"], False, id="not-twice"),
        pytest.param(["a", "c"], False, id="in-two-turns"),
        pytest.param(["b", "d"], False, id="one-refused"),
        pytest.param(["a", "a", "b"], True, id="three"),
    ],
)
def test_together(tools: list[str], passed: bool) -> None:
    made = [(0, call("a")), (0, call("b")), (0, call("a")), (1, call("c")), (1, call("b")), (1, call("d", error="x"))]
    grade = judge(check(kind="together", tools=tools), episode(), *made)
    assert grade.passed is passed
    shown = "successful calls by turn were [['a', 'b', 'a'], ['c', 'b']]"
    assert grade.reason == f"{shown}; wanted in one {tools}"


@pytest.mark.parametrize(("tokens", "passed"), [(0, True), (100, True), (101, False)])
def test_tokens(tokens: int, passed: bool) -> None:
    grade = judge(check(kind="tokens", at_most=100), episode(), tokens=tokens)
    assert (grade.passed, grade.reason) == (passed, f"{tokens} output tokens; wanted at most 100")


@pytest.mark.parametrize(
    ("that", "passed"),
    [
        pytest.param("world.n == start.n + 1", True, id="start-and-end"),
        pytest.param("world.n == vars.n", True, id="vars"),
        pytest.param("answer == 'done'", True, id="answer"),
        pytest.param("start.gone == 1", None, id="absent-at-the-start"),
        pytest.param("world.n > 1.5", True, id="numbers-of-two-types"),
    ],
)
def test_world_compares_start_and_end(that: str, passed: bool | None) -> None:
    made = episode(world={"n": 3})
    assert judge(check(kind="world", that=that), made, start={"n": 2}, variables={"n": 3}).passed is passed


def by(call_function: Any, *calls: Any, answer: str | None = "done", world: dict[str, Any] | None = None) -> Any:
    """The grade of a check that is a function."""
    function = SuiteFunction(name="c.py:f", source_digest="", call=call_function)
    wanted = check(kind="function", function="c.py:f")
    return judge(wanted, episode(answer=answer, world=world), *calls, functions=[function])


@pytest.mark.parametrize(
    ("found", "passed", "reason"),
    [
        pytest.param(True, True, "c.py:f says true", id="true"),
        pytest.param(False, False, "c.py:f says false", id="false"),
        pytest.param((True, "all settled"), True, "all settled", id="with-a-reason"),
        pytest.param((False, "one is open"), False, "one is open", id="false-with-a-reason"),
        pytest.param((False, ""), False, "c.py:f says false", id="empty-reason"),
        pytest.param((False, None), False, "c.py:f says false", id="no-reason"),
        pytest.param((False, 7), False, "7", id="reason-is-no-text"),
        pytest.param((False, "half \ud800"), False, "half ?", id="half-a-character"),
        pytest.param((False, "x" * 10_000), False, "x" * SHOWN_CHARACTERS + "…", id="long"),
    ],
)
def test_a_function_says_whether_and_why(found: Any, passed: bool, reason: str) -> None:
    grade = by(lambda *_: found)
    assert (grade.passed, grade.reason) == (passed, reason)


def leaves(*_: Any) -> Any:
    raise SystemExit(0)


@pytest.mark.parametrize(
    "call_function",
    [pytest.param(leaves, id="leaves"), pytest.param(lambda *_: (False, str(n for n in ())), id="address")],
)
def test_a_function_that_cannot_be_relied_on_is_not_graded(call_function: Any) -> None:
    assert by(call_function).passed is None


@pytest.mark.parametrize(
    "found", [None, 1, 0, "true", [True, "x"], (True,), (True, "x", 1), ("x", True), {}, (1, "x"), ()]
)
def test_a_function_that_says_neither_is_not_graded(found: Any) -> None:
    grade = by(lambda *_: found)
    assert grade.passed is None
    assert grade.reason == f"not graded: c.py:f gave {found!r}, not true or false, or (true or false, reason)"


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("x"), RecursionError(), MemoryError(), AssertionError()])
def test_a_function_that_raises_is_not_graded(error: Exception) -> None:
    def raises(*_: Any) -> bool:
        raise error

    grade = by(raises)
    assert grade.passed is None
    assert grade.reason.startswith(f"not graded: c.py:f failed: {type(error).__name__}")


def test_a_function_sees_world_answer_and_calls_and_changes_none_of_them() -> None:
    seen: list[Any] = []

    def looks(world: Any, answer: Any, calls: Any) -> bool:
        seen.append(json.loads(json.dumps([world, answer, calls])))
        world.clear()
        calls.clear()
        return True

    world = {"n": 1}
    by(looks, *PAID, world=world)
    assert world == {"n": 1}
    ((given_world, answer, calls),) = seen
    assert (given_world, answer) == ({"n": 1}, "done")
    assert calls[0] == {
        "turn": 0,
        "tool": "pay",
        "arguments": {"sum": 5, "to": "ann"},
        "result": {"left": 95},
        "error": None,
    }
    assert [(made["turn"], made["error"]) for made in calls] == [
        (0, None),
        (1, None),
        (1, "refused"),
        (2, None),
        (3, "the arguments are not JSON"),
    ]
    assert calls[4]["arguments"] == "not json"


def test_a_function_sees_that_there_is_no_answer() -> None:
    assert by(lambda world, answer, calls: answer is None, answer=None).passed is True


JUNK = st.text(max_size=12) | st.sampled_from(
    [
        "NaN",
        '{"a": NaN}',
        "-Infinity",
        "1e999",
        '{"n": ' + "9" * 400 + "}",
        '{"a": "\\ud800"}',
        "[" * 5_000,
        "null",
        "{}",
        '""',
    ]
)


@given(JUNK, JUNK, st.booleans())
def test_whatever_a_model_wrote_every_check_can_be_judged(arguments: str, result: str, failed: bool) -> None:
    """Text that Python takes for JSON and JSON does not must not end a run."""
    made = call("pay", arguments, result=result, error="refused" if failed else None)
    function = SuiteFunction(name="c.py:f", source_digest="", call=lambda world, answer, calls: len(calls) == 1)
    checks = [
        check(kind="function", function="c.py:f"),
        check(kind="called", tool="pay", arguments={"a": 1}),
        check(kind="not_called", tool="pay", arguments={"a": [{}]}),
        check(kind="called", tool="pay", where="has(args.a) || result == 1"),
        check(kind="order", tools=["pay", "pay"]),
    ]
    how = Played.of(episode(), calls=[(0, made)], output_tokens=1)
    grades = grade_episode(variant(*checks, functions=[function]), how)
    assert grades[0].passed is True
    assert all(grade.passed in (True, False) for grade in grades[1:3])


def test_a_check_that_cannot_be_evaluated_makes_the_episode_not_graded_and_the_others_stand() -> None:
    checks = [
        check(kind="turns", at_most=9),
        check(kind="world", that="world.gone == 1"),
        check(kind="turns", at_most=1),
    ]
    grades = grade_episode(variant(*checks), Played.of(episode(turns=2), calls=(), output_tokens=0))
    assert [grade.passed for grade in grades] == [True, None, False]
    assert has_passed(grades) is None


def test_calls_are_told_in_their_order() -> None:
    wanted = check(kind="order", tools=["look", "pay"])
    assert judge(wanted, episode(), *PAID).reason == (
        "successful calls were ['pay', 'pay', 'look']; wanted in order ['look', 'pay']"
    )
