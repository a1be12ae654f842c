"""Declared faults: at which calls they happen, and what the model then sees of a world that goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.tools import Outcome, fault_label

from .conftest import CLOCK, kit, play, start, tool

ADD = tool(
    "add",
    {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
    cases=[{"when": "has(args.n) && args.n < 0", "error": "no debts"}],
    default={
        "returns": {"total": "${world.total + args.n}"},
        "effects": [{"op": "replace", "path": "/total", "value": "${world.total + args.n}"}],
    },
)
READ = tool("read", default={"returns": {"total": "${world.total}"}})
SLOW = tool("slow", default={"returns": "done", "latency_s": 2})
TEXT = tool("text", default={"returns": "plain words"})
WORLD = {"total": 10}
AT_ONE: dict[str, Any] = {"tool": "add", "at": [1]}


def after(fault: dict[str, Any], *calls: Any, variables: dict[str, Any] | None = None) -> list[Outcome]:
    """Outcomes of calls to tools with one fault."""
    return play(kit(ADD, READ, SLOW, TEXT, faults=[fault], variables=variables), start(WORLD), *calls)


def fired(outcomes: list[Outcome]) -> list[int]:
    """Numbers, from 1, of the calls at which a fault fired."""
    return [number for number, outcome in enumerate(outcomes, 1) if outcome.fault is not None]


@pytest.mark.parametrize(
    ("when", "calls"),
    [
        pytest.param({"at": [1, 4]}, [1, 4], id="at"),
        pytest.param({"every": 2}, [2, 4, 6], id="every"),
        pytest.param({"at": [2, 3, 4], "every": 2}, [2, 4], id="at-and-every"),
        pytest.param({"when": "args.n > 3"}, [4, 5, 6], id="when-args"),
        pytest.param({"when": "world.total >= 13"}, [3, 4, 5, 6], id="when-world"),
        pytest.param({"when": "call == 5"}, [5], id="when-call"),
        pytest.param({"when": "call == vars.bad"}, [3], id="when-vars"),
        pytest.param({"every": 1, "when": "args.n > 1", "times": 2}, [2, 3], id="times"),
        pytest.param({"at": [1], "times": 5}, [1], id="times-are-a-bound-and-no-goal"),
    ],
)
def test_a_fault_happens_at_the_calls_for_which_all_that_is_given_holds(when: dict[str, Any], calls: list[int]) -> None:
    made = [("add", {"n": number}) for number in range(1, 7)]
    outcomes = after({"kind": "latency", "tool": "add", "latency_s": 1, **when}, *made, variables={"bad": 3})
    assert fired(outcomes) == calls


KINDS: dict[str, dict[str, Any]] = {
    "error": {"message": "busy"},
    "timeout": {"after_s": 1},
    "malformed": {},
    "truncated": {"keep": 3},
    "stale": {},
    "latency": {"latency_s": 1},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("when", "calls"),
    [
        pytest.param({"at": [2, 5]}, [2, 5], id="at"),
        pytest.param({"every": 3}, [3, 6], id="every"),
        pytest.param({"when": "call % 2 == 0"}, [2, 4, 6], id="when"),
        pytest.param({"at": [2, 3, 4], "when": "args.n > 2", "times": 1}, [3], id="all-together"),
    ],
)
def test_every_kind_happens_at_the_calls_that_are_given(kind: str, when: dict[str, Any], calls: list[int]) -> None:
    outcomes = after({"kind": kind, "tool": "add", **KINDS[kind], **when}, *(("add", {"n": n}) for n in range(1, 7)))
    assert fired(outcomes) == calls
    assert {outcome.fault for outcome in outcomes} == {None, f"{kind}#0"}
    assert outcomes[-1].state.fired == {0: len(calls)}


@pytest.mark.parametrize("kind", KINDS)
def test_only_errors_and_timeouts_keep_a_call_from_changing_the_world(kind: str) -> None:
    _, outcome = after({"kind": kind, "tool": "add", **KINDS[kind], "at": [2]}, ("add", {"n": 1}), ("add", {"n": 2}))
    assert outcome.state.world == {"total": 11 if kind in ("error", "timeout") else 13}
    assert (outcome.error is not None) is (kind in ("error", "timeout"))


def test_a_fault_may_wait_for_the_clock() -> None:
    when = "timestamp(clock) >= timestamp('2026-01-15T09:00:02Z')"
    fault = {"kind": "error", "tool": "read", "when": when, "message": "late"}
    assert fired(after(fault, "read", "slow", "read")) == [3]


def test_a_fault_counts_the_calls_of_its_own_tool() -> None:
    outcomes = after(
        {"kind": "error", "tool": "add", "at": [2], "message": "x"},
        ("add", {"n": 1}),
        "read",
        "read",
        ("add", {"n": 1}),
    )
    assert fired(outcomes) == [4]


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param("not json", id="no-json"),
        pytest.param({"n": "1"}, id="wrong-type"),
        pytest.param({"m": 1}, id="unknown-argument"),
    ],
)
def test_a_refused_call_counts_and_meets_no_fault(refused: Any) -> None:
    fault = {"kind": "error", "tool": "add", "at": [1, 2], "message": "busy"}
    first, second = after(fault, ("add", refused), ("add", {"n": 1}))
    assert (first.fault, second.fault) == (None, "error#0")
    assert "busy" not in first.result


def test_a_call_of_an_unknown_tool_meets_no_fault() -> None:
    (outcome,) = after({"kind": "error", "tool": "gone", "every": 1, "message": "busy"}, "gone")
    assert outcome.fault is None


def test_an_error_says_its_message_and_changes_nothing() -> None:
    message = "call ${call} with ${args.n} of ${world.total} at ${clock} is ${vars.how}"
    (outcome,) = after({"kind": "error", **AT_ONE, "message": message}, ("add", {"n": 2}), variables={"how": "bad"})
    assert outcome.error == f"call 1 with 2 of 10 at {CLOCK} is bad"
    assert json.loads(outcome.result) == {"error": outcome.error}
    assert (outcome.state.world, outcome.state.clock) == (WORLD, CLOCK)


def test_an_error_may_be_no_text() -> None:
    (outcome,) = after({"kind": "error", **AT_ONE, "message": "${args}"}, ("add", {"n": 2}))
    assert outcome.error == '{"n":2}'


@pytest.mark.parametrize(("applied", "total"), [(False, 10), (True, 12)])
def test_a_timeout_moves_the_clock_and_may_have_been_applied(applied: bool, total: int) -> None:
    fault = {"kind": "timeout", **AT_ONE, "after_s": 90, "applied": applied}
    late, seen = after(fault, ("add", {"n": 2}), "read")
    assert late.result == '{"error":"timed out after 90 s; no answer came"}'
    assert (late.error, late.state.clock) == ("timed out after 90 s; no answer came", "2026-01-15T09:01:30Z")
    assert seen.result == f'{{"total":{total}}}'


def test_a_timeout_lasts_half_a_minute_where_nothing_is_said() -> None:
    (outcome,) = after({"kind": "timeout", **AT_ONE}, ("add", {"n": 2}))
    assert outcome.state.clock == "2026-01-15T09:00:30Z"


def test_an_applied_timeout_takes_its_own_time_and_not_the_answers_besides() -> None:
    (outcome,) = after({"kind": "timeout", "tool": "slow", "at": [1], "after_s": 7, "applied": True}, "slow")
    assert outcome.state.clock == "2026-01-15T09:00:07Z"


@pytest.mark.parametrize(
    ("name", "result"),
    [
        pytest.param(("add", {"n": 2}), '{"total":12', id="object"),
        pytest.param("text", '{"result": "plain words', id="bare-text"),
    ],
)
def test_a_malformed_result_is_seen_in_part_and_the_world_goes_on(name: Any, result: str) -> None:
    tool_name = name if isinstance(name, str) else name[0]
    (outcome,) = after({"kind": "malformed", "tool": tool_name, "every": 1}, name)
    assert (outcome.result, outcome.error) == (result, None)
    assert outcome.state.world == ({"total": 12} if tool_name == "add" else WORLD)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
RESULTS = JSON | st.text(max_size=8) | st.text('{}[]":,a1 ', max_size=8) | st.sampled_from(['x"}', '": 1}', '"', ""])


@given(RESULTS)
def test_a_malformed_result_is_never_json(value: Any) -> None:
    said = tool("say", default={"returns": "${args.value}"})
    fault = {"kind": "malformed", "tool": "say", "every": 1}
    (outcome,) = play(kit(said, faults=[fault]), start(), ("say", {"value": value}))
    assert outcome.fault == "malformed#0"
    with pytest.raises(ValueError, match=r"."):
        json.loads(outcome.result)


@pytest.mark.parametrize(
    ("keep", "result", "label"),
    [(0, "", "truncated#0"), (5, '{"tot', "truncated#0"), (12, '{"total":12}', None), (99, '{"total":12}', None)],
)
def test_a_truncated_result_breaks_off_and_the_world_goes_on(keep: int, result: str, label: str | None) -> None:
    (outcome,) = after({"kind": "truncated", **AT_ONE, "keep": keep}, ("add", {"n": 2}))
    assert (outcome.result, outcome.fault, outcome.error) == (result, label, None)
    assert outcome.state.world == {"total": 12}


def test_a_stale_result_is_what_the_tool_would_have_said_at_the_start() -> None:
    fault = {"kind": "stale", "tool": "read", "at": [2]}
    outcomes = after(fault, ("add", {"n": 1}), "read", ("add", {"n": 1}), "read", "read")
    totals = [json.loads(outcome.result)["total"] for outcome in outcomes]
    assert totals == [11, 11, 12, 10, 12]
    assert fired(outcomes) == [4]


def test_a_stale_result_of_a_change_is_told_and_the_change_is_made_to_the_world_of_now() -> None:
    first, second = after({"kind": "stale", "tool": "add", "at": [2]}, ("add", {"n": 1}), ("add", {"n": 5}))
    assert (second.result, second.state.world, second.error) == ('{"total":15}', {"total": 16}, None)
    assert first.fault is None


def test_a_stale_error_is_an_error_although_the_call_has_succeeded() -> None:
    stocked = tool(
        "take",
        cases=[{"when": "world.stock == 0", "error": "none"}],
        default={"returns": "taken", "effects": [{"op": "replace", "path": "/stock", "value": "${world.stock - 1}"}]},
    )
    fill = tool("fill", default={"effects": [{"op": "replace", "path": "/stock", "value": 1}]})
    tools = kit(stocked, fill, faults=[{"kind": "stale", "tool": "take", "every": 1}])
    _, outcome = play(tools, start({"stock": 0}), "fill", "take")
    assert (outcome.error, outcome.state.world) == ("none", {"stock": 0})


def test_a_stale_result_tells_the_time_of_the_start() -> None:
    when = tool("when", default={"returns": "${clock}", "latency_s": 5})
    tools = kit(when, faults=[{"kind": "stale", "tool": "when", "at": [2]}])
    outcomes = play(tools, start(), "when", "when")
    assert [outcome.result for outcome in outcomes] == [CLOCK, CLOCK]
    assert outcomes[1].state.clock == "2026-01-15T09:00:10Z"


def test_a_change_that_the_world_at_the_start_does_not_allow_is_still_made() -> None:
    make = tool("make", default={"effects": [{"op": "add", "path": "/order", "value": 1}]})
    cancel = tool("cancel", default={"returns": "${has(world.order)}", "effects": [{"op": "remove", "path": "/order"}]})
    tools = kit(make, cancel, faults=[{"kind": "stale", "tool": "cancel", "every": 1}])
    _, outcome = play(tools, start(), "make", "cancel")
    assert (outcome.result, outcome.error, outcome.state.world) == ("false", None, {})


def test_where_the_mock_had_no_answer_at_the_start_the_one_of_now_is_given() -> None:
    make = tool("make", default={"effects": [{"op": "add", "path": "/order", "value": 1}]})
    look = tool("look", default={"returns": "${world.order}"})
    _, outcome = play(kit(make, look, faults=[{"kind": "stale", "tool": "look", "every": 1}]), start(), "make", "look")
    assert (outcome.result, outcome.fault, outcome.is_broken) == ("1", None, False)


def test_latency_moves_the_clock_besides_the_answers_own() -> None:
    (outcome,) = after({"kind": "latency", "tool": "slow", "at": [1], "latency_s": 0.25}, "slow")
    assert (outcome.result, outcome.state.clock) == ("done", "2026-01-15T09:00:02.250000Z")


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        pytest.param({"kind": "latency", "tool": "read", "every": 1, "latency_s": 0}, ["read"], id="no-latency"),
        pytest.param({"kind": "truncated", "tool": "read", "every": 1, "keep": 100}, ["read"], id="nothing-cut"),
        pytest.param({"kind": "stale", "tool": "read", "every": 1}, ["read", "read"], id="nothing-changed"),
        pytest.param(
            {"kind": "error", "tool": "add", "every": 1, "message": "no debts"}, [("add", {"n": -1})], id="same-error"
        ),
    ],
)
def test_a_fault_that_makes_no_difference_has_not_fired(fault: dict[str, Any], calls: list[Any]) -> None:
    outcomes = after({**fault, "times": 1}, *calls)
    assert fired(outcomes) == []
    assert outcomes[-1].state.fired == {}
    assert outcomes == play(kit(ADD, READ), start(WORLD), *calls)


def test_a_fault_that_made_no_difference_has_not_used_up_its_times() -> None:
    fault = {"kind": "stale", "tool": "read", "every": 1, "times": 1}
    assert fired(after(fault, "read", ("add", {"n": 1}), "read", "read")) == [3]


def test_where_several_faults_meet_a_call_the_first_happens() -> None:
    faults = [
        {"kind": "error", "tool": "add", "at": [2], "message": "first"},
        {"kind": "error", "tool": "add", "every": 1, "message": "second"},
        {"kind": "latency", "tool": "add", "every": 1, "latency_s": 1},
    ]
    outcomes = play(kit(ADD, faults=faults), start(WORLD), *[("add", {"n": 1})] * 3)
    assert [outcome.error for outcome in outcomes] == ["second", "first", "second"]
    assert [outcome.fault for outcome in outcomes] == ["error#1", "error#0", "error#1"]
    assert outcomes[-1].state.fired == {0: 1, 1: 2}


def test_a_fault_that_is_used_up_leaves_the_call_to_the_next() -> None:
    faults = [
        {"kind": "error", "tool": "add", "every": 1, "times": 1, "message": "first"},
        {"kind": "error", "tool": "add", "every": 1, "times": 1, "message": "second"},
    ]
    outcomes = play(kit(ADD, faults=faults), start(WORLD), *[("add", {"n": 1})] * 3)
    assert [outcome.error for outcome in outcomes] == ["first", "second", None]


def test_how_often_faults_have_fired_is_part_of_the_state() -> None:
    state = start(WORLD)
    assert replace(state, fired={0: 1}).digest() != state.digest()
    assert replace(state, fired={0: 1, 1: 2}).digest() == replace(state, fired={1: 2, 0: 1}).digest()


@pytest.mark.parametrize("when", ["world.gone", "args.n", "1 / 0 == 1"])
def test_a_fault_whose_condition_cannot_be_evaluated_leaves_the_call_unanswered(when: str) -> None:
    (outcome,) = after({"kind": "error", "tool": "add", "when": when, "message": "x"}, ("add", {"n": 1}))
    assert outcome.result == """{"error":"the mock of 'add' could not answer"}"""
    assert outcome.state.world == WORLD


def test_a_fault_is_labelled_by_its_kind_and_its_place_among_the_tasks() -> None:
    tools = kit(ADD, faults=[{"kind": "malformed", **AT_ONE}, {"kind": "stale", **AT_ONE}])
    assert [fault_label(place, fault.kind) for place, fault in enumerate(tools.faults)] == ["malformed#0", "stale#1"]
