"""What an answer must and must not hold: whole answers, units, words to leave out, patterns that take their time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval import expressions
from agenteval.expressions import values

from .conftest import check, episode, judge


@pytest.mark.parametrize(
    ("fields", "answer", "passed"),
    [
        pytest.param({"number": 5, "unit": ["kg"]}, "5 kg", True, id="unit-after"),
        pytest.param({"number": 5, "unit": ["kg"]}, "5kg.", True, id="unit-right-after"),
        pytest.param({"number": 5, "unit": ["KG"]}, "5 Kg", True, id="unit-in-either-case"),
        pytest.param({"number": 5, "unit": ["kg"]}, "5\n kg", True, id="unit-past-blanks"),
        pytest.param({"number": 5, "unit": ["$"]}, "It costs $5.", True, id="unit-before"),
        pytest.param({"number": 5, "unit": ["EUR"]}, "EUR 5", True, id="word-before"),
        pytest.param({"number": 5, "unit": ["kg", "kilo"]}, "5 kilo", True, id="another-spelling"),
        pytest.param({"number": 5, "unit": ["k"]}, "5 kg", False, id="a-letter-follows-on"),
        pytest.param({"number": 5, "unit": ["EUR"]}, "NEUR 5", False, id="a-letter-stands-before"),
        pytest.param({"number": 5, "unit": ["kg"]}, "5 or so kg", False, id="words-between"),
        pytest.param({"number": 5, "unit": ["kg"]}, "5", False, id="no-unit"),
        pytest.param({"number": 5, "unit": ["kg"]}, "7 kg, 5 lb", False, id="unit-of-another-number"),
        pytest.param({"number": 5, "unit": ["kg"]}, "5 lb, which is 5 kg", True, id="one-of-two-numbers"),
        pytest.param({"number": 20, "unit": ["%"]}, "20%", True, id="percent"),
        pytest.param({"number": 5, "unit": ["$"]}, "US$5", True, id="sign-behind-a-letter"),
        pytest.param({"number": -5, "unit": ["$"]}, "-$5", True, id="unit-inside-the-sign"),
        pytest.param({"number": -5, "unit": ["EUR"]}, "EUR -5", True, id="unit-before-the-sign"),
        pytest.param({"number": 5, "unit": ["EUR"]}, "EUR5", True, id="word-right-before"),
        pytest.param({"number": 20, "unit": ["°C"]}, "-20 °C", False, id="sign"),
        pytest.param({"number": 5, "unit": ["m/s"]}, "5 m/s", True, id="slash"),
        pytest.param({"number": 5, "unit": ["m"]}, "5 m/s", True, id="no-letter-follows-on"),
        pytest.param({"number": 5, "tolerance": 0.5, "unit": ["kg"]}, "5.4 kg", True, id="unit-and-tolerance"),
        pytest.param({"one_of": ["yes"]}, "Yes.", True, id="case-and-punctuation"),
        pytest.param({"one_of": ["yes"]}, " **YES!** ", True, id="marks-around"),
        pytest.param({"one_of": ["yes"]}, "yes, it is", False, id="more-than-that"),
        pytest.param({"one_of": ["no", "New York"]}, "new york", True, id="one-of-several"),
        pytest.param({"one_of": ["new york"]}, "newyork", False, id="blanks-inside-count"),
        pytest.param({"one_of": ["O2."]}, "o2", True, id="punctuation-of-the-text-itself"),
        pytest.param({"one_of": ["STRASSE"]}, "Straße", True, id="case-folded"),
        pytest.param({"one_of": ["..."]}, "", True, id="nothing-but-punctuation"),
        pytest.param({"one_of": ["-5"]}, "5", False, id="a-sign-is-no-punctuation"),
        pytest.param({"one_of": ["5"]}, "-5", False, id="a-sign-of-the-answer-neither"),
        pytest.param({"one_of": ["C++"]}, "C", False, id="plus"),
        pytest.param({"one_of": ["C++"]}, "`c++`.", True, id="plus-in-code"),
        pytest.param({"one_of": ["__init__"]}, "init", False, id="underscores-of-the-text-itself"),
        pytest.param({"one_of": ["__init__"]}, "__init__", True, id="the-very-text"),
        pytest.param({"one_of": ["yes"]}, "\u201cYes.\u201d", True, id="quotes"),
        pytest.param({"one_of": ["yes"]}, "**Yes**.", True, id="mark-outside-of-the-emphasis"),
        pytest.param({"one_of": ["yes"]}, "(yes)", False, id="parentheses-count"),
        pytest.param({"one_of": ["$5"]}, "5", False, id="currency"),
        pytest.param({"one_of": ["yes"]}, "*" * 100_000 + "yes" + "*" * 100_000, False, id="very-much-emphasis"),
        pytest.param({"excludes": ["error"]}, "all fine", True, id="excludes"),
        pytest.param({"excludes": ["error"]}, "An ERROR came", False, id="excludes-in-either-case"),
        pytest.param({"excludes": ["a", "z"]}, "buzz", False, id="excludes-any"),
        pytest.param({"excludes": ["x"]}, "", True, id="excludes-of-an-empty-answer"),
        pytest.param({"excludes": ["x"]}, None, False, id="no-answer-excludes-nothing"),
        pytest.param({"contains": ["a"], "excludes": ["b"]}, "a b", False, id="both"),
        pytest.param({"number": 1, "excludes": ["2"], "one_of": ["1"], "pattern": "1"}, "1", True, id="all-at-once"),
    ],
)
def test_answer(fields: dict[str, Any], answer: str | None, passed: bool) -> None:
    assert judge(check(kind="answer", **fields), episode(answer=answer)).passed is passed


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"excludes": ["five", "x"]}, "the answer 'five kg' has 'five'", id="excludes"),
        pytest.param({"one_of": ["six", "7"]}, "the answer 'five kg' is none of 'six', '7'", id="one-of"),
        pytest.param(
            {"number": 5, "tolerance": 0.5, "unit": ["kg", "lb"]},
            "the answer 'five kg' has no number within 0.5 of 5 in kg or lb",
            id="unit",
        ),
        pytest.param({"pattern": "^six"}, "the answer 'five kg' does not match '^six'", id="pattern"),
    ],
)
def test_a_failure_says_what_is_lacking(fields: dict[str, Any], reason: str) -> None:
    assert judge(check(kind="answer", **fields), episode(answer="five kg")).reason == reason


def test_a_long_answer_is_shown_in_part() -> None:
    reason = judge(check(kind="answer", contains=["y"]), episode(answer="x" * 5_000)).reason
    assert reason == f"the answer '{'x' * 200}…' lacks 'y'"


def test_a_pattern_that_is_not_settled_is_not_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "PATTERN_TIMEOUT_S", 0.05)
    grade = judge(check(kind="answer", pattern=r"^(a|a)*$"), episode(answer="a" * 80 + "!"))
    assert grade.passed is None
    assert grade.reason == "not graded: the pattern '^(a|a)*$' was not settled within 0.05 s"


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[", "(?P<x>a)(?P<x", "*", "\\"])
def test_a_text_that_is_no_pattern_is_told_before_anything_runs(pattern: str) -> None:
    assert expressions.pattern_problem(pattern) is not None
    with pytest.raises(ValueError, match="no regular expression"):
        check(kind="answer", pattern=pattern)


@settings(deadline=None)
@given(st.text(max_size=40), st.text("0123456789.,-+ekKgG$% \u0661", max_size=20))
def test_any_answer_can_be_judged_by_every_condition(text: str, numbers: str) -> None:
    wanted = check(
        kind="answer", contains=["k"], excludes=["z"], number=5, unit=["kg", "$"], one_of=["5 kg"], pattern="k"
    )
    assert judge(wanted, episode(answer=text + numbers)).passed in (True, False)


@settings(deadline=None)
@given(st.integers(-(10**6), 10**6), st.sampled_from(["kg", "$", "%", "€", "square metres"]), st.booleans())
def test_a_number_with_its_unit_passes_on_either_side(number: int, unit: str, before: bool) -> None:
    answer = f"It is {unit} {number:,}." if before else f"It is {number:,} {unit}."
    assert judge(check(kind="answer", number=number, unit=[unit]), episode(answer=answer)).passed is True
