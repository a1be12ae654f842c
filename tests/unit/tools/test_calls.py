"""Tool mocks: equal state and call give equal bytes, and whatever a model writes gets a readable text."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.expressions import values
from agenteval.tools import State, call_tool, openai_schema, parse_arguments, world_patch
from agenteval.tools.arguments import MAX_ARGUMENT_CHARACTERS, MAX_ARGUMENT_DEPTH

from .conftest import CLOCK, OBJECT, kit, play, start, tool

KIT = kit(
    *(
        tool("echo", default={"returns": "${args}"}),
        tool(
            "take",
            {
                "type": "object",
                "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["item", "count"],
                "additionalProperties": False,
            },
            cases=[
                {"match": {"item": "nothing"}, "returns": None},
                {"when": "!(args.item in world.stock)", "error": "no ${args.item}"},
                {"when": "args.count > world.stock[args.item]", "error": "only ${world.stock[args.item]}"},
            ],
            default={
                "returns": {"left": "${world.stock[args.item] - args.count}"},
                "effects": [
                    {
                        "op": "replace",
                        "path": "/stock/${args.item}",
                        "value": "${world.stock[args.item] - args.count}",
                    },
                    {"op": "add", "path": "/log/-", "value": "${args.item}"},
                ],
            },
        ),
        tool("flaky", cases=[{"when": "call < 3", "error": "try again (${call})"}], default={"returns": "ok"}),
        tool("when", default={"returns": "${clock}"}),
        tool("broken", default={"returns": "${world.absent}"}),
        tool(
            "half_done",
            default={
                "returns": "done",
                "effects": [
                    {"op": "add", "path": "/first", "value": 1},
                    {"op": "replace", "path": "/absent/deep", "value": 2},
                ],
            },
        ),
        tool("put", default={"effects": [{"op": "add", "path": "/items/${args.name}", "value": True}]}),
        tool("silent"),
    )
)
WORLD = {"stock": {"mug": 5, "a/b": 1}, "log": [], "items": {}}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
ARGUMENTS = (
    st.fixed_dictionaries({"item": st.sampled_from(["mug", "a/b", "nothing", ""]), "count": st.integers(-1, 9)})
    .map(json.dumps)
    .map(str)
    | JSON.map(json.dumps)
    | st.text(max_size=40)
)
CALLS = st.lists(st.tuples(st.sampled_from([*KIT.mocks, "unknown"]), ARGUMENTS), max_size=5)


def seen(calls: list[tuple[str, str]]) -> list[tuple[str, str | None, str]]:
    """Result, error and state after each call."""
    return [(outcome.result, outcome.error, outcome.state.digest()) for outcome in play(KIT, start(WORLD), *calls)]


@given(CALLS)
def test_equal_states_and_calls_give_equal_bytes(calls: list[tuple[str, str]]) -> None:
    assert seen(calls) == seen(calls)


@given(CALLS)
def test_a_call_never_changes_the_state_that_it_was_given(calls: list[tuple[str, str]]) -> None:
    before = json.dumps(WORLD)
    seen(calls)
    assert json.dumps(WORLD) == before


@given(CALLS)
def test_whatever_the_model_writes_the_result_is_text_that_can_be_sent(calls: list[tuple[str, str]]) -> None:
    for result, error, _ in seen(calls):
        result.encode("utf-8")
        if error is not None:
            assert set(json.loads(result)) == {"error"}


@given(CALLS)
def test_the_world_patch_leads_from_the_world_before_to_the_world_after(calls: list[tuple[str, str]]) -> None:
    state = start(WORLD)
    for name, arguments in calls:
        after = call_tool(KIT, name, arguments, state).state
        assert jsonpatch.JsonPatch(world_patch(state, after)).apply(state.world) == after.world
        state = after


WORLDS = st.dictionaries(st.text("ab/~", max_size=3), JSON.filter(lambda value: "nan" not in repr(value)), max_size=4)


@given(WORLDS, WORLDS)
def test_any_two_worlds_have_a_patch_in_order_of_key(before: dict[str, Any], after: dict[str, Any]) -> None:
    if "inf" in repr((before, after)):
        return
    patch = world_patch(start(before), start(after))
    assert jsonpatch.JsonPatch(patch).apply(before) == after
    reordered = {key: after[key] for key in reversed(after)}
    assert world_patch(start(before), start(reordered)) == patch


def test_equal_worlds_have_no_patch() -> None:
    assert world_patch(start({"a": [1]}), start({"a": [1]})) == ()


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        pytest.param("take", '{"item":"mug","count":2}', '{"left":3}', id="template"),
        pytest.param("take", '{"item":"nothing","count":0}', "null", id="match-comes-before-when"),
        pytest.param("echo", '{"b":1,"a":[true,null,"é"]}', '{"a":[true,null,"é"],"b":1}', id="canonical"),
        pytest.param("echo", "", "{}", id="no-arguments"),
        pytest.param("echo", '{"n":5.0}', '{"n":5}', id="whole-float-is-an-integer"),
        pytest.param("when", "{}", CLOCK, id="clock-and-bare-text"),
        pytest.param("take", '{"item":"cup","count":1}', '{"error":"no cup"}', id="declared-error"),
        pytest.param("take", '{"item":"mug","count":6}', '{"error":"only 5"}', id="second-case"),
        pytest.param("silent", "{}", '{"error":"no result for these arguments"}', id="default-default"),
        pytest.param("broken", "{}", """{"error":"the mock of 'broken' could not answer"}""", id="mock-at-fault"),
        pytest.param(
            "nope",
            "{}",
            f"""{{"error":"there is no tool 'nope'; the tools are: {", ".join(KIT.mocks)}"}}""",
            id="unknown-tool",
        ),
        pytest.param(
            "t\u00e9l\ud800",
            "{}",
            rf"""{{"error":"there is no tool 't\\xe9l\\ud800'; the tools are: {", ".join(KIT.mocks)}"}}""",
            id="name-in-ascii-whatever-python-thinks-printable",
        ),
        pytest.param(
            "take",
            '{"item":"mug"}',
            """{"error":"wrong arguments for 'take': missing: 'count'"}""",
            id="missing-argument",
        ),
        pytest.param(
            "take",
            '{"item":"mug","count":1,"colour":"red"}',
            """{"error":"wrong arguments for 'take': unknown: 'colour'; known: 'count', 'item'"}""",
            id="unknown-argument",
        ),
        pytest.param(
            "take",
            '{"item":"mug","count":"1"}',
            """{"error":"wrong arguments for 'take' at 'count': must be of type \\"integer\\""}""",
            id="wrong-type",
        ),
    ],
)
def test_the_model_reads_exactly_this(name: str, arguments: str, result: str) -> None:
    assert call_tool(KIT, name, arguments, start(WORLD)).result == result


@pytest.mark.parametrize(
    ("schema", "argument", "complaint"),
    [
        pytest.param({"enum": ["a", "b"]}, '"c"', 'must be one of ["a", "b"]', id="enum"),
        pytest.param({"type": ["string", "null"]}, "1", 'must be of type ["string", "null"]', id="types"),
        pytest.param({"minimum": 3}, "1", "must satisfy minimum: 3", id="any-other-keyword"),
        pytest.param({"not": {"type": "integer"}}, "1", 'must satisfy not: {"type": "integer"}', id="not"),
        pytest.param({"pattern": "^b"}, '"a"', 'must satisfy pattern: "^b"', id="pattern"),
        pytest.param({"minItems": 2}, "[1]", "must satisfy minItems: 2", id="items"),
        pytest.param({"const": {"b": 1, "a": 2}}, "1", 'must satisfy const: {"a": 2, "b": 1}', id="sorted"),
    ],
)
def test_a_violated_schema_is_told_in_words_of_our_own(schema: Any, argument: str, complaint: str) -> None:
    """The validator's own words change with its version."""
    mock = tool("t", {"type": "object", "properties": {"x": schema}})
    outcome = call_tool(kit(mock), "t", f'{{"x":{argument}}}', start())
    assert outcome.error == f"wrong arguments for 't' at 'x': {complaint}"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("{", "the arguments are not JSON, from character 2 on", id="unfinished"),
        pytest.param("{'a': 1}", "the arguments are not JSON, from character 2 on", id="quotes"),
        pytest.param('{"a": 1} {', "the arguments are not JSON, from character 10 on", id="more-after-it"),
        pytest.param('{"a": NaN}', "the arguments are not JSON: NaN is no JSON value", id="nan"),
        pytest.param('{"a": -Infinity}', "the arguments are not JSON: -Infinity is no JSON value", id="infinity"),
        pytest.param(
            '{"a": 1e999}',
            "the arguments are not JSON: a number of that size is no JSON value",
            id="overflow",
        ),
        pytest.param(
            '{"a": ' + "9" * 5_000 + "}",
            "the arguments are not JSON: a number of that length is no JSON value",
            id="long-number",
        ),
        pytest.param("[1]", "the arguments are not a JSON object", id="list"),
        pytest.param(r'{"a": "\ud800"}', "the arguments hold half a character (a lone surrogate)", id="lone-surrogate"),
        pytest.param("null", "the arguments are not a JSON object", id="null"),
        pytest.param(
            '{"a":' * 60 + "1" + "}" * 60,
            f"the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels",
            id="nested",
        ),
        pytest.param(
            "[" * 90_000,
            f"the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels",
            id="never-closed",
        ),
        pytest.param(
            '{"a":"' + "x" * MAX_ARGUMENT_CHARACTERS + '"}',
            f"the arguments are longer than {MAX_ARGUMENT_CHARACTERS} characters",
            id="long",
        ),
    ],
)
def test_arguments_that_are_none_are_refused_in_words_of_our_own(text: str, complaint: str) -> None:
    """Python's own words, and its limits, change with its version."""
    assert parse_arguments(text) == ({}, complaint)


