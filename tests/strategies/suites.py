"""Hypothesis strategies for suites as their files say them, and for what a model can call their tools with."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from strategies.records import JSON, REALS

PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="$"), max_size=8)
"""Text without the sign that begins a template."""
TEMPLATES = st.lists(
    PLAIN | st.sampled_from(["$ ", "$${", "${vars.x}", "${vars.n}", "${vars.n + 1}"]),
    max_size=4,
).map("".join)
"""Texts with a task's variables in them."""
CHECK_TEXTS = TEMPLATES.map("t{}".format)
"""Texts that stay texts whatever the variables are."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | REALS | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=5,
)
"""JSON values without templates."""
WORLDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"n": st.integers(-9, 9), "list": st.lists(VALUES, max_size=3), "map": st.dictionaries(PLAIN, VALUES, max_size=4)},
    optional={"text": PLAIN, "extra": VALUES},
)
CALL_TEMPLATES = st.sampled_from(
    [
        "${args}",
        "${world}",
        "${world.map}",
        "${world.map.map(k, k)}",
        "${world.map.map(k, [k, world.map[k]])}",
        "${world.list.filter(v, v != null)}",
        "n=${world.n} call=${call} at ${clock}",
        "${world.n + call}",
        "${has(args.key) ? args.key : 'none'}",
        "${timestamp(clock) + duration('90s')}",
        "${world.map.exists(k, world.map[k] == args.value)}",
        "${join(world.map.map(k, k), ',')}",
        "${args.key}",
        "${world.absent}",
        "$${plain}",
    ]
)
CALL_VALUES = st.recursive(
    CALL_TEMPLATES | PLAIN | st.integers(-9, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PLAIN, inner, max_size=2),
    max_leaves=3,
)
CONDITIONS = st.sampled_from(
    [
        "true",
        "call > 1",
        "has(args.key)",
        "args.key in world.map",
        "world.n > 0",
        "world.map.exists(k, k == 'a')",
        "size(world.list) < 2",
        "timestamp(clock) > timestamp('2026-01-15T09:00:01Z')",
        "args.key == args.value",
    ]
)
EFFECTS = st.sampled_from(
    [
        {"op": "add", "path": "/list/-", "value": "${args}"},
        {"op": "add", "path": "/map/${args.key}", "value": "${args.value}"},
        {"op": "replace", "path": "/n", "value": "${world.n + 1}"},
        {"op": "remove", "path": "/list/0"},
        {"op": "move", "from": "/list/0", "path": "/moved"},
        {"op": "copy", "from": "/map", "path": "/copied"},
        {"op": "test", "path": "/n", "value": 0},
        {"op": "remove", "path": "/absent"},
    ]
)
PARAMETERS = st.sampled_from(
    [
        {"type": "object"},
        {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
        {"type": "object", "properties": {"key": {}, "value": {"type": "integer"}}, "additionalProperties": False},
    ]
)
LATENCIES = st.sampled_from([0, 0.5, 1, 90])


def answers(*, conditional: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Cases of a tool, or its default."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        "match": st.dictionaries(st.sampled_from(["key", "value"]), VALUES, max_size=1),
        "when": CONDITIONS,
    }
    shared = {"latency_s": LATENCIES, **(fields if conditional else {})}
    effects = st.lists(EFFECTS, max_size=2)
    given = st.fixed_dictionaries({"returns": CALL_VALUES}, optional=shared)
    changing = st.fixed_dictionaries({"returns": CALL_VALUES, "effects": effects}, optional=shared)
    refusing = st.fixed_dictionaries({"error": CALL_TEMPLATES | PLAIN}, optional=shared)
    return st.one_of(given, changing, changing, refusing)


def tool_fields(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """A tool of this name, as its file says it."""
    return st.fixed_dictionaries(
        {
            "name": st.just(name),
            "description": PLAIN,
            "parameters": PARAMETERS,
            "default": answers(conditional=False),
        },
        optional={"cases": st.lists(answers(conditional=True), max_size=2)},
    )


def fault_fields(tools: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """A fault of one of these tools, as its file says it."""
    own: dict[str, dict[str, st.SearchStrategy[Any]]] = {
        "error": {"message": CALL_TEMPLATES | PLAIN},
        "timeout": {"after_s": LATENCIES, "applied": st.booleans()},
        "malformed": {},
        "truncated": {"keep": st.integers(0, 12)},
        "stale": {},
        "latency": {"latency_s": LATENCIES},
    }
    times: dict[str, st.SearchStrategy[Any]] = {
        "at": st.lists(st.integers(1, 3), min_size=1, max_size=2),
        "every": st.integers(1, 2),
        "when": CONDITIONS,
    }
    return st.sampled_from(sorted(own)).flatmap(
        lambda kind: st.sampled_from(sorted(times)).flatmap(
            lambda time: st.fixed_dictionaries(
                {"kind": st.just(kind), "tool": st.sampled_from(tools), time: times[time], **own[kind]},
                optional={"times": st.integers(1, 2)},
            )
        )
    )


_RIGHT = st.fixed_dictionaries(
    {"key": PLAIN | st.sampled_from("ab")}, optional={"value": st.none() | st.integers(-9, 9)}
).map(lambda value: json.dumps(value, ensure_ascii=False))
ARGUMENTS = st.one_of(
    *[_RIGHT] * 9,
    st.just("{}"),
    JSON.map(json.dumps),
    st.text(st.characters(), max_size=12),
    st.text('{}[]":,\\ udnaN01e-.', max_size=20),
)
"""What a model can write: right, wrong, and no JSON at all."""


@st.composite
def mock_cases(draw: st.DrawFn) -> dict[str, Any]:
    """Episodes of calls, as `mock_cases` plays them."""
    names = ["a", "b"]
    calls = st.tuples(st.sampled_from([*names * 4, "gone"]), ARGUMENTS).map(list)
    return {
        "tools": [draw(tool_fields(name)) for name in names],
        "faults": draw(st.lists(fault_fields(names), max_size=2)),
        "vars": {"x": draw(VALUES), "n": 1},
        "world": draw(WORLDS),
        "calls": draw(st.lists(calls, min_size=1, max_size=6)),
    }


def check_fields(tools: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """A check, as its file says it."""
    numbers = st.integers(1, 9) | st.sampled_from(["${vars.n}", "${vars.n + 1}"])
    return st.one_of(
        st.fixed_dictionaries({"kind": st.just("answer"), "contains": st.lists(CHECK_TEXTS, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"kind": st.just("answer"), "number": numbers}, optional={"tolerance": REALS.map(abs)}),
        st.fixed_dictionaries(
            {"kind": st.just("called"), "tool": st.sampled_from(tools)},
            optional={"arguments": st.dictionaries(PLAIN, TEMPLATES | VALUES, max_size=2), "at_least": numbers},
        ),
        st.fixed_dictionaries(
            {"kind": st.just("world"), "that": st.sampled_from(["world.n > vars.n", "answer == ''"])}
        ),
        st.fixed_dictionaries({"kind": st.sampled_from(["turns", "tokens"]), "at_most": numbers}),
    )


def task_fields(name: str, tools: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """A task of this name that has all of these tools, as its file says it."""
    variables = st.fixed_dictionaries({"x": VALUES, "n": st.integers(1, 9)})
    return st.fixed_dictionaries(
        {
            "name": st.just(name),
            "prompt": TEMPLATES,
            "tools": st.just(tools),
            "variants": st.dictionaries(st.text("abc1", min_size=1, max_size=3), variables, min_size=1, max_size=2),
            "checks": st.lists(check_fields(tools), min_size=1, max_size=2),
        },
        optional={
            "world": st.dictionaries(PLAIN, TEMPLATES | VALUES, max_size=3),
            "follow_ups": st.lists(TEMPLATES, max_size=2),
            "faults": st.lists(fault_fields(tools), max_size=2),
            "tags": st.lists(PLAIN, max_size=2),
            "matrix": st.fixed_dictionaries(
                {}, optional={"m": st.lists(st.integers(0, 9), min_size=1, max_size=2, unique=True)}
            ),
            "max_turns": st.integers(1, 200),
            "parallel_tool_calls": st.booleans(),
        },
    )


@st.composite
def suite_files(draw: st.DrawFn) -> dict[str, Any]:
    """A file of tools and tasks, as its YAML says it."""
    names = ["a", "b"]
    return {
        "tools": [draw(tool_fields(name)) for name in names],
        "tasks": [draw(task_fields(name, names)) for name in ("one", "two")],
    }
