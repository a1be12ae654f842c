"""Tools as their files would declare them, and episodes of calls to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pydantic

from agenteval.spec import Fault, SuiteFunction, ToolMock
from agenteval.tools import Outcome, State, ToolKit, call_tool

CLOCK = "2026-01-15T09:00:00Z"
OBJECT: dict[str, Any] = {"type": "object"}
FAULT: pydantic.TypeAdapter[Fault] = pydantic.TypeAdapter(Fault)


def tool(name: str, parameters: dict[str, Any] | None = None, **fields: Any) -> ToolMock:
    """A tool as its file would declare it."""
    fields = {"name": name, "description": "", "parameters": parameters or OBJECT, **fields}
    return ToolMock.model_validate_json(json.dumps(fields))


def kit(
    *mocks: ToolMock,
    faults: Sequence[Mapping[str, Any]] = (),
    variables: Mapping[str, Any] | None = None,
    functions: Sequence[SuiteFunction] = (),
) -> ToolKit:
    """The tools of a task, and its faults as its file would declare them."""
    return ToolKit(
        mocks={mock.name: mock for mock in mocks},
        faults=tuple(FAULT.validate_json(json.dumps(fault)) for fault in faults),
        vars=variables or {},
        functions={function.name: function for function in functions},
    )


def start(world: dict[str, Any] | None = None, clock: str = CLOCK) -> State:
    """The state in which an episode starts."""
    return State.begin(world=world or {}, clock=clock)


def play(tools: ToolKit, state: State, *calls: str | tuple[str, Any]) -> list[Outcome]:
    """Outcomes of calls made one after another; a name alone is a call without arguments."""
    outcomes = []
    for call in calls:
        name, arguments = (call, {}) if isinstance(call, str) else call
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        outcomes.append(call_tool(tools, name, text, state))
        state = outcomes[-1].state
    return outcomes


def function(call: Callable[..., Any], name: str = "f.py:f") -> SuiteFunction:
    """A function as a suite would load it."""
    return SuiteFunction(name=name, source_digest="sha256:0", call=call)
