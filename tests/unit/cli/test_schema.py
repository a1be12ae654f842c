"""`agenteval schema`: what the loader takes, the schemas take; what they refuse, the loader refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from golden_files import check_golden

from agenteval.cli import main
from agenteval.contract import load_contract
from agenteval.editor_schema import DIALECT, json_schema
from agenteval.errors import FileProblemsError
from agenteval.loading import read_yaml
from agenteval.spec import SuiteFile, SuiteHead, Task, ToolMock

ROOT = Path(__file__).parents[3]
NAMES = ("suite", "file", "task", "tool", "contract")
VALIDATORS = {name: jsonschema.Draft202012Validator(json_schema(name)) for name in NAMES}
MODELS = {"suite": SuiteHead, "file": SuiteFile, "task": Task, "tool": ToolMock}
FILES = {
    "suite": [*ROOT.glob("tasks/*/suite.yaml"), ROOT / "agenteval/cli/new_suite/suite.yaml"],
    "file": [
        *(path for path in ROOT.glob("tasks/*/*.yaml") if path.name != "suite.yaml"),
        ROOT / "agenteval/cli/new_suite/library.yaml",
    ],
    "contract": [*ROOT.glob("contracts/*.yaml"), *ROOT.glob("examples/*.yaml")],
}

AGENT = {
    "system_prompt": "s",
    "tool_choice": "auto",
    "max_turns": 3,
    "max_tokens": 9,
    "parallel_tool_calls": False,
    "finish_tool": None,
}
HEAD = {"name": "s", "description": "d", "agent": AGENT}
TOOL = {"name": "t", "description": "d", "parameters": {"type": "object"}}
TASK = {"name": "t", "prompt": "p", "checks": [{"kind": "answer", "contains": ["a"]}]}
MINE = {"name": "mine", "description": "d", "extends": "strict"}


def check(**fields: Any) -> dict[str, Any]:
    return {**TASK, "checks": [fields]}


def fault(**fields: Any) -> dict[str, Any]:
    return {**TASK, "faults": [fields]}


def effect(**fields: Any) -> dict[str, Any]:
    return {**TOOL, "default": {"effects": [fields]}}


ACCEPTED: dict[str, tuple[str, dict[str, Any]]] = {
    "no finish tool": ("suite", HEAD),
    "all of a suite": ("suite", {**HEAD, "files": ["a/*.yaml", "b.py"], "tools": ["t"], "tags": ["x"]}),
    "an empty file": ("file", {}),
    "tools alone": ("file", {"tools": [TOOL]}),
    "messages": ("task", {"name": "t", "messages": [{"role": "user", "content": "c"}], "checks": TASK["checks"]}),
    "tools by name and written out": ("task", {**TASK, "tools": ["a", TOOL]}),
    "variants and both sorts of matrix": (
        "task",
        {**TASK, "variants": {"one": {"n": 1}}, "matrix": {"a": [1, "b", True], "c": {"d": {"e": []}}}},
    ),
    "a world of anything": ("task", {**TASK, "world": {"a": [None, {"b": 1.5}], "kind": "x", "title": {}}}),
    "a number that is a template": (
        "task",
        check(kind="answer", number="${vars.n}", tolerance="${vars.t}", unit=["kg"]),
    ),
    "a count that is a template": ("task", check(kind="called", tool="t", at_least="${vars.n}", at_most="${vars.n}")),
    "no calls at all": ("task", check(kind="called", tool="t", at_least=0, at_most=0)),
    "turns by a template": ("task", check(kind="turns", at_most="${vars.n}")),
    "a weight": ("task", check(kind="world", that="true", weight=0.5)),
    "null where a field may be absent": ("task", check(kind="called", tool="t", where=None, at_most=None)),
    "calls of a fault by templates": ("task", fault(kind="stale", tool="t", at=[1, "${vars.n}"], every="${vars.n}")),
    "characters by a template": ("task", fault(kind="truncated", tool="t", at=[1], keep="${vars.n}")),
    "a timeout with its defaults": ("task", fault(kind="timeout", tool="t", every=2, times=1)),
    "from of an effect": ("tool", effect(op="move", path="/a", **{"from": "/b"})),
    "a value that is null": ("tool", effect(op="add", path="/a", value=None)),
    "a function": ("tool", {**TOOL, "cases": [{"match": {"a": 1}, "function": "d/f.py:g"}]}),
    "a contract that changes a field": ("contract", {**MINE, "engine": {"dtype": "float32"}}),
    "a contract that changes nothing": ("contract", MINE),
    "a whole contract": ("contract", {**load_contract("default").contract.fields(), "name": "mine"}),
    "a whole contract that extends null": (
        "contract",
        {**load_contract("default").contract.fields(), "name": "mine", "extends": None},
    ),
}
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "no agent": ("suite", {"name": "s", "description": "d"}),
    "no finish tool said": ("suite", {**HEAD, "agent": {k: v for k, v in AGENT.items() if k != "finish_tool"}}),
    "an unknown choice": ("suite", {**HEAD, "agent": {**AGENT, "tool_choice": "any"}}),
    "an unknown key of the agent": ("suite", {**HEAD, "agent": {**AGENT, "max_token": 3}}),
    "too many turns": ("suite", {**HEAD, "agent": {**AGENT, "max_turns": 201}}),
    "a name with a blank": ("suite", {**HEAD, "name": "a b"}),
    "tools that are no list": ("suite", {**HEAD, "tools": "t"}),
    "tasks of a suite in its head": ("suite", {**HEAD, "tasks": [TASK]}),
    "an unknown section": ("file", {"tool": [TOOL]}),
    "a wrong tool in a file": ("file", {"tools": [{**TOOL, "case": []}]}),
    "a task without checks": ("task", {"name": "t", "prompt": "p"}),
    "an empty list of checks": ("task", {**TASK, "checks": []}),
    "a tool that is a number": ("task", {**TASK, "tools": [5]}),
    "a wrong tool in a task": ("task", {**TASK, "tools": [{"name": "a"}]}),
    "an unknown role": ("task", {**TASK, "messages": [{"role": "tool", "content": "c"}]}),
    "a variant that is a list": ("task", {**TASK, "variants": {"one": [1]}}),
    "a matrix that is a word": ("task", {**TASK, "matrix": {"a": "b"}}),
    "an unknown kind of check": ("task", check(kind="wrld", that="true")),
    "a check without a kind": ("task", check(that="true")),
    "a key of another kind of check": ("task", check(kind="world", that="true", at_most=1)),
    "a count of none": ("task", check(kind="turns", at_most=0)),
    "a count in words": ("task", check(kind="turns", at_most="three")),
    "a negative count": ("task", check(kind="called", tool="t", at_least=-1)),
    "a number in words": ("task", check(kind="answer", number="three")),
    "a weight of nothing": ("task", check(kind="world", that="true", weight=0)),
    "one tool in order": ("task", check(kind="order", tools=["t"])),
    "a function that is none": ("task", check(kind="function", function="judge")),
    "an unknown kind of fault": ("task", fault(kind="slow", tool="t", at=[1])),
    "a fault without a tool": ("task", fault(kind="malformed", at=[1])),
    "an error without a message": ("task", fault(kind="error", tool="t", at=[1])),
    "call 0": ("task", fault(kind="malformed", tool="t", at=[0])),
    "a latency of a century": ("task", fault(kind="latency", tool="t", at=[1], latency_s=4e9)),
    "an unknown operation": ("tool", effect(op="set", path="/a", value=1)),
    "an effect without a path": ("tool", effect(op="add", value=1)),
    "parameters that are a list": ("tool", {**TOOL, "parameters": []}),
    "an unknown key of a case": ("tool", {**TOOL, "cases": [{"return": 1}]}),
    "a tool without a description": ("tool", {"name": "t", "parameters": {"type": "object"}}),
    "half a contract without extends": ("contract", {"name": "mine", "description": "d", "cache": {"mode": "shared"}}),
    "a contract without a field": (
        "contract",
        {**load_contract("default").contract.fields(), "name": "mine", "cache": {}},
    ),
    "an unknown clause": ("contract", {**MINE, "caching": {}}),
    "an unknown field of a clause": ("contract", {**MINE, "engine": {"dtpye": "auto"}}),
    "an unknown mode": ("contract", {**MINE, "cache": {"mode": "off"}}),
    "a clause that is a word": ("contract", {**MINE, "cache": "disabled"}),
    "extends that is a list": ("contract", {**MINE, "extends": ["strict"]}),
}


def is_loaded(what: str, content: dict[str, Any], folder: Path) -> bool:
    """Whether the loader takes it."""
    if what == "contract":
        path = folder / "mine.yaml"
        path.write_text(yaml.safe_dump(content))
        try:
            load_contract(str(path))
        except FileProblemsError:
            return False
        return True
    try:
        MODELS[what].model_validate_json(json.dumps(content))
    except ValueError:
        return False
    return True


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of a schema that says which keys an object has."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    check_golden(f"schemas/{name}.json", capsys.readouterr().out)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_schema_that_stands_alone(name: str) -> None:
    schema = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == DIALECT
    assert schema["title"]
    text = json.dumps(schema)
    assert '"$id"' not in text
    assert '"discriminator"' not in text
    assert all(reference.startswith('"#/$defs/') for reference in text.split('"$ref": ')[1:])


@pytest.mark.parametrize("name", NAMES)
def test_unknown_keys_are_refused_everywhere(name: str) -> None:
    assert all(part["additionalProperties"] is False for part in objects(json_schema(name)))


@pytest.mark.parametrize("name", ["suite", "file", "task", "tool"])
def test_every_field_says_what_it_is_where_an_editor_hovers(name: str) -> None:
    parts = [part for part in objects(json_schema(name)) if "properties" in part]
    fields = [(key, field) for part in parts for key, field in part["properties"].items()]
    assert [key for key, field in fields if "description" not in field] == []


def test_docstrings_arrive_as_descriptions_on_one_line() -> None:
    schema = json_schema("task")
    assert schema["properties"]["faults"]["description"] == "What goes wrong at which calls."
    assert schema["$defs"]["WorldCheck"]["description"] == "The world at the end."
    assert all("\n" not in part.get("description", "") for part in objects(schema))


@pytest.mark.parametrize("section", ["checks", "faults"])
def test_an_editor_finds_every_kind_and_what_it_means(section: str) -> None:
    schema = json_schema("task")
    kinds = []
    for reference in schema["properties"][section]["items"]["oneOf"]:
        kind = schema["$defs"][reference["$ref"].removeprefix("#/$defs/")]["properties"]["kind"]
        assert kind["description"]
        kinds.append(kind["const"])
    assert len(kinds) == len(set(kinds)) == {"checks": 10, "faults": 6}[section]


def test_an_editor_finds_the_built_in_contracts() -> None:
    offered = json_schema("contract")["properties"]["extends"]["anyOf"][0]["enum"]
    assert offered == ["default", "invariant", "isolated", "strict"]


@pytest.mark.parametrize(
    ("what", "path"),
    [(what, path) for what, paths in FILES.items() for path in paths],
    ids=lambda value: str(value)[-40:],
)
def test_every_file_here_is_valid(what: str, path: Path) -> None:
    assert [error.message for error in VALIDATORS[what].iter_errors(read_yaml(path).data)] == []


@pytest.mark.parametrize(("what", "content"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_the_loader_takes_is_valid(what: str, content: dict[str, Any], tmp_path: Path) -> None:
    assert [error.message for error in VALIDATORS[what].iter_errors(content)] == []
    assert is_loaded(what, content, tmp_path)


@pytest.mark.parametrize(("what", "content"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_valid_the_loader_refuses(what: str, content: dict[str, Any], tmp_path: Path) -> None:
    assert not VALIDATORS[what].is_valid(content)
    assert not is_loaded(what, content, tmp_path)