def test_a_character_written_as_two_escapes_is_whole() -> None:
    assert parse_arguments(r'{"a": "\ud83d\ude00"}') == ({"a": "\U0001f600"}, None)


def test_brackets_inside_texts_are_no_nesting() -> None:
    text = json.dumps({"a": "[" * 500, "b": '\\"' + "{" * 500})
    assert parse_arguments(text) == (json.loads(text), None)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_value(number: float) -> None:
    arguments, complaint = parse_arguments(json.dumps({"n": number}))
    assert complaint is None
    assert math.isclose(arguments["n"], number, rel_tol=0.0, abs_tol=0.0)


def test_effects_change_the_world_that_the_next_call_sees() -> None:
    first = call_tool(KIT, "take", '{"item":"mug","count":2}', start(WORLD))
    second = call_tool(KIT, "take", '{"item":"mug","count":3}', first.state)
    assert (second.result, second.state.world["stock"]["mug"]) == ('{"left":0}', 0)
    assert second.state.world["log"] == ["mug", "mug"]


def test_a_failing_effect_undoes_those_before_it() -> None:
    outcome = call_tool(KIT, "half_done", "{}", start(WORLD))
    assert outcome.error is not None
    assert outcome.state.world == WORLD


def test_a_declared_error_leaves_the_world_as_it_is() -> None:
    before = start(WORLD)
    assert call_tool(KIT, "take", '{"item":"mug","count":6}', before).state.world is before.world


