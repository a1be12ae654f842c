"""The clock of an episode: moved by declared latency alone, and written in one way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.spec import ToolMock
from agenteval.tools import State

from .conftest import CLOCK, kit, play, start, tool

NOW = tool("now", default={"returns": "${clock}"})


def waits(seconds: float, name: str = "wait") -> ToolMock:
    """A tool whose answer takes so long, and says when it was called."""
    return tool(name, default={"returns": "${clock}", "latency_s": seconds})


@pytest.mark.parametrize(
    ("given_clock", "clock"),
    [
        pytest.param(CLOCK, CLOCK, id="utc"),
        pytest.param("2026-01-15T10:30:00+01:30", CLOCK, id="another-zone"),
        pytest.param("2026-01-15T09:00:00.5Z", "2026-01-15T09:00:00.500000Z", id="fraction"),
        pytest.param("2026-01-15T09:00:00.000Z", CLOCK, id="no-fraction"),
        pytest.param("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", id="first-year"),
        pytest.param("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z", id="last-second"),
    ],
)
def test_the_instant_of_the_start_is_told_in_utc(given_clock: str, clock: str) -> None:
    (outcome,) = play(kit(NOW), start(clock=given_clock), "now")
    assert (outcome.result, outcome.state.clock) == (clock, clock)


def test_a_call_sees_the_instant_at_which_it_is_made() -> None:
    outcomes = play(kit(waits(90), NOW), start(), "wait", "now", "wait", "now")
    assert [outcome.result for outcome in outcomes] == [
        CLOCK,
        "2026-01-15T09:01:30Z",
        "2026-01-15T09:01:30Z",
        "2026-01-15T09:03:00Z",
    ]


@pytest.mark.parametrize(
    ("seconds", "clock"),
    [
        pytest.param(0, CLOCK, id="none"),
        pytest.param(0.25, "2026-01-15T09:00:00.250000Z", id="fraction"),
        pytest.param(1e-7, CLOCK, id="less-than-a-microsecond"),
        pytest.param(86_400 * 365, "2027-01-15T09:00:00Z", id="a-year"),
    ],
)
def test_latency_moves_it(seconds: float, clock: str) -> None:
    (outcome,) = play(kit(waits(seconds)), start(), "wait")
    assert outcome.state.clock == clock


def test_latency_of_an_error_moves_it_too() -> None:
    fails = tool("fails", default={"error": "no", "latency_s": 5})
    (outcome,) = play(kit(fails), start(), "fails")
    assert (outcome.error, outcome.state.clock) == ("no", "2026-01-15T09:00:05Z")


def test_a_refused_call_takes_no_time() -> None:
    strict = tool("strict", {"type": "object", "required": ["x"]}, default={"latency_s": 5})
    (outcome,) = play(kit(strict), start(), "strict")
    assert outcome.state.clock == CLOCK


def test_the_year_9999_is_not_left() -> None:
    (outcome,) = play(kit(waits(2)), start(clock="9999-12-31T23:59:59Z"), "wait")
    assert outcome.error == (
        "the mock of 'wait' could not answer: the clock cannot move 2 s on from 9999-12-31T23:59:59Z"
    )
    assert outcome.state.clock == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param("${timestamp(clock) + duration('90s')}", "2026-01-15T09:01:30Z", id="later"),
        pytest.param("${timestamp(clock) + duration('500ms')}", "2026-01-15T09:00:00.500000Z", id="fraction"),
        pytest.param("${timestamp('0999-01-01T00:00:00Z')}", "0999-01-01T00:00:00Z", id="early-year"),
        pytest.param("${(timestamp(clock) - timestamp('2026-01-15T08:00:00Z')).getSeconds()}", "3600", id="since"),
        pytest.param("${timestamp(clock).getHours()}", "9", id="hour"),
        pytest.param("${timestamp(clock) < timestamp('2026-01-15T09:00:00.001Z')}", "true", id="before"),
    ],
)
def test_expressions_compute_with_it(expression: str, value: str) -> None:
    (outcome,) = play(kit(tool("t", default={"returns": expression})), start(), "t")
    assert outcome.result == value


@given(st.lists(st.integers(0, 10_000_000), max_size=6))
def test_the_clock_is_the_sum_of_what_was_waited(microseconds: list[int]) -> None:
    tools = kit(*(waits(wait / 1e6, f"w{place}") for place, wait in enumerate(microseconds)))
    outcomes = play(tools, start(), *(f"w{place}" for place in range(len(microseconds))))
    (at_once,) = play(kit(waits(sum(microseconds) / 1e6)), start(), "wait")
    assert (outcomes[-1].state.clock if outcomes else CLOCK) == at_once.state.clock


def test_two_ways_to_write_an_instant_begin_in_one_state() -> None:
    begun = [State.begin(world={}, clock=clock) for clock in (CLOCK, "2026-01-15T11:00:00+02:00")]
    assert begun[0] == begun[1]
    assert begun[0].digest() == begun[1].digest()
