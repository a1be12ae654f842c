"""Checks: when they pass, when they fail, and when they cannot say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.grade import Played, grade_episode, has_passed
from agenteval.records import Grade

from .conftest import call, check, episode, judge, variant

LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    ("fields", "answer", "passed"),
    [
        pytest.param({"contains": ["Rome"]}, "to ROME!", True, id="contains-in-either-case"),
        pytest.param({"contains": ["straße"]}, "STRASSE", True, id="case-folded"),
        pytest.param({"contains": ["a", "b"]}, "only a", False, id="contains-all"),
        pytest.param({"pattern": r"\bO2\b"}, "booked O2.", True, id="pattern"),
        pytest.param({"pattern": r"\bO2\b"}, "booked O21", False, id="pattern-misses"),
        pytest.param({"number": 1890}, "It is 1,890 now", True, id="thousands"),
        pytest.param({"number": 1890}, "1890.00", True, id="decimals"),
        pytest.param({"number": 18}, "1890", False, id="part-of-a-number"),
        pytest.param({"number": -5}, "minus: -5", True, id="negative"),
        pytest.param({"number": -17}, "it is \u221217 outside", True, id="typographic-minus"),
        pytest.param({"number": 17}, "it is \u221217 outside", False, id="typographic-minus-is-a-sign"),
        pytest.param({"number": 17}, "shelf B17", False, id="part-of-a-name"),
        pytest.param({"number": -3}, "a-3", False, id="hyphen"),
        pytest.param({"number": 12}, "10-12", True, id="range"),
        pytest.param({"number": 17}, "17km", True, id="unit-without-a-blank"),
        pytest.param({"number": 0.3}, "0.30000000000000004", True, id="binary-rounding"),
        pytest.param({"number": 10, "tolerance": 0.5}, "10.5", True, id="at-the-tolerance"),
        pytest.param({"number": 10, "tolerance": 0.5}, "10.51", False, id="past-the-tolerance"),
        pytest.param({"number": 3}, "three", False, id="no-number"),
        pytest.param({"number": 3}, "1 or 2 or 3", True, id="any-number"),
        pytest.param({"number": 2e3}, "2e3", True, id="exponent"),
        pytest.param({"number": 5}, "9" * 10_000, False, id="very-long-number"),
        pytest.param({"contains": ["x"], "number": 1}, "x", False, id="every-condition"),
        pytest.param({"contains": ["x"]}, None, False, id="no-answer"),
        pytest.param({"contains": ["x"]}, "", False, id="empty-answer"),
        pytest.param({"contains": ["end"]}, f"{LONG}end", True, id="contains-at-a-far-end"),
        pytest.param({"excludes": ["end"]}, f"{LONG}end", False, id="excludes-at-a-far-end"),
        pytest.param({"pattern": "end$"}, f"{LONG}end", True, id="pattern-at-a-far-end"),
        pytest.param({"number": 7}, f"{LONG} 7", True, id="number-at-a-far-end"),
    ],
)
def test_answer(fields: dict[str, Any], answer: str | None, passed: bool) -> None:
    assert judge(check(kind="answer", **fields), episode(answer=answer)).passed is passed


@pytest.mark.parametrize(
    ("that", "passed"),
    [
        pytest.param("world.n == 1", True, id="holds"),
        pytest.param("world.n == 2", False, id="does-not"),
        pytest.param("answer == 'done'", True, id="reads-the-answer"),
        pytest.param("has(world.gone)", False, id="absent-key-asked-for"),
        pytest.param("world.gone == 1", None, id="absent-key-read"),
        pytest.param("world.n", None, id="not-a-condition"),
        pytest.param("world.n / 0 == 1", None, id="division-by-zero"),
    ],
)
def test_world(that: str, passed: bool | None) -> None:
    """What cannot be evaluated is not graded; it is never a failure."""
    assert judge(check(kind="world", that=that), episode(world={"n": 1})).passed is passed


CALLS = (
    call("pay", '{"to":"a","sum":5}'),
    call("pay", '{"to":"b","sum":5.0}'),
    call("pay", '{"to":"c"}', error="refused"),
    call("look", ""),
    call("broken", "not json", error="the arguments are not JSON"),
)


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        pytest.param({"tool": "pay"}, True, id="called"),
        pytest.param({"tool": "pay", "at_least": 2, "at_most": 2}, True, id="refused-calls-do-not-count"),
        pytest.param({"tool": "pay", "at_least": 3}, False, id="too-few"),
        pytest.param({"tool": "pay", "at_most": 1}, False, id="too-many"),
        pytest.param({"tool": "pay", "arguments": {"to": "b"}}, True, id="some-arguments"),
        pytest.param({"tool": "pay", "arguments": {"sum": 5}, "at_least": 2}, True, id="same-number"),
        pytest.param({"tool": "pay", "arguments": {"sum": True}}, False, id="another-type"),
        pytest.param({"tool": "pay", "arguments": {"to": "c"}}, False, id="only-refused"),
        pytest.param({"tool": "pay", "arguments": {"note": None}}, False, id="absent-is-not-null"),
        pytest.param({"tool": "look"}, True, id="empty-arguments"),
        pytest.param({"tool": "broken", "at_least": 0, "at_most": 0}, True, id="unreadable-arguments"),
        pytest.param({"tool": "other", "at_least": 0, "at_most": 0}, True, id="never"),
    ],
)
def test_called(fields: dict[str, Any], passed: bool) -> None:
    assert judge(check(kind="called", **fields), episode(), *CALLS).passed is passed


@pytest.mark.parametrize(("tool", "passed"), [("other", True), ("pay", False), ("broken", False)])
def test_not_called_counts_refused_calls_too(tool: str, passed: bool) -> None:
    assert judge(check(kind="not_called", tool=tool), episode(), *CALLS).passed is passed


@pytest.mark.parametrize(
    ("tools", "passed"),
    [
        pytest.param(["pay", "look"], True, id="in-order"),
        pytest.param(["look", "pay"], False, id="the-other-way"),
        pytest.param(["pay", "pay", "look"], True, id="twice"),
        pytest.param(["pay", "pay", "pay"], False, id="the-third-was-refused"),
        pytest.param(["pay", "broken"], False, id="refused"),
    ],
)
def test_order(tools: list[str], passed: bool) -> None:
    assert judge(check(kind="order", tools=tools), episode(), *CALLS).passed is passed


@pytest.mark.parametrize(("turns", "passed"), [(2, True), (3, True), (4, False)])
def test_turns(turns: int, passed: bool) -> None:
    assert judge(check(kind="turns", at_most=3), episode(turns=turns)).passed is passed


def test_a_grade_says_which_check_of_which_episode_it_is() -> None:
    checks = [check(kind="turns", at_most=3), check(kind="not_called", tool="x", weight=2.5)]
    grades = grade_episode(variant(*checks), Played.of(episode(), calls=(), output_tokens=0))
    assert [(g.check, g.kind, g.weight, g.episode_id) for g in grades] == [
        (0, "turns", 1.0, "run/00003"),
        (1, "not_called", 2.5, "run/00003"),
    ]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        pytest.param({"kind": "answer", "number": 4}, "the answer 'five' has no number within 0 of 4", id="number"),
        pytest.param({"kind": "answer", "contains": ["x"]}, "the answer 'five' lacks 'x'", id="contains"),
        pytest.param(
            {"kind": "world", "that": "world.n > 0 && (world.n > 1 || false)"},
            "(world.n > 1 || false) is false; changed since the start: /n is 1",
            id="world",
        ),
        pytest.param({"kind": "turns", "at_most": 1}, "2 turns; wanted at most 1", id="turns"),
        pytest.param(
            {"kind": "called", "tool": "pay", "arguments": {"to": "z"}},
            'pay with {"to":"z"} succeeded 0 times; wanted at least 1',
            id="called",
        ),
    ],
)
def test_a_failure_says_why_with_the_values_it_saw(wanted: dict[str, Any], reason: str) -> None:
    grade = judge(check(**wanted), episode(answer="five", world={"n": 1}, turns=2), *CALLS)
    assert (grade.passed, grade.reason) == (False, reason)


def test_no_answer_says_how_the_episode_ended() -> None:
    grade = judge(check(kind="answer", number=1), episode(answer=None))
    assert grade.reason == "no answer; the episode ended by max_turns"


@given(st.text(), st.floats(-1e6, 1e6))
def test_any_answer_can_be_judged(answer: str, number: float) -> None:
    assert judge(check(kind="answer", number=number), episode(answer=answer)).passed in (True, False)


@given(st.integers(-(10**9), 10**9))
def test_an_answer_that_is_the_number_passes(number: int) -> None:
    assert judge(check(kind="answer", number=number), episode(answer=f"It is {number:,}.")).passed is True


@pytest.mark.parametrize(
    ("passed", "overall"),
    [
        pytest.param([True, True], True, id="all"),
        pytest.param([True, False], False, id="one-failed"),
        pytest.param([True, None], None, id="one-unknown"),
        pytest.param([False, None], None, id="failed-and-unknown"),
        pytest.param([], None, id="none"),
    ],
)
def test_an_episode_passes_when_all_its_checks_do(passed: list[bool | None], overall: bool | None) -> None:
    grades = [
        Grade(run_id="r", episode_id="e", check=index, kind="turns", passed=value, reason="", weight=1.0)
        for index, value in enumerate(passed)
    ]
    assert has_passed(grades) is overall


BROKEN = replace(call("pay", error="no such key"), is_broken=True)


def test_what_follows_a_mock_that_could_not_answer_is_not_graded_instead_of_failed() -> None:
    wanted = check(kind="called", tool="pay")
    grade = judge(wanted, episode(), BROKEN)
    assert (grade.passed, grade.reason) == (None, "not graded: no such key")
    assert judge(wanted, episode(), BROKEN, call("pay")).passed is True


def test_a_broken_mock_is_no_error_that_a_check_can_want() -> None:
    assert judge(check(kind="called", tool="pay", outcome="error"), episode(), BROKEN).passed is None


@pytest.mark.parametrize("error", ["the mock of 'pay' could not answer", "broken"])
def test_a_model_cannot_talk_itself_out_of_a_failure(error: str) -> None:
    """A mock may echo its arguments in its errors, so that their words prove nothing."""
    wanted = check(kind="called", tool="pay")
    assert judge(wanted, episode(), call("pay", error=error)).passed is False


HUGE = "x" * 5_000


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(
            {"kind": "world", "that": f"world.n == 2 || '{HUGE[:1500]}' == 'y'"}, id="condition-that-is-false"
        ),
        pytest.param({"kind": "world", "that": f"world.n == 1 || '{HUGE[:1500]}' == 'y'"}, id="condition-that-is-true"),
        pytest.param({"kind": "called", "tool": "pay", "where": f"args.to == '{HUGE[:1500]}'"}, id="where"),
        pytest.param({"kind": "called", "tool": "pay", "arguments": {"to": HUGE}}, id="arguments"),
        pytest.param({"kind": "answer", "contains": [HUGE]}, id="contains"),
        pytest.param({"kind": "answer", "one_of": [HUGE]}, id="one-of"),
        pytest.param({"kind": "answer", "pattern": HUGE}, id="pattern"),
        pytest.param({"kind": "answer", "number": 1, "unit": [HUGE]}, id="unit"),
        pytest.param({"kind": "order", "tools": ["pay", HUGE]}, id="order"),
        pytest.param({"kind": "together", "tools": ["pay", HUGE]}, id="together"),
        pytest.param({"kind": "unchanged"}, id="place"),
    ],
)
def test_a_reason_shows_part_of_what_is_huge(wanted: dict[str, Any]) -> None:
    grade = judge(check(**wanted), episode(answer="5", world={"n": 1, HUGE: 1}), *CALLS * 100)
    assert len(grade.reason) < 1_200
