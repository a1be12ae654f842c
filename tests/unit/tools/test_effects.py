"""What calls change: JSON Patch on the world, all of a case's or none, and never more than a world may hold."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import does_not_hang

from agenteval.tools import MAX_STATE_CHARACTERS, Outcome

from .conftest import kit, play, start, tool

WORLD: dict[str, Any] = {
    "inbox": [{"id": 1}, {"id": 2}],
    "done": [],
    "names": {"a/b": 1, "m~n": 2, "": 3, "plain": 4},
    "text": "words",
    "flag": True,
    "none": None,
}


def changed(*effects: dict[str, Any], arguments: dict[str, Any] | None = None) -> Outcome:
    """The outcome of a call that has these effects."""
    mock = tool("change", default={"returns": "ok", "effects": list(effects)})
    before = copy.deepcopy(WORLD)
    (outcome,) = play(kit(mock), start(before), ("change", arguments or {}))
    assert before == WORLD, "the state before the call is not changed"
    return outcome


@pytest.mark.parametrize(
    ("effect", "changes"),
    [
        pytest.param({"op": "add", "path": "/done/-", "value": 1}, {"done": [1]}, id="append"),
        pytest.param({"op": "add", "path": "/inbox/0", "value": 0}, {"inbox": [0, {"id": 1}, {"id": 2}]}, id="insert"),
        pytest.param({"op": "add", "path": "/new", "value": {"a": [1]}}, {"new": {"a": [1]}}, id="add"),
        pytest.param({"op": "add", "path": "/text", "value": None}, {"text": None}, id="add-over"),
        pytest.param(
            {"op": "replace", "path": "/inbox/1/id", "value": 9}, {"inbox": [{"id": 1}, {"id": 9}]}, id="replace"
        ),
        pytest.param({"op": "remove", "path": "/inbox/0"}, {"inbox": [{"id": 2}]}, id="remove"),
        pytest.param({"op": "test", "path": "/inbox/0", "value": {"id": 1}}, {}, id="test"),
        pytest.param({"op": "test", "path": "/none", "value": None}, {}, id="test-null"),
        pytest.param(
            {"op": "move", "from": "/inbox/0", "path": "/done/-"},
            {"inbox": [{"id": 2}], "done": [{"id": 1}]},
            id="move",
        ),
        pytest.param(
            {"op": "move", "from": "/inbox/0", "path": "/inbox/1"}, {"inbox": [{"id": 2}, {"id": 1}]}, id="swap"
        ),
        pytest.param({"op": "move", "from": "/text", "path": "/text"}, {}, id="move-to-itself"),
        pytest.param({"op": "copy", "from": "/inbox/0", "path": "/done/-"}, {"done": [{"id": 1}]}, id="copy"),
        pytest.param({"op": "copy", "from": "/done", "path": "/done/-"}, {"done": [[]]}, id="copy-into-itself"),
        pytest.param(
            {"op": "replace", "path": "/names/a~1b", "value": 0}, {"names": {**WORLD["names"], "a/b": 0}}, id="slash"
        ),
        pytest.param(
            {"op": "replace", "path": "/names/m~0n", "value": 0}, {"names": {**WORLD["names"], "m~n": 0}}, id="tilde"
        ),
        pytest.param(
            {"op": "replace", "path": "/names/", "value": 0}, {"names": {**WORLD["names"], "": 0}}, id="no-name"
        ),
    ],
)
def test_an_operation_does_what_json_patch_says(effect: dict[str, Any], changes: dict[str, Any]) -> None:
    outcome = changed(effect)
    expected = {**WORLD, **changes}
    if effect["op"] == "move" and effect["from"] != effect["path"] and "/" not in effect["from"][1:]:
        del expected[effect["from"][1:]]
    assert (outcome.error, outcome.state.world) == (None, expected)


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param({"op": "replace", "path": "/gone", "value": 1}, id="replace-what-is-not-there"),
        pytest.param({"op": "remove", "path": "/gone"}, id="remove-what-is-not-there"),
        pytest.param({"op": "remove", "path": "/inbox/-"}, id="remove-past-the-end"),
        pytest.param({"op": "add", "path": "/gone/deep", "value": 1}, id="below-what-is-not-there"),
        pytest.param({"op": "add", "path": "/text/0", "value": 1}, id="into-a-text"),
        pytest.param({"op": "add", "path": "/flag/x", "value": 1}, id="into-a-flag"),
        pytest.param({"op": "add", "path": "/none/x", "value": 1}, id="into-null"),
        pytest.param({"op": "add", "path": "/inbox/7", "value": 1}, id="past-the-end"),
        pytest.param({"op": "add", "path": "/inbox/01", "value": 1}, id="leading-zero"),
        pytest.param({"op": "add", "path": "/inbox/-1", "value": 1}, id="negative"),
        pytest.param({"op": "add", "path": "/inbox/\u0661", "value": 1}, id="digit-of-another-script"),
        pytest.param({"op": "add", "path": "/inbox/x", "value": 1}, id="no-index"),
        pytest.param({"op": "test", "path": "/flag", "value": 1}, id="test-true-is-not-one"),
        pytest.param({"op": "test", "path": "/text", "value": "other"}, id="test-fails"),
        pytest.param({"op": "test", "path": "/gone", "value": None}, id="test-absent-is-not-null"),
        pytest.param({"op": "move", "from": "/gone", "path": "/done/-"}, id="move-what-is-not-there"),
        pytest.param({"op": "move", "from": "/names", "path": "/names/deep"}, id="move-into-itself"),
        pytest.param({"op": "copy", "from": "/inbox/9", "path": "/done/-"}, id="copy-what-is-not-there"),
        pytest.param({"op": "replace", "path": "/names/~2", "value": 1}, id="no-escape"),
    ],
)
def test_an_operation_that_fails_leaves_the_call_unanswered_and_the_world_whole(effect: dict[str, Any]) -> None:
    outcome = changed({"op": "add", "path": "/done/-", "value": "before"}, effect)
    assert outcome.result == """{"error":"the mock of 'change' could not answer"}"""
    assert outcome.state.world == WORLD


def test_operations_see_what_those_before_them_did_and_values_see_the_world_before_the_call() -> None:
    outcome = changed(
        {"op": "add", "path": "/done/-", "value": "${size(world.done)}"},
        {"op": "add", "path": "/done/-", "value": "${size(world.done)}"},
        {"op": "move", "from": "/done/0", "path": "/first"},
    )
    assert (outcome.state.world["done"], outcome.state.world["first"]) == ([0], 0)


@given(st.text(st.characters(codec="utf-8"), max_size=6))
def test_values_in_from_and_path_stay_one_step_deep(name: str) -> None:
    mock = tool(
        "move",
        default={"effects": [{"op": "move", "from": "/left/${args.name}", "path": "/right/${args.name}"}]},
    )
    (outcome,) = play(kit(mock), start({"left": {name: 1}, "right": {}}), ("move", {"name": name}))
    assert outcome.state.world == {"left": {}, "right": {name: 1}}


def test_a_value_keeps_its_type_and_is_no_part_of_the_world_it_came_from() -> None:
    mock = tool(
        "file",
        default={
            "effects": [
                {"op": "add", "path": "/copy", "value": "${world.list}"},
                {"op": "add", "path": "/copy/-", "value": "${args.item}"},
            ]
        },
    )
    (outcome,) = play(kit(mock), start({"list": [1]}), ("file", {"item": {"a": 2.5}}))
    assert outcome.state.world == {"list": [1], "copy": [1, {"a": 2.5}]}


@does_not_hang
def test_a_world_that_doubles_with_every_call_is_stopped_soon() -> None:
    double = tool(
        "double", default={"returns": "more", "effects": [{"op": "add", "path": "/t", "value": "${world.t + world.t}"}]}
    )
    outcomes = play(kit(double), start({"t": "x" * 1_000}), *["double"] * 30)
    assert [outcome.error for outcome in outcomes[:9]] == [None] * 9
    limit = f"what is put in is larger than {MAX_STATE_CHARACTERS:,} values and characters"
    assert {outcome.error for outcome in outcomes[9:]} == {f"the mock of 'double' could not answer: {limit}"}
    assert len(outcomes[-1].state.world["t"]) == 512_000


@does_not_hang
def test_a_world_that_is_copied_into_itself_is_stopped_soon() -> None:
    nest = tool("nest", default={"effects": [{"op": "copy", "from": "/a", "path": f"/a/{n}"} for n in range(12)]})
    outcomes = play(kit(nest), start({"a": {}}), *["nest"] * 2)
    assert outcomes[-1].error is not None
    assert len(json.dumps(outcomes[-1].state.world)) < 2 * MAX_STATE_CHARACTERS


def test_a_result_that_is_too_long_is_no_answer() -> None:
    echo = tool(
        "echo",
        default={
            "returns": "${[args.t, args.t, args.t, args.t, args.t, args.t, args.t, args.t, args.t, args.t, args.t]}"
        },
    )
    (outcome,) = play(kit(echo), start(), ("echo", {"t": "x" * 95_000}))
    limit = f"what is put in is larger than {MAX_STATE_CHARACTERS:,} values and characters"
    assert outcome.error == f"the mock of 'echo' could not answer: {limit}"


@does_not_hang
@pytest.mark.parametrize(
    "default",
    [
        pytest.param({"returns": ["x${world.t}"] * 1_000}, id="result"),
        pytest.param({"returns": "${world.t}" * 1_000}, id="text"),
        pytest.param({"effects": [{"op": "add", "path": "/a", "value": "x${world.t}"}] * 1_000}, id="effects"),
        pytest.param({"effects": [{"op": "add", "path": "/" + "${world.t}" * 1_000, "value": 1}]}, id="path"),
        pytest.param({"error": "${world.t}" * 1_000}, id="error"),
    ],
)
def test_a_value_that_is_put_in_many_times_is_stopped_soon(default: dict[str, Any]) -> None:
    (outcome,) = play(kit(tool("t", default=default)), start({"t": "x" * 400_000}), "t")
    assert outcome.is_broken
    assert "are longer than" in str(outcome.error) or "is larger than" in str(outcome.error)
