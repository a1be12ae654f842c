"""Cases that a Python function answers: what it is given, what it may give, and what happens when it does not."""

from __future__ import annotations

import enum
import json
from typing import Any

import pytest

from agenteval.spec import ToolError
from agenteval.tools import Outcome

from .conftest import CLOCK, function, kit, play, start, tool

WORLD: dict[str, Any] = {"bills": [{"id": 1, "sum": 5}], "paid": []}
RUN = tool("run", cases=[{"match": {"plain": True}, "returns": "plain"}], default={"function": "f.py:f"})


def called(call: Any, arguments: Any = None, world: dict[str, Any] | None = None) -> Outcome:
    """The outcome of a call that a function answers."""
    (outcome,) = play(kit(RUN, functions=[function(call)]), start(world or WORLD), ("run", arguments or {}))
    return outcome


def test_a_function_gives_result_and_world() -> None:
    def settle(args: dict[str, Any], world: dict[str, Any], clock: str) -> Any:
        return {"who": args["who"], "at": clock}, {**world, "paid": world["bills"]}

    outcome = called(settle, {"who": "ann"})
    assert outcome.result == f'{{"at":"{CLOCK}","who":"ann"}}'
    assert (outcome.error, outcome.state.world) == (None, {**WORLD, "paid": WORLD["bills"]})


def test_a_case_before_it_answers_first() -> None:
    assert called(lambda *_: 1 / 0, {"plain": True}).result == "plain"


def test_what_a_function_changes_is_its_own_copy() -> None:
    before = json.dumps(WORLD)

    def mutates(args: dict[str, Any], world: dict[str, Any], clock: str) -> Any:
        args["list"].append(2)
        world["bills"][0]["sum"] = 0
        del world["paid"]
        return "changed", WORLD

    outcome = called(mutates, {"list": [1]})
    assert json.dumps(WORLD) == before
    assert outcome.state.world == WORLD
    assert outcome.state.world is not WORLD


def test_what_a_function_keeps_cannot_change_the_world_afterwards() -> None:
    kept: list[dict[str, Any]] = []

    def keeps(args: dict[str, Any], world: dict[str, Any], clock: str) -> Any:
        kept.append(world)
        return "kept", world

    outcome = called(keeps)
    kept[0]["bills"].clear()
    assert outcome.state.world == WORLD


def test_a_tool_error_is_one_that_the_model_sees() -> None:
    def refuses(args: dict[str, Any], world: dict[str, Any], clock: str) -> Any:
        world.clear()
        raise ToolError("nothing is open for ann")

    outcome = called(refuses)
    assert outcome.result == '{"error":"nothing is open for ann"}'
    assert (outcome.error, outcome.state.world) == ("nothing is open for ann", WORLD)


def raises(error: BaseException) -> Any:
    def call(*_: Any) -> Any:
        raise error

    return call


class Colour(enum.Enum):
    RED = 1


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param(raises(KeyError("who")), "KeyError: 'who'", id="raises"),
        pytest.param(raises(RecursionError("deep")), "RecursionError", id="too-deep"),
        pytest.param(raises(MemoryError()), "MemoryError", id="too-large"),
        pytest.param(raises(SystemExit(0)), "SystemExit: 0", id="leaves"),
        pytest.param(lambda *_: (str(n for n in ()), {}), "place of an object in memory", id="generator"),
        pytest.param(lambda *_: (1, {"a": [f"{(lambda: 0)}"]}), "place of an object in memory", id="function"),
        pytest.param(lambda *_: None, "TypeError", id="none"),
        pytest.param(lambda *_: "ab", "gave a world that is no object", id="text-of-two-characters"),
        pytest.param(lambda *_: (1, {}, 3), "ValueError", id="three"),
        pytest.param(lambda *_: (1, [1]), "gave a world that is no object", id="world-is-a-list"),
        pytest.param(lambda *_: (1, None), "gave a world that is no object", id="no-world"),
        pytest.param(lambda *_: ({1, 2}, {}), "TypeError", id="set"),
        pytest.param(lambda *_: (b"x", {}), "TypeError", id="bytes"),
        pytest.param(lambda *_: (object(), {}), "TypeError", id="object"),
        pytest.param(lambda *_: (Colour.RED, {}), "TypeError", id="enum"),
        pytest.param(lambda *_: (float("nan"), {}), "ValueError", id="nan"),
        pytest.param(lambda *_: (1, {"x": float("inf")}), "ValueError", id="infinity"),
        pytest.param(lambda *_: (1, {("a",): 1}), "TypeError", id="tuple-as-key"),
        pytest.param(lambda *_: (1, {"a": 1, 2: 3}), "TypeError", id="keys-of-two-types"),
        pytest.param(lambda *_: (endless(), {}), "longer than 1,000,000 characters", id="endless"),
        pytest.param(lambda *_: ("\ud800", {}), "surrogate", id="half-a-character"),
        pytest.param(lambda *_: (1, {"a": ["\ud800"]}), "surrogate", id="half-a-character-in-the-world"),
        pytest.param(raises(ToolError("\ud800")), "surrogate", id="half-a-character-in-an-error"),
        pytest.param(lambda args: (1, {}), "TypeError", id="takes-one"),
    ],
)
def test_what_is_no_answer_leaves_the_call_unanswered(call: Any, words: str) -> None:
    outcome = called(call)
    assert outcome.result == """{"error":"the mock of 'run' could not answer"}"""
    assert outcome.error is not None
    assert outcome.error.startswith("the mock of 'run' could not answer: ")
    assert words in outcome.error
    assert outcome.state.world == WORLD