def test_the_error_says_more_than_the_result_where_the_mock_is_at_fault() -> None:
    outcome = call_tool(KIT, "broken", "{}", start(WORLD))
    assert outcome.error is not None
    assert "world.absent" in outcome.error
    assert "world.absent" not in outcome.result


def test_a_case_sees_which_call_of_its_tool_it_answers_and_refused_ones_count() -> None:
    state, results = start(WORLD), []
    for arguments in ("{}", "not json", "{}", "{}"):
        outcome = call_tool(KIT, "flaky", arguments, state)
        state = outcome.state
        results.append(outcome.error)
    assert [error and error[:9] for error in results] == ["try again", "the argum", None, None]
    assert state.calls == {"flaky": 4}


@given(st.text(st.characters(codec="utf-8"), max_size=8))
def test_an_argument_in_a_path_cannot_reach_another_place(name: str) -> None:
    outcome = call_tool(KIT, "put", json.dumps({"name": name}), start(WORLD))
    assert outcome.state.world == {**WORLD, "items": {name: True}}


@pytest.mark.parametrize(
    ("wanted", "given_value", "applies"),
    [
        pytest.param(1, "1", True, id="equal"),
        pytest.param(1, "1.0", True, id="same-number"),
        pytest.param(1, "true", False, id="true-is-not-one"),
        pytest.param({"a": 1, "b": 2}, '{"b":2,"a":1}', True, id="key-order"),
        pytest.param(None, "null", True, id="null"),
    ],
)
def test_match_compares_json_values(wanted: Any, given_value: str, applies: bool) -> None:
    mock = tool("t", cases=[{"match": {"x": wanted}, "returns": "yes"}], default={"returns": "no"})
    assert call_tool(kit(mock), "t", f'{{"x":{given_value}}}', start()).result == ("yes" if applies else "no")


