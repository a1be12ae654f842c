"""Episodes of tool calls as plain data, played here or in a process of their own.

`python -m mock_cases < cases.json` prints what came of each, so that processes can be compared.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pydantic

from agenteval.digest import digest_json
from agenteval.spec import Fault, ToolMock
from agenteval.tools import Outcome, State, ToolKit, call_tool

CLOCK = "2026-01-15T09:00:00Z"
_FAULT: pydantic.TypeAdapter[Fault] = pydantic.TypeAdapter(Fault)
Case = dict[str, Any]
"""`tools` and `faults` as a file would have them, `vars`, `world`, and `calls` as [tool, arguments]."""


def kit_of(case: Case) -> ToolKit:
    """The tools of a case."""
    mocks = [ToolMock.model_validate_json(json.dumps(tool)) for tool in case["tools"]]
    return ToolKit(
        mocks={mock.name: mock for mock in mocks},
        faults=tuple(_FAULT.validate_json(json.dumps(fault)) for fault in case["faults"]),
        vars=case["vars"],
    )


def outcomes_of(case: Case) -> list[Outcome]:
    """What came of the calls, one after another."""
    kit, state = kit_of(case), State.begin(world=json.loads(json.dumps(case["world"])), clock=CLOCK)
    outcomes = []
    for name, arguments in case["calls"]:
        outcomes.append(call_tool(kit, name, arguments, state))
        state = outcomes[-1].state
    return outcomes


def bytes_of(outcome: Outcome) -> list[Any]:
    """All of an outcome, as JSON; keys of objects in the order in which they stand."""
    state = outcome.state
    written = json.dumps([state.world, dict(state.calls), {str(key): value for key, value in state.fired.items()}])
    return [outcome.result, outcome.error, outcome.fault, state.clock, written]


def digest_of(case: Case) -> str:
    """Hash of the bytes of everything that came of a case."""
    return digest_json([bytes_of(outcome) for outcome in outcomes_of(case)])


if __name__ == "__main__":
    print(json.dumps([digest_of(case) for case in json.load(sys.stdin)]))
