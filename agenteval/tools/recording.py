"""A call, made and recorded: asked twice in the same state, with what it changed."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.records import ToolCall
from agenteval.spec.suite import FINISH_ARGUMENT
from agenteval.tools.arguments import parse_arguments
from agenteval.tools.call import call_tool
from agenteval.tools.state import State, ToolKit, world_patch


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """What an agent asks for."""

    call: int
    """Place among the turn's calls, from 0."""
    call_id: str
    tool: str
    arguments: str
    """JSON text."""


def record_call(kit: ToolKit, request: CallRequest, state: State) -> tuple[ToolCall, State]:
    """Answer a call in a state: (what is recorded of it, the state after it)."""
    outcome = call_tool(kit, request.tool, request.arguments, state)
    # A mock costs microseconds: asked twice, it shows by itself that it depends on nothing else.
    is_repeatable = call_tool(kit, request.tool, request.arguments, state) == outcome
    made = ToolCall(
        call=request.call,
        call_id=request.call_id,
        server_call_id="",
        tool=request.tool,
        arguments=request.arguments,
        result=outcome.result,
        error=outcome.error,
        is_broken=outcome.is_broken,
        state_digest=state.digest(),
        world_patch=world_patch(state, outcome.state),
        is_repeatable=is_repeatable,
        fault=outcome.fault,
    )
    return made, outcome.state


def final_answer(made: ToolCall, finish_tool: str | None) -> str | None:
    """The answer that a call of the finish tool gives; None for any other call, and for one that failed."""
    if made.tool != finish_tool or made.error is not None:
        return None
    return str(parse_arguments(made.arguments)[0][FINISH_ARGUMENT])