def test_tuples_and_whole_keys_become_what_json_has() -> None:
    outcome = called(lambda *_: ((1, 2), {"a": (True, None), "b": {"c": 1.5}}))
    assert (outcome.result, outcome.state.world) == ("[1,2]", {"a": [True, None], "b": {"c": 1.5}})


def test_a_text_is_the_result_as_it_stands() -> None:
    assert called(lambda *_: ("two words", {})).result == "two words"


def test_faults_happen_to_functions_too() -> None:
    def counts(args: dict[str, Any], world: dict[str, Any], clock: str) -> Any:
        return world["n"], {"n": world["n"] + 1}

    faults = [{"kind": "stale", "tool": "run", "at": [3]}, {"kind": "error", "tool": "run", "at": [2], "message": "no"}]
    outcomes = play(kit(RUN, faults=faults, functions=[function(counts)]), start({"n": 7}), "run", "run", "run")
    assert [(outcome.result, outcome.state.world["n"]) for outcome in outcomes] == [
        ("7", 8),
        ('{"error":"no"}', 8),
        ("7", 9),
    ]


def test_latency_of_a_functions_case_moves_the_clock() -> None:
    slow = tool("run", default={"function": "f.py:f", "latency_s": 3})
    (outcome,) = play(kit(slow, functions=[function(lambda *_: (1, {}))]), start(), "run")
    assert outcome.state.clock == "2026-01-15T09:00:03Z"


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_function_gets_keys_in_one_order_however_they_were_written(is_reversed: bool) -> None:
    world: dict[str, Any] = {"b": {"y": 1, "x": 2}, "a": 3}
    arguments: dict[str, Any] = {"n": {"d": 1, "c": 2}, "m": 0}
    if is_reversed:
        world = {"a": 3, "b": {"x": 2, "y": 1}}
        arguments = {"m": 0, "n": {"c": 2, "d": 1}}
    outcome = called(lambda args, world, clock: (json.dumps([args, world]), world), arguments, world)
    assert outcome.result == '[{"m": 0, "n": {"c": 2, "d": 1}}, {"a": 3, "b": {"x": 2, "y": 1}}]'


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda *_: (str(object()), {}), id="result"),
        pytest.param(lambda *_: (1, {"made": repr(raises)}), id="world"),
        pytest.param(raises(ToolError(f"no {object()}")), id="error"),
    ],
)
def test_an_objects_place_in_memory_is_no_answer(call: Any) -> None:
    outcome = called(call)
    assert outcome.is_broken
    assert "differs between processes" in str(outcome.error)


def test_a_result_that_holds_itself_many_times_over_is_stopped_soon() -> None:
    def doubles(*_: Any) -> Any:
        value: list[Any] = ["x"]
        for _ in range(60):
            value = [value, value]
        return value, {}

    assert "longer than 1,000,000 characters" in str(called(doubles).error)


@pytest.mark.parametrize(
    ("call", "is_broken"),
    [
        pytest.param(lambda *_: (1, {}), False, id="answer"),
        pytest.param(raises(ToolError("the mock of 'run' could not answer")), False, id="error-that-says-so"),
        pytest.param(raises(KeyError("x")), True, id="raises"),
    ],
)
def test_an_outcome_says_whether_the_mock_is_broken(call: Any, is_broken: bool) -> None:
    assert called(call).is_broken is is_broken
