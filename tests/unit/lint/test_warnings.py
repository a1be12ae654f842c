"""What `check` finds odd in a suite that loads, and that it finds nothing odd in one that is meant as it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.lint import inspect_suite

SUITES = Path(__file__).parents[3] / "tasks"
HEAD: dict[str, Any] = {
    "name": "demo",
    "description": "A suite.",
    "agent": {
        "system_prompt": "Help.",
        "tool_choice": "required",
        "max_turns": 4,
        "max_tokens": 10,
        "parallel_tool_calls": False,
        "finish_tool": "finish",
    },
}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"item": {"type": "string", "enum": ["lamp", "mug"]}},
    "additionalProperties": False,
}
SHIP: dict[str, Any] = {
    "name": "ship",
    "description": "Ships.",
    "parameters": PARAMETERS,
    "cases": [{"when": "world.stock == 0", "error": "none left"}],
    "default": {"returns": "${args.item}", "effects": [{"op": "replace", "path": "/stock", "value": 0}]},
}
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object"},
    "default": {"returns": "${world.stock}"},
}
SHIPPED = {"kind": "called", "tool": "ship", "arguments": {"item": "lamp"}}
TASK: dict[str, Any] = {
    "name": "send",
    "prompt": "Ship a lamp.",
    "tools": ["ship"],
    "world": {"stock": 1},
    "checks": [SHIPPED],
}


def oddities(folder: Path, *, suite_tools: Any = (SHIP,), **task: Any) -> list[tuple[str, str]]:
    """(key, message) of every warning about a suite of these tools and one task with these fields."""
    content = {"tools": list(suite_tools), "tasks": [{**TASK, **task}]}
    (folder / "suite.yaml").write_text(json.dumps(HEAD), encoding="utf-8")
    (folder / "a.yaml").write_text(json.dumps(content, indent=1), encoding="utf-8")
    return [(warning.key, warning.message) for warning in inspect_suite(folder).warnings]


def cases(*given: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A suite whose tool has these cases."""
    return {"suite_tools": [{**SHIP, "cases": given, **fields}]}


def fault(**fields: Any) -> dict[str, Any]:
    """A task with this fault of its tool."""
    return {"faults": [{"kind": "malformed", "tool": "ship", **fields}]}


def also_checks(**fields: Any) -> dict[str, Any]:
    """A task with this check behind one that can fail and pass."""
    return {"checks": [SHIPPED, fields]}


def only_looks(**fields: Any) -> dict[str, Any]:
    """A task whose tool changes nothing."""
    return {"suite_tools": [LOOK], "tools": ["look"], "checks": [{"kind": "called", "tool": "look"}], **fields}