def test_match_needs_the_argument_to_be_there() -> None:
    mock = tool("t", cases=[{"match": {"x": None}, "returns": "yes"}], default={"returns": "no"})
    assert call_tool(kit(mock), "t", "{}", start()).result == "no"


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        pytest.param(start({"x": 1, "y": 2}), start({"y": 2, "x": 1}), True, id="key-order"),
        pytest.param(start({"x": 1}), start({"x": 2}), False, id="world"),
        pytest.param(start(), start(clock="2026-01-15T09:00:01Z"), False, id="clock"),
        pytest.param(start(), replace(start(), calls={"t": 1}), False, id="calls"),
    ],
)
def test_the_state_digest_covers_all_that_an_answer_depends_on(a: State, b: State, equal: bool) -> None:
    assert (a.digest() == b.digest()) is equal


def test_the_schema_is_declared_as_the_api_wants_it() -> None:
    assert openai_schema(tool("t", description="Does t.")) == {
        "type": "function",
        "function": {"name": "t", "description": "Does t.", "parameters": OBJECT},
    }


def test_a_pattern_of_a_schema_that_is_not_settled_leaves_the_call_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "PATTERN_TIMEOUT_S", 0.05)
    mock = tool("t", {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a|a)*$"}}})
    outcome = call_tool(kit(mock), "t", json.dumps({"x": "a" * 80 + "!"}), start())
    assert outcome.result == """{"error":"the mock of 't' could not answer"}"""
    assert outcome.state.calls == {"t": 1}


@pytest.mark.parametrize("text", ['{"a": "\ud800"}', '{"\udfff": 1}', '"\ud800'])
def test_half_a_character_is_refused_however_it_is_written(text: str) -> None:
    """A response may hold the half itself, once its own escapes are read."""
    outcome = call_tool(KIT, "echo", text, start())
    assert outcome.error is not None
    assert outcome.error.startswith("the arguments ")
    outcome.result.encode()


@given(st.text(st.characters(), max_size=30), st.text(st.characters(), max_size=10))
def test_no_name_and_no_arguments_raise(arguments: str, name: str) -> None:
    for tool_name in ("echo", name):
        call_tool(KIT, tool_name, arguments, start(WORLD)).result.encode()


def test_brackets_in_a_text_of_any_depth_can_be_a_broken_result() -> None:
    fault = {"kind": "malformed", "tool": "echo", "every": 1}
    echo = tool("echo", default={"returns": "${args.x}"})
    (outcome,) = play(kit(echo, faults=[fault]), start(), ("echo", {"x": "[" * 90_000}))
    assert outcome.fault == "malformed#0"


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63), 2**63 - 1, 2**64 - 1])
def test_an_integer_keeps_every_digit_as_far_as_cel_has_integers(number: int) -> None:
    assert call_tool(KIT, "echo", f'{{"n":{number}}}', start()).result == f'{{"n":{number}}}'


def test_a_property_that_a_schema_forbids_is_told_by_its_value() -> None:
    mock = tool("t", {"type": "object", "properties": {"x": False}})
    outcome = call_tool(kit(mock), "t", '{"x":[1]}', start())
    assert outcome.error == "wrong arguments for 't': [1] is not allowed"
