"""What `check` says of every trajectory is true of any that a player can make."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import strategies
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from players import perform

from agenteval import expressions
from agenteval.interchange.yaml_text import to_yaml
from agenteval.lint.checks import check_warnings
from agenteval.lint.faults import fault_warnings
from agenteval.lint.oddity import Oddity
from agenteval.lint.patterns import matches_every_text
from agenteval.spec import TaskVariant, load_suite
from agenteval.tools import fault_label

from .conftest import HEAD

PATTERNS = st.builds(
    "{}{}".format,
    st.sampled_from(["", "", "(?s)", "(?m)", "(?i)"]),
    st.lists(
        st.sampled_from(
            r". .* .*? a a* a? [^a]* [\s\S]* (a|) (?:b|c)* ^ ^ $ $ \A \Z \b \B (?!a) (?=a) (?<!a) (?<=b) | \n* (a)?+ "
            r"\1? (?>a|) \$ \^ x{0,2} [^\]]* (.|\n)*".split(" ")
        ),
        max_size=4,
    ).map("".join),
).filter(lambda pattern: expressions.pattern_problem(pattern) is None)
TEXTS = st.text("aab x7.\nA$^]", max_size=8)


@settings(max_examples=200)
@given(PATTERNS, st.lists(TEXTS, min_size=5, max_size=10))
@example(r"(?m)^.*$", ["a\n", "\n", "\na\n"])
def test_a_pattern_that_matches_every_text_matches_any(pattern: str, texts: list[str]) -> None:
    if matches_every_text(pattern):
        assert [text for text in texts if not expressions.pattern_matches(pattern, text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        ".*",
        "x*",
        "a|",
        "(?i)x?",
        "x*$",
        r"x*\Z",
        "(?!.*error)",
        "^",
        "^x*",
        r"\A.*",
        "^[^!]*",
        "(?s)^.*$",
        "(?m)^.*$",
        r"^[\s\S]*$",
        "(a(b)?)*",
        "[^a]*",
        "^|a",
        r"(?:\$|\^)*",
    ],
)
def test_a_pattern_that_nothing_lacks_is_known(pattern: str) -> None:
    assert matches_every_text(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        ".",
        "x+",
        "^$",
        "^.*$",
        "^[^!]*$",
        "^(?!.*error)",
        r"^(?!.*\d{4})",
        r"x*\b",
        r"\bx*",
        "(?<!x)",
        "(?<=x)|a",
        r"^(a)?+(?(1)b|)",
        r"^x*\$",
        "(?s)^.{0,500}$",
        "^a?$",
    ],
)
def test_a_pattern_that_some_text_lacks_or_may_lack_is_not_taken_for_one(pattern: str) -> None:
    assert not matches_every_text(pattern)


TOOLS = ["a", "b"]
WHERE = st.sampled_from(["true", "false", "1 > 2", "vars.n > 5", "vars.n < 5", "turn > 1", "has(args.key)"])
COUNTS = st.integers(1, 4)
CHECKS = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.just("answer"), "pattern": PATTERNS},
        optional={"contains": st.lists(TEXTS, max_size=2), "excludes": st.lists(TEXTS, max_size=1)},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("answer"), "contains": st.lists(TEXTS, min_size=1, max_size=2)},
        optional={"excludes": st.lists(TEXTS, max_size=2)},
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("world"),
            "that": st.sampled_from(
                ["world.n == 0", "start.n >= 0", "world == start", "vars.n == 3", "answer == ''", "has(world.moved)"]
            ),
        }
    ),
    st.just({"kind": "unchanged"}),
    st.fixed_dictionaries({"kind": st.just("unchanged"), "except": st.lists(st.sampled_from(["/n", "/gone"]))}),
    st.fixed_dictionaries(
        {"kind": st.just("called"), "tool": st.sampled_from(TOOLS), "at_least": st.just(0), "at_most": COUNTS},
        optional={"where": WHERE},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("called"), "tool": st.sampled_from(TOOLS)},
        optional={
            "where": WHERE,
            "at_least": COUNTS,
            "outcome": st.sampled_from(["success", "error", "any"]),
            "arguments": st.sampled_from([{}, {"key": "a"}, {"key": 5}, {"other": 1}]),
        },
    ),
    st.fixed_dictionaries({"kind": st.just("not_called"), "tool": st.sampled_from(TOOLS)}, optional={"where": WHERE}),
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["order", "together"]),
            "tools": st.lists(st.sampled_from(TOOLS), min_size=2, max_size=5),
        }
    ),
    st.fixed_dictionaries({"kind": st.just("turns"), "at_most": COUNTS}),
)
CALLS = st.tuples(
    st.sampled_from(TOOLS),
    st.sampled_from([{}, {"key": "a"}, {"key": "b", "value": 1}, {"key": "a", "other": 1}, {"key": 5}]),
).map(list)


@st.composite
def played(draw: st.DrawFn) -> dict[str, Any]:
    """A suite's file, the agent's settings, and what a player does in it."""
    turns, is_parallel = draw(st.integers(1, 4)), draw(st.booleans())
    task = {
        "name": "t",
        "prompt": "Go.",
        "tools": TOOLS,
        "world": draw(strategies.WORLDS),
        "variants": {"v": {"n": 3, "x": "a"}},
        "checks": draw(st.lists(CHECKS, min_size=1, max_size=4)),
        "faults": draw(st.lists(strategies.fault_fields(TOOLS), max_size=2)),
    }
    turn = st.lists(CALLS, min_size=1, max_size=3) if is_parallel else CALLS
    script = draw(st.lists(turn, max_size=turns))
    if len(script) < turns and draw(st.booleans()):
        script = [*script, ["finish", {"answer": draw(TEXTS)}]]
    agent = {**HEAD["agent"], "max_turns": turns, "parallel_tool_calls": is_parallel}
    tools = [draw(strategies.tool_fields(name)) for name in TOOLS]
    return {"agent": agent, "file": {"tools": tools, "tasks": [task]}, "script": script}


def variant_of(folder: Path, case: dict[str, Any]) -> TaskVariant:
    (folder / "suite.yaml").write_text(json.dumps({**HEAD, "agent": case["agent"]}), encoding="utf-8")
    (folder / "a.yaml").write_text(to_yaml(case["file"]), encoding="utf-8")
    return load_suite(folder).variants[0]


def warned(oddities: Iterable[Oddity], words: str) -> set[int]:
    """Places of the checks or faults about which this is said."""
    return {int(key[1]) for key, message in oddities if words in message}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(played())
def test_a_player_refutes_nothing_that_is_said_of_every_trajectory(tmp_path: Path, case: dict[str, Any]) -> None:
    variant = variant_of(tmp_path, case)
    performance = perform(variant, case["script"])
    said = list(check_warnings(variant))
    failed = {grade.check for grade in performance.grades if grade.passed is False}
    passed = {grade.check for grade in performance.grades if grade.passed}
    assert not failed & warned(said, "no trajectory can fail")
    assert not passed & warned(said, "no trajectory can pass")
    assert not performance.answers or not failed & warned(said, "every answer satisfies")


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(played())
def test_a_fault_that_fires_was_not_said_to_be_unable_to(tmp_path: Path, case: dict[str, Any]) -> None:
    variant = variant_of(tmp_path, case)
    fired = {call.fault for call in perform(variant, case["script"]).calls} - {None}
    labels = {fault_label(place, fault.kind): place for place, fault in enumerate(variant.faults)}
    assert not {labels[label] for label in fired} & warned(fault_warnings([variant]), "cannot fire")
