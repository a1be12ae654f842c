"""Tool mocks and the world they share: (state, call) -> (result, new state), pure and deterministic.

No clock but the episode's own, no randomness, no file and no network: equal state and call give equal bytes
on every machine. So no text of a library reaches a result: the next version may word it otherwise. Must not
know who calls (the default agent, a user's graph, a test).
"""

from agenteval.tools.answer import MAX_STATE_CHARACTERS, without_address
from agenteval.tools.arguments import parse_arguments, parse_json
from agenteval.tools.call import UNANSWERED, call_tool, fault_label
from agenteval.tools.recording import CallRequest, final_answer, record_call
from agenteval.tools.state import Outcome, State, ToolKit, finish_mock, openai_schema, patch_between, world_patch

__all__ = [
    "MAX_STATE_CHARACTERS",
    "UNANSWERED",
    "CallRequest",
    "Outcome",
    "State",
    "ToolKit",
    "call_tool",
    "fault_label",
    "final_answer",
    "finish_mock",
    "openai_schema",
    "parse_arguments",
    "parse_json",
    "patch_between",
    "record_call",
    "without_address",
    "world_patch",
]
