"""`${…}` in the fields of tasks: numbers keep their type, `$${` stays as it is, and each name has its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.spec import AnswerCheck, CalledCheck, TruncatedFault
from agenteval.tools import State, ToolKit, call_tool

from .conftest import load, one_problem, variants_of


def rendered(folder: Path, check: dict[str, Any], **variables: Any) -> Any:
    """A check with the variables of its task put in."""
    (variant,) = variants_of(folder, checks=[check], variants={"v": variables})
    return variant.checks[0]


@pytest.mark.parametrize(
    ("check", "field", "value"),
    [
        pytest.param({"kind": "answer", "number": "${12 - vars.n}"}, "number", 7, id="number"),
        pytest.param({"kind": "answer", "number": "${vars.f * 2.0}"}, "number", 5.0, id="fraction"),
        pytest.param({"kind": "answer", "number": 1, "tolerance": "${vars.f}"}, "tolerance", 2.5, id="tolerance"),
        pytest.param({"kind": "answer", "number": 1, "unit": ["${vars.t}s"]}, "unit", ("cups",), id="unit"),
        pytest.param({"kind": "answer", "one_of": ["${vars.t}"]}, "one_of", ("cup",), id="one-of"),
        pytest.param({"kind": "answer", "contains": ["${vars.n}"]}, "contains", ("5",), id="number-as-text"),
        pytest.param({"kind": "answer", "excludes": ["${vars.f}"]}, "excludes", ("2.5",), id="fraction-as-text"),
        pytest.param({"kind": "answer", "one_of": ["${vars.n > 4}"]}, "one_of", ("true",), id="truth-as-text"),
        pytest.param({"kind": "answer", "contains": ["${vars.l}"]}, "contains", ("[1]",), id="list-as-text"),
        pytest.param({"kind": "answer", "number": 1, "unit": ["${vars.n}"]}, "unit", ("5",), id="number-as-unit"),
        pytest.param({"kind": "answer", "pattern": "${vars.n}"}, "pattern", "5", id="number-as-pattern"),
        pytest.param({"kind": "answer", "pattern": "${vars.dot}"}, "pattern", "a.b", id="pattern-put-in-as-it-is"),
        pytest.param(
            {"kind": "unchanged", "except": ["/m/${vars.path}/x", "/${vars.n}", "/$${a"]},
            "excepted",
            ("/m/a~1b~0c/x", "/5", "/${a"),
            id="pointer",
        ),
        pytest.param({"kind": "answer", "contains": ["n=${vars.n}"]}, "contains", ("n=5",), id="inside-a-text"),
        pytest.param({"kind": "answer", "pattern": "^${vars.t}{2}$"}, "pattern", "^cup{2}$", id="pattern"),
        pytest.param({"kind": "called", "tool": "look", "at_least": "${vars.n}"}, "at_least", 5, id="at-least"),
        pytest.param({"kind": "called", "tool": "look", "at_most": "${vars.n + 1}"}, "at_most", 6, id="at-most"),
        pytest.param({"kind": "turns", "at_most": "${vars.n}"}, "at_most", 5, id="turns"),
        pytest.param({"kind": "tokens", "at_most": "${vars.n * 100}"}, "at_most", 500, id="tokens"),
        pytest.param(
            {"kind": "called", "tool": "look", "arguments": {"a": {"b": ["${vars.n}", "${vars.l}"]}}},
            "arguments",
            {"a": {"b": [5, [1]]}},
            id="arguments",
        ),
    ],
)
def test_variables_are_put_into_a_check(tmp_path: Path, check: dict[str, Any], field: str, value: Any) -> None:
    variables = {"n": 5, "f": 2.5, "t": "cup", "l": [1], "dot": "a.b", "path": "a/b~c"}
    found = getattr(rendered(tmp_path, check, **variables), field)
    assert found == value
    assert type(found) is type(value) or isinstance(found, float)


@pytest.mark.parametrize(
    ("check", "variables", "words"),
    [
        pytest.param({"kind": "turns", "at_most": "${vars.n}"}, {"n": 0}, "at_most", id="below-the-least"),
        pytest.param({"kind": "turns", "at_most": "${vars.n}"}, {"n": 1.5}, "at_most", id="fraction-as-count"),
        pytest.param({"kind": "turns", "at_most": "${vars.n}"}, {"n": "3"}, "at_most", id="text-as-count"),
        pytest.param({"kind": "turns", "at_most": "${vars.n}0"}, {"n": 3}, "at_most", id="text-around-a-count"),
        pytest.param({"kind": "answer", "number": "${vars.n}"}, {"n": "3"}, "number", id="text-as-number"),
        pytest.param({"kind": "answer", "number": "${vars.n}"}, {"n": True}, "number", id="true-as-number"),
        pytest.param(
            {"kind": "answer", "number": 1, "tolerance": "${vars.n}"}, {"n": -1}, "must be 0 or more", id="tolerance"
        ),
        pytest.param({"kind": "answer", "pattern": "${vars.n}"}, {"n": "("}, "no regular expression", id="pattern"),
        pytest.param(
            {"kind": "answer", "pattern": "$${vars.n}("}, {"n": "x"}, "no regular expression", id="pattern-plain"
        ),
        pytest.param({"kind": "answer", "contains": ["${vars.n}"]}, {"n": None}, "contains", id="null-as-text"),
        pytest.param(
            {"kind": "called", "tool": "look", "at_least": "${vars.n}", "at_most": 1},
            {"n": 2},
            "only fail",
            id="counts",
        ),
        pytest.param({"kind": "turns", "at_most": "${vars.n / 0}"}, {"n": 2}, "'vars.n / 0' failed", id="arithmetic"),
    ],
)
def test_what_is_wrong_with_the_values_put_in_is_found_when_the_suite_is_loaded(
    tmp_path: Path, check: dict[str, Any], variables: dict[str, Any], words: str
) -> None:
    key, message = one_problem(tmp_path, task={"checks": [check], "variants": {"v": variables}})
    assert key == "tasks[0]"
    assert words in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", ["${vars.n}"]),
        ("every", "${vars.n}"),
        ("times", "${vars.n}"),
        ("keep", "${vars.n}"),
    ],
)
def test_variables_are_put_into_a_faults_numbers(tmp_path: Path, field: str, value: Any) -> None:
    fault = {"kind": "truncated", "tool": "look", "at": [1], "keep": 4, field: value}
    (variant,) = variants_of(tmp_path, faults=[fault], variants={"v": {"n": 3}})
    (found,) = variant.faults
    assert isinstance(found, TruncatedFault)
    assert getattr(found, field) in (3, (3,))


def test_a_faults_message_is_put_together_at_the_call(tmp_path: Path) -> None:
    fault = {"kind": "error", "tool": "look", "every": "${vars.n}", "message": "${vars.n}: ${args.x} $${x} ${call}"}
    (variant,) = variants_of(tmp_path, faults=[fault], variants={"v": {"n": 1}})
    state = State.begin(world=variant.world, clock="2026-01-15T09:00:00Z")
    assert call_tool(ToolKit.of(variant), "look", '{"x": 7}', state).error == "1: 7 ${x} 1"


def test_a_dollar_twice_is_a_plain_one_everywhere(tmp_path: Path) -> None:
    (variant,) = variants_of(
        tmp_path,
        prompt="Pay $${5} or $5 or ${vars.n}$.",
        follow_ups=["$${vars.n}"],
        world={"text": "$${vars.n}", "${vars.n}": ["$${"]},
        checks=[
            {"kind": "answer", "contains": ["$${vars.n}"]},
            {"kind": "called", "tool": "look", "arguments": {"x": "$${vars.n}"}},
        ],
        variants={"v": {"n": 5}},
    )
    assert variant.prompt == "Pay ${5} or $5 or 5$."
    assert variant.follow_ups == ("${vars.n}",)
    assert variant.world == {"text": "${vars.n}", "${vars.n}": ["${"]}
    answer, called = variant.checks
    assert isinstance(answer, AnswerCheck)
    assert isinstance(called, CalledCheck)
    assert (answer.contains, called.arguments) == (("${vars.n}",), {"x": "${vars.n}"})


def test_what_a_variable_holds_is_put_in_as_it_is(tmp_path: Path) -> None:
    (variant,) = variants_of(
        tmp_path,
        prompt="${vars.t}",
        world={"t": "${vars.t}", "in": "x${vars.t}"},
        checks=[{"kind": "answer", "contains": ["${vars.t}"]}],
        variants={"v": {"t": "${vars.secret} ${"}},
    )
    assert (variant.prompt, variant.world["t"], variant.world["in"]) == (
        "${vars.secret} ${",
        "${vars.secret} ${",
        "x${vars.secret} ${",
    )
    assert variant.checks[0].contains == ("${vars.secret} ${",)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("where", "known"),
    [
        pytest.param({"task": {"prompt": "${args.x}"}}, "vars", id="prompt"),
        pytest.param({"task": {"world": {"a": [{"b": "${world.x}"}]}}}, "vars", id="world"),
        pytest.param({"task": {"checks": [{"kind": "answer", "contains": ["${world.x}"]}]}}, "vars", id="check"),
        pytest.param({"task": {"checks": [{"kind": "turns", "at_most": "${arg.x}"}]}}, "vars", id="number"),
        pytest.param(
            {"task": {"checks": [{"kind": "world", "that": "wrld.x == 1"}]}}, "world, start, answer, vars", id="that"
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "called", "tool": "look", "where": "world.x == 1"}]}},
            "args, result, turn, vars",
            id="where",
        ),
        pytest.param({"tool": {"cases": [{"when": "vars.x == 1"}]}}, "args, world, clock, call", id="when"),
        pytest.param({"tool": {"default": {"returns": "${vars.x}"}}}, "args, world, clock, call", id="returns"),
        pytest.param({"tool": {"default": {"error": "${vars.x}"}}}, "args, world, clock, call", id="error"),
        pytest.param(
            {"task": {"faults": [{"kind": "stale", "tool": "look", "when": "answer == 1"}]}},
            "args, world, clock, call, vars",
            id="fault",
        ),
    ],
)
def test_a_name_that_is_not_known_there_is_answered_with_those_that_are(
    tmp_path: Path, where: dict[str, Any], known: str
) -> None:
    _, message = one_problem(tmp_path, **where)
    assert f" here; known are {known}." in message


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        pytest.param("world.a == ${vars.x}", "a condition is CEL as it stands, without ${…}", id="template"),
        pytest.param("wrld.a == 1", "there is no 'wrld' here; known are", id="name"),
        pytest.param("wrld.a == 1", "Did you mean 'world'?", id="nearest-name"),
        pytest.param("world.a.lenght() == 1", "there is no function 'lenght'", id="method"),
        pytest.param("siz(world.a) == 1", "there is no function 'siz'. Did you mean 'size'?", id="nearest-function"),
        pytest.param("now() == 1", "there is no function 'now'", id="clock"),
        pytest.param("agenteval_ordered(world.a) == 1", "there is no function 'agenteval_ordered'", id="our-own"),
        pytest.param("world.a ==", "it ends too early", id="end"),
        pytest.param("world.a = 1", "'=' is not expected at character 9", id="assignment"),
        pytest.param("world.a == 'x", "is not expected at character", id="quote"),
        pytest.param("", "not a CEL expression", id="empty"),
        pytest.param("world.a == 1" + " || true" * 300, "longer than 2000 characters", id="long"),
        pytest.param("world.a.all(x, y > x)", "there is no 'y' here", id="name-in-a-macro"),
    ],
)
def test_a_condition_that_is_none_is_explained(tmp_path: Path, condition: str, words: str) -> None:
    key, message = one_problem(tmp_path, task={"checks": [{"kind": "world", "that": condition}]})
    assert key == "tasks[0].checks[0].that"
    assert words in message


@pytest.mark.parametrize(
    "condition",
    [
        "world.a.all(x, x > 0)",
        "world.a.map(x, world.b.map(y, x + y)).size() == 1",
        "world.items.exists(k, world.items[k].done)",
        "has(world.a) && has(start.a)",
        "answer.matches('^[0-9]+$') || vars.any",
        "timestamp('2026-01-15T09:00:00Z') < timestamp(world.at)",
        "type(world.a) == int",
        "[1, 2].map(world, world).size() == 2",
        "world.a.existsOne(x, x == 1)",
    ],
)
def test_a_condition_may_say_all_that_cel_can(tmp_path: Path, condition: str) -> None:
    assert load(tmp_path, task={"checks": [{"kind": "world", "that": condition}]})
