"""What `check` finds odd in tasks that load, and that it finds nothing odd in those that are meant as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.lint import inspect_suite

from .conftest import HEAD, LOOK, SHIP, SHIPPED, also_checks, cases, fault, oddities, only_looks

SUITES = Path(__file__).parents[3] / "tasks"
ODD: dict[str, tuple[dict[str, Any], str, str]] = {
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
        "every answer satisfies this check",
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
        "nothing that 'look' reads ever changes, so that nothing it says is ever stale",
    ),
    "something stale of a tool that reads nothing": (
        {
            "suite_tools": [SHIP, {**LOOK, "default": {"returns": "${args} ${call}"}}],
            "tools": ["ship", "look"],
            "faults": [{"kind": "stale", "tool": "look", "at": [2]}],
        },
        "tasks[0].faults[0]",
        "'look' reads neither world nor clock",
    ),
    "a latency of nothing": (
        fault(kind="latency", latency_s=0, at=[1]),
        "tasks[0].faults[0]",
        "this fault cannot fire: 0 seconds later is at once",
    ),
    "a fault that a variant's value switches off": (
        {**fault(when="vars.n > 5"), "matrix": {"n": [3]}},
        "tasks[0].faults[0]",
        "'vars.n > 5' is never true",
    ),
    "a world that must not change where nothing can": (
        only_looks(checks=[{"kind": "called", "tool": "look"}, {"kind": "unchanged"}]),
        "tasks[0].checks[1]",
        "no trajectory can fail this check: no tool of the task changes the world",
    ),
    "an exception that names nothing": (
        also_checks(kind="unchanged", **{"except": ["/stock", "/stokc"]}),
        "tasks[0].checks[1]",
        "'/stokc' names nothing in the world, and no effect makes it. Did you mean 'stock'?",
    ),
    "an exception below what is no mapping": (
        also_checks(kind="unchanged", **{"except": ["/orders/7/status"]})
        | {"world": {"stock": 1, "orders": {"8": {"status": "open"}}}},
        "tasks[0].checks[1]",
        "'/orders/7/status' names nothing in the world",
    ),
    "at most as many calls as there are turns": (
        also_checks(kind="called", tool="ship", at_least=0, at_most=4),
        "tasks[0].checks[1]",
        "no trajectory can fail this check: an episode has at most 4 turns, each with one call",
    ),
    "more calls than there are turns": (
        also_checks(kind="called", tool="ship", at_least=5),
        "tasks[0].checks[1]",
        "no trajectory can pass this check: an episode has at most 4 turns, each with one call",
    ),
    "an order of more calls than there are turns": (
        also_checks(kind="order", tools=["ship"] * 5),
        "tasks[0].checks[1]",
        "no trajectory can pass this check: an episode has at most 4 turns, each with one call",
    ),
    "a call that must not be made and never is": (
        also_checks(kind="not_called", tool="ship", where="false"),
        "tasks[0].checks[1]",
        "no trajectory can fail this check: 'false' is never true",
    ),
    "the same by a variant's value": (
        also_checks(kind="not_called", tool="ship", where="vars.n == 'y'") | {"matrix": {"n": ["x"]}},
        "tasks[0].checks[1]",
        """no trajectory can fail this check: "vars.n == 'y'" is never true""",
    ),
    "a call that must be made and never is": (
        also_checks(kind="called", tool="ship", where="1 > 2"),
        "tasks[0].checks[1]",
        "no trajectory can pass this check: '1 > 2' is never true",
    ),
    "an answer that excludes what it contains": (
        also_checks(kind="answer", contains=["not paid"], excludes=["Paid"]),
        "tasks[0].checks[1]",
        "no trajectory can pass this check: whoever says 'not paid' says 'Paid' too",
    ),
    "an answer that excludes the empty text": (
        also_checks(kind="answer", excludes=[""]),
        "tasks[0].checks[1]",
        "no trajectory can pass this check: every answer contains the empty text",
    ),
    "an answer that contains the empty text": (
        also_checks(kind="answer", contains=["", ""]),
        "tasks[0].checks[1]",
        "every answer satisfies this check",
    ),
}
MEANT: dict[str, dict[str, Any]] = {
    "a variable that an index reads": {"matrix": {"colour": ["red"]}, "prompt": "Ship ${vars['colour']}."},
    "a pattern that some texts lack": also_checks(kind="answer", pattern="^a?$"),
    "fewer turns than there are": also_checks(kind="turns", at_most=3),
    "variables that are read as a whole": {"matrix": {"colour": ["red"]}, "prompt": "Ship what is ${vars}."},
    "a variable that a macro on all of them reads": also_checks(kind="world", that="vars.exists(k, k == answer)")
    | {"matrix": {"colour": ["red"]}},
    "a variable that a world is": {
        "world": {"stock": "${vars.stock}"},
        "variants": {"a": {"stock": 3}},
    },
    "a variable in a condition alone": also_checks(kind="world", that="world.stock == vars.left")
    | {"matrix": {"left": [0]}},
    "an exception that an effect makes": also_checks(kind="unchanged", **{"except": ["/log/3"]})
    | cases({"match": {"item": "mug"}, "effects": [{"op": "add", "path": "/log", "value": []}]}),
    "an exception of a variant": also_checks(kind="unchanged", **{"except": ["/orders/${vars.id}"]})
    | {"matrix": {"id": ["seven"]}, "world": {"stock": 1, "orders": {"seven": 1}}},
    "as many calls where a turn may have several": also_checks(kind="called", tool="ship", at_least=0, at_most=4)
    | {"parallel_tool_calls": True},
    "fewer calls than there are turns": also_checks(kind="called", tool="ship", at_least=0, at_most=3),
    "a pattern beside texts": also_checks(kind="answer", pattern=".*", contains=["x"]),
    "an empty text beside another": also_checks(kind="answer", contains=["", "x"]),
    "a fault of an argument or of something else": fault(when="call > 1 || has(args.other)"),
    "something stale by the clock": only_looks(
        suite_tools=[{**LOOK, "default": {"returns": "${clock}", "latency_s": 1}}],
        faults=[{"kind": "stale", "tool": "look", "at": [2]}],
    ),
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


def test_a_fault_of_an_argument_that_does_not_exist_may_fire_all_the_same(tmp_path: Path) -> None:
    found = oddities(tmp_path, **fault(when="call > 1 || args.itme == 'mug'"))
    assert [message for _, message in found if "cannot fire" in message] == []
    assert len(found) == 1


AGENTS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "that must call tools and can never end": (
        {"finish_tool": None},
        ("agent.finish_tool", "every turn must call a tool and none ends the episode"),
    ),
    "without a factory": ({"graph": "package.module"}, ("agent.graph", "write it as package.module:factory")),
    "without a module": ({"graph": ":factory"}, ("agent.graph", "write it as package.module:factory")),
}


@pytest.mark.parametrize(("agent", "expected"), AGENTS.values(), ids=AGENTS)
def test_an_agent_that_can_hardly_be_meant_is_told(
    tmp_path: Path, agent: dict[str, Any], expected: tuple[str, str]
) -> None:
    ((key, message),) = oddities(tmp_path, head={**HEAD, "agent": {**HEAD["agent"], **agent}})
    assert key == expected[0]
    assert expected[1] in message


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param({"finish_tool": None, "tool_choice": "auto"}, id="may-answer"),
        pytest.param({"finish_tool": None, "graph": "package.module:factory"}, id="ends-by-itself"),
    ],
)
def test_an_agent_that_ends_is_not_mentioned(tmp_path: Path, agent: dict[str, Any]) -> None:
    assert oddities(tmp_path, head={**HEAD, "agent": {**HEAD["agent"], **agent}}) == []


@pytest.mark.parametrize("name", ["starter", "toolsuite"])
def test_the_suites_that_ship_have_nothing_odd(name: str) -> None:
    assert inspect_suite(SUITES / name).warnings == ()