MUG = {"match": {"item": "mug"}, "returns": 1}
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
    "a variable that nothing reads": (
        {"variants": {"one": {"colour": "red"}}},
        "tasks[0].variants",
        "nothing reads the variable 'colour'",
    ),
    "a variable of a matrix that nothing reads": (
        {"matrix": {"colour": ["red"]}},
        "tasks[0].matrix.colour",
        "nothing reads the variable 'colour'",
    ),
    "checks that an idle agent passes": (
        {"checks": [{"kind": "world", "that": "world.stock == 1"}]},
        "tasks[0].checks",
        "an agent that does nothing passes (variant 'base')",
    ),
    "a check by which an idle agent is not graded": (
        also_checks(kind="world", that="world.log == []"),
        "tasks[0].checks[1]",
        "an agent that does nothing is not graded, instead of failed: ",
    ),
    "a world check of the start alone": (
        also_checks(kind="world", that="start.stock == 1"),
        "tasks[0].checks[1]",
        "no trajectory can fail this check: it reads neither world nor answer",
    ),
    "a world check of a world that no tool changes": (
        only_looks(checks=[{"kind": "world", "that": "world.stock == 2"}]),
        "tasks[0].checks[0]",
        "no trajectory can pass this check: no tool of the task changes the world",
    ),
    "more turns than there are": (
        also_checks(kind="turns", at_most=4),
        "tasks[0].checks[1]",
        "an episode has at most 4 turns anyway",
    ),
    "more tokens than there are": (
        also_checks(kind="tokens", at_most=40),
        "tasks[0].checks[1]",
        "4 turns of 10 tokens are no more",
    ),
    "an answer that every text is": (
        also_checks(kind="answer", pattern=".*"),
        "tasks[0].checks[1]",
        "every answer satisfies it",
    ),
    "a call of a tool that has only errors": (
        cases(default={"error": "closed"}),
        "tasks[0].checks[0]",
        "no trajectory can pass this check: 'ship' has only errors to give",
    ),
    "a call with an argument that does not exist": (
        also_checks(kind="called", tool="ship", arguments={"itme": "mug"}),
        "tasks[0].checks[1]",
        "'ship' has no argument 'itme'",
    ),
    "calls together where a turn has one": (
        also_checks(kind="together", tools=["ship", "ship"]),
        "tasks[0].checks[1]",
        "a turn may call one tool only; set parallel_tool_calls for the task",
    ),
    "a fault that is never true": (fault(when="false"), "tasks[0].faults[0]", "'false' is never true"),
    "a fault of an argument that does not exist": (
        fault(when="args.itme == 'mug'"),
        "tasks[0].faults[0]",
        "reads args.itme, which no call can have",
    ),
    "a fault after the last turn": (
        fault(at=[5]),
        "tasks[0].faults[0]",
        "the episode ends after 4 turns, before call 5 of 'ship'",
    ),
    "a fault at no call": (
        {**fault(at=[1, 3], every=2), "parallel_tool_calls": True},
        "tasks[0].faults[0]",
        "none of [1, 3] is a multiple of 2",
    ),
    "a fault behind one at the same calls": (
        {"faults": [{"kind": "malformed", "tool": "ship", "every": 1}, {"kind": "stale", "tool": "ship", "at": [2]}]},
        "tasks[0].faults[1]",
        "fault 0 meets the same calls before",
    ),
    "something stale where nothing changes": (
        only_looks(faults=[{"kind": "stale", "tool": "look", "at": [2]}]),
        "tasks[0].faults[0]",
        "no tool of the task changes the world, so nothing is ever stale",
    ),
}
MEANT: dict[str, dict[str, Any]] = {
    "nothing beside the usual": {},
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
    "a variable that an index reads": {"matrix": {"colour": ["red"]}, "prompt": "Ship ${vars['colour']}."},
    "a pattern that some texts lack": also_checks(kind="answer", pattern="^a?$"),
    "fewer turns than there are": also_checks(kind="turns", at_most=3),
    "an error that must be met": {
        **cases(default={"error": "closed"}),
        "checks": [{"kind": "called", "tool": "ship", "outcome": "error"}],
    },
    "a late call where a turn may have several": {**fault(at=[9]), "parallel_tool_calls": True},
    "a fault behind one that ends": {
        "faults": [
            {"kind": "malformed", "tool": "ship", "every": 1, "times": 1},
            {"kind": "stale", "tool": "ship", "at": [2]},
        ]
    },
}


@pytest.mark.parametrize(("suite", "key", "words"), ODD.values(), ids=ODD)
def test_what_can_hardly_be_meant_is_told_with_its_place(
    tmp_path: Path, suite: dict[str, Any], key: str, words: str
) -> None:
    assert [message for found, message in oddities(tmp_path, **suite) if found == key and words in message]


@pytest.mark.parametrize("suite", MEANT.values(), ids=MEANT)
def test_what_may_be_meant_is_not_mentioned(tmp_path: Path, suite: dict[str, Any]) -> None:
    assert oddities(tmp_path, **suite) == []


def test_a_warning_stands_at_its_line_and_once_for_all_variants(tmp_path: Path) -> None:
    odd = {"kind": "turns", "at_most": 4}
    oddities(tmp_path, checks=[SHIPPED, odd], prompt="Ship ${vars.n}.", matrix={"n": [1, 2, 3]})
    (warning,) = inspect_suite(tmp_path).warnings
    line = (tmp_path / "a.yaml").read_text(encoding="utf-8").split("\n")[(warning.line or 0) - 1]
    assert (warning.path, line.strip()) == (tmp_path / "a.yaml", "{")


@pytest.mark.parametrize("name", ["starter", "toolsuite"])
def test_the_suites_that_ship_have_nothing_odd(name: str) -> None:
    assert inspect_suite(SUITES / name).warnings == ()
