"""The default agent: a model node, a tool node and a stop rule."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall

from agenteval.agent.context import EpisodeContext
from agenteval.digest import canonical_json
from agenteval.records import StopReason
from agenteval.tools import parse_arguments

_NO_CALL = "That was no complete tool call. Call exactly one of the tools."


class AgentState(TypedDict, total=False):
    """What the nodes pass on; it starts with the messages alone."""

    messages: Annotated[list[dict[str, Any]], operator.add]
    calls: list[tuple[str, str, str]]
    """Tool calls of the last turn: (name, raw arguments, id)."""
    turns: int
    """Model calls so far."""
    stop: StopReason | None
    """Why the episode ended; absent or None while it goes on."""
    answer: str | None


def build_graph(context: EpisodeContext) -> Any:
    """The compiled graph of one episode.

    It asks the model, runs the calls of the turn in order, and ends with the finish tool, with a turn that calls
    nothing (where the suite leaves the choice), or at the turn limit.
    """
    client = context.openai()
    settings, toolbox = context.settings, context.toolbox

    def ask(state: AgentState) -> dict[str, Any]:
        completion = client.chat.completions.create(
            model=context.model_name,
            messages=state["messages"],  # type: ignore[arg-type]
            tools=toolbox.schemas(),  # type: ignore[arg-type]
            tool_choice=settings.tool_choice,
            parallel_tool_calls=settings.parallel_tool_calls,
            max_completion_tokens=settings.max_tokens,
        )
        message = completion.choices[0].message
        turns = state.get("turns", 0) + 1
        calls = [(call.function.name, call.function.arguments, call.id) for call in _function_calls(message)]
        update: dict[str, Any] = {
            "messages": [_as_history(message.content, calls)],
            "calls": calls,
            "turns": turns,
        }
        if calls:
            return update
        if settings.tool_choice == "auto":
            return {**update, "stop": StopReason.ANSWER, "answer": message.content or ""}
        complaint = {"role": "user", "content": _NO_CALL}
        return {**update, "messages": [*update["messages"], complaint], "stop": _limit(turns, context)}

    def run_tools(state: AgentState) -> dict[str, Any]:
        results = [
            {"role": "tool", "tool_call_id": call_id, "content": toolbox.call(name, arguments, call_id)}
            for name, arguments, call_id in state["calls"]
        ]
        if toolbox.is_finished:
            return {"messages": results, "stop": StopReason.FINISH_TOOL, "answer": toolbox.answer}
        return {"messages": results, "stop": _limit(state["turns"], context)}

    graph = StateGraph(AgentState)
    graph.add_node("model", ask)
    graph.add_node("tools", run_tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _after_model, {"tools": "tools", "model": "model", END: END})
    graph.add_conditional_edges("tools", _after_tools, {"model": "model", END: END})
    return graph.compile()


def _after_model(state: AgentState) -> str:
    if state.get("stop") is not None:
        return END
    return "tools" if state["calls"] else "model"


def _after_tools(state: AgentState) -> str:
    return "model" if state.get("stop") is None else END


def _function_calls(message: ChatCompletionMessage) -> list[ChatCompletionMessageFunctionToolCall]:
    return [call for call in message.tool_calls or [] if call.type == "function"]


def _limit(turns: int, context: EpisodeContext) -> StopReason | None:
    return StopReason.MAX_TURNS if turns >= context.max_turns else None


def _as_history(content: str | None, calls: list[tuple[str, str, str]]) -> dict[str, Any]:
    """The assistant's message as the next request carries it."""
    history: dict[str, Any] = {"role": "assistant", "content": content or ""}
    if calls:
        history["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": _readable(arguments)}}
            for name, arguments, call_id in calls
        ]
    return history


def _readable(arguments: str) -> str:
    """Arguments as vLLM's chat template can read them: it refuses a history whose arguments are no JSON object."""
    _, complaint = parse_arguments(arguments)
    return arguments if complaint is None else canonical_json({"malformed": arguments})
