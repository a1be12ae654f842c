"""A graph written out by hand: it plans once in plain words, then acts with tools until the episode's answer is given.

PYTHONPATH=examples/planner-agent agenteval run tasks/starter --contract strict --agent planner_agent:make_graph
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from agenteval.agent import EpisodeContext

PLAN = "Write down in one or two sentences which tools you will call, in which order. Do not call any yet."


class State(TypedDict, total=False):
    """A graph's state must hold `messages`; `answer` is read where the suite has no finish tool."""

    messages: Annotated[list[dict[str, Any]], operator.add]
    answer: str | None


def make_graph(context: EpisodeContext) -> Any:
    """The agent of one episode."""
    client, toolbox = context.openai(), context.toolbox

    def plan(state: State) -> State:
        question = {"role": "user", "content": PLAN}
        completion = client.chat.completions.create(
            model=context.model_name,
            messages=[*state["messages"], question],  # type: ignore[list-item]
            max_completion_tokens=64,
        )
        return {"messages": [question, {"role": "assistant", "content": completion.choices[0].message.content or ""}]}

    def act(state: State) -> State:
        completion = client.chat.completions.create(
            model=context.model_name,
            messages=state["messages"],  # type: ignore[arg-type]
            tools=toolbox.schemas(),  # type: ignore[arg-type]
            tool_choice=context.settings.tool_choice,
            parallel_tool_calls=context.settings.parallel_tool_calls,
        )
        message = completion.choices[0].message
        made = [call for call in message.tool_calls or [] if call.type == "function"]
        results = [
            {
                "role": "tool",
                "tool_call_id": call.id,
                "content": toolbox.call(call.function.name, call.function.arguments, call.id),
            }
            for call in made
        ]
        spoken = message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)
        return {"messages": [spoken, *results], "answer": None if made else message.content}

    def next_step(state: State) -> str:
        has_answered = state["messages"][-1]["role"] == "assistant" and context.settings.tool_choice == "auto"
        return END if toolbox.is_finished or has_answered else "act"

    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("act", act)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "act")
    graph.add_conditional_edges("act", next_step, {"act": "act", END: END})
    return graph.compile()
