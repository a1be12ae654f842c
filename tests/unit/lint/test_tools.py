"""What `check` finds odd in tools that load, and that it finds nothing odd in those that are meant as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.lint import tools

from .conftest import LOOK, MUG, PARAMETERS, SHIP, cases, oddities

ODD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a tool that no task uses": ({"suite_tools": [SHIP, LOOK]}, "tools[1].name", "no task uses the tool 'look'"),
    "a case behind one for every call": (cases({"returns": 1}, MUG), "tools[0].cases[1]", "case 0 answers every call"),
    "a default behind a case for every call": (
        cases({"when": "true", "returns": 1}),
        "tools[0].default",
        "case 0 answers every call",
    ),
    "a case for the arguments of an earlier one": (
        cases(MUG, MUG),
        "tools[0].cases[1]",
        "case 0 answers the same calls before",
    ),
    "a case that is never true": (
        cases({"when": "1 > 2", "returns": 1}),
        "tools[0].cases[0]",
        "'1 > 2' is never true",
    ),
    "a case for an argument that does not exist": (
        cases({"match": {"itme": "mug"}, "returns": 1}),
        "tools[0].cases[0]",
        "'ship' has no argument 'itme'. Did you mean 'item'?",
    ),
    "a case for a value that the schema refuses": (
        cases({"match": {"item": "sofa"}, "returns": 1}),
        "tools[0].cases[0]",
        "the schema of 'ship' does not allow item to be 'sofa'",
    ),
    "an expression of an argument that does not exist": (
        cases({"when": "args.itme == 'mug'", "returns": 1}),
        "tools[0].cases[0].when",
        "reads args.itme, which no call can have. Did you mean 'item'?",
    ),
    "an expression of a world that no task has": (
        cases({"when": "world.stokc == 0", "error": "none left"}),
        "tools[0].cases[0].when",
        "reads world.stokc, which no world of the tasks that use 'ship' has. Did you mean 'stock'?",
    ),
    "the same in a tool of one task": (
        {"suite_tools": [], "tools": [{**SHIP, "default": {"returns": "${world.stokc}"}}]},
        "tasks[0].tools[0].default.returns",
        "reads world.stokc",
    ),
    "an effect on a world that no task has": (
        cases({"when": "call == 1", "effects": [{"op": "replace", "path": "/stokc", "value": 1}]}),
        "tools[0].cases[0].effects[0]",
        "this effect needs world.stokc, which no world of the tasks that use 'ship' has. Did you mean 'stock'?",
    ),
    "an effect below a world that no task has": (
        cases({"when": "call == 1", "effects": [{"op": "add", "path": "/log/-", "value": 1}]}),
        "tools[0].cases[0].effects[0]",
        "this effect needs world.log",
    ),
    "an effect from a world that no task has": (
        cases({"when": "call == 1", "effects": [{"op": "move", "from": "/gone", "path": "/stock"}]}),
        "tools[0].cases[0].effects[0]",
        "this effect needs world.gone",
    ),
    "an argument that is required and not declared": (
        cases(parameters={**PARAMETERS, "required": ["item", "itme"]}),
        "tools[0].parameters",
        "the argument 'itme' is required and stands not among the properties. Did you mean 'item'?",
    ),
    "the same deeper down": (
        cases(
            parameters={
                "type": "object",
                "properties": {"item": {"type": "object", "properties": {"id": {}}, "required": ["name"]}},
            }
        ),
        "tools[0].parameters",
        '"name" is required and stands not among the properties.',
    ),
    "a keyword that JSON Schema lacks": (
        cases(parameters={**PARAMETERS, "requred": ["item"]}),
        "tools[0].parameters",
        "JSON Schema has no 'requred' and ignores it. Did you mean 'required'?",
    ),
    "another one deeper down": (
        cases(parameters={"type": "object", "properties": {"item": {"type": "object", "propertys": {}}}}),
        "tools[0].parameters",
        "JSON Schema has no 'propertys' and ignores it. Did you mean 'properties'?",
    ),
}
MEANT: dict[str, dict[str, Any]] = {
    "nothing beside the usual": {},
    "a part that requires what the whole declares": cases(
        parameters={**PARAMETERS, "anyOf": [{"properties": {"item": {"const": "mug"}}, "required": ["item", "count"]}]}
    ),
    "a whole that requires what a part declares": cases(
        parameters={**PARAMETERS, "required": ["item", "size"], "allOf": [{"properties": {"size": {"type": "string"}}}]}
    ),
    "a case behind a narrower one": cases(MUG, {"when": "world.stock == 0", "returns": 2}),
    "an argument that is asked for with has": cases({"when": "has(args.other)", "returns": 1}),
    "a key that is asked for with has": cases({"when": "has(world.busy) && world.busy", "returns": 1}),
    "a key that an effect makes": cases(
        {"when": "has(world.log)", "returns": "${world.log}", "effects": [{"op": "add", "path": "/log", "value": 1}]}
    ),
    "arguments that a schema leaves open": {
        **cases({"match": {"other": 1}, "returns": 1}, parameters={"type": "object"}),
        "checks": [{"kind": "called", "tool": "ship", "arguments": {"other": 1}}],
    },
    "names of fields inside texts": cases({"when": "args.item == 'args.other world.other'", "returns": 1}),
    "an error that must be met": {
        **cases(default={"error": "closed"}),
        "checks": [{"kind": "called", "tool": "ship", "outcome": "error"}],
    },
    "an argument that is asked for with in": cases({"when": "'other' in args && args.other == 1", "returns": 1}),
    "functions called on all arguments and on the world": cases(
        {"when": "args.size() == 1 && args.exists(k, k == 'item') && world.size() > 0", "returns": 1}
    ),
    "a macro's own name that is also that of the arguments": cases(
        {"when": "call > 1 && [{'x': 1}].exists(args, args.x == 1)", "returns": 1}
    ),
    "effects on fields that a call names": cases(
        {"match": {"item": "mug"}, "effects": [{"op": "add", "path": "/${args.item}", "value": 1}]},
        {"when": "world.mug == 1", "returns": 1},
    ),
    "an effect whose expression has a slash": cases(
        {
            "match": {"item": "mug"},
            "effects": [{"op": "remove", "path": "/stock${4 / 4 == 1 ? '' : 'x'}"}],
        },
    ),
    "requirements of which one must hold": cases(
        parameters={**PARAMETERS, "anyOf": [{"required": ["item"]}, {"required": ["other"]}]}
    ),
    "words of one's own in a schema": cases(parameters={**PARAMETERS, "x-order": 1}),
    "an argument of the name of no keyword": cases(
        parameters={"type": "object", "properties": {"item": {}, "requred": {"type": "string"}}}
    ),
}


@pytest.mark.parametrize(("suite", "key", "words"), ODD.values(), ids=ODD)
def test_what_can_hardly_be_meant_is_told_with_its_place(
    tmp_path: Path, suite: dict[str, Any], key: str, words: str
) -> None:
    assert [message for found, message in oddities(tmp_path, **suite) if found == key and words in message]


@pytest.mark.parametrize("suite", MEANT.values(), ids=MEANT)
def test_what_may_be_meant_is_not_mentioned(tmp_path: Path, suite: dict[str, Any]) -> None:
    assert oddities(tmp_path, **suite) == []


def test_one_of_thousands_of_cases_is_found_to_be_another(tmp_path: Path) -> None:
    many = [{"match": {"item": f"i{number}"}, "returns": number} for number in range(2_000)]
    suite = cases(*many, many[0], parameters={"type": "object", "properties": {"item": {}}})
    assert [key for key, _ in oddities(tmp_path, **suite, checks=[{"kind": "called", "tool": "ship"}])] == [
        "tools[0].cases[2000]"
    ]


def test_cases_of_more_shapes_than_a_tool_has_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "MAX_SHAPES", 1)
    suite = cases(MUG, MUG, {"match": {"other": 1}, "returns": 1}, {"match": {"other": 1}, "returns": 1})
    suite["suite_tools"][0]["parameters"] = {"type": "object"}
    assert [key for key, _ in oddities(tmp_path, **suite)] == ["tools[0].cases[1]"]


def test_equal_numbers_of_cases_are_equal_however_they_are_written(tmp_path: Path) -> None:
    suite = cases(
        {"match": {"item": 5}, "returns": 1},
        {"match": {"item": 5.0}, "returns": 1},
        {"match": {"item": True}, "returns": 1},
        {"match": {"item": 1}, "returns": 1},
        parameters={"type": "object", "properties": {"item": {}}},
    )
    found = oddities(tmp_path, **suite, checks=[{"kind": "called", "tool": "ship"}])
    assert found == [("tools[0].cases[1]", "no call reaches this case: case 0 answers the same calls before")]
