"""A graph of one's own: LangGraph's prebuilt tool node and langchain-openai, recorded like agenteval's own.

PYTHONPATH=examples/react-agent agenteval run tasks/toolsuite --contract strict --agent react_agent:make_graph --limit 1
"""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from agenteval.agent import EpisodeContext


def make_graph(context: EpisodeContext) -> Any:
    """The agent of one episode; its requests go through the recorded client, its calls to the episode's mocks."""
    tools = context.langchain_tools()
    model = ChatOpenAI(
        base_url=context.base_url,
        api_key=context.api_key,  # type: ignore[arg-type]
        model=context.model_name,
        http_client=context.http_client,
        http_async_client=context.http_async_client,
        max_retries=0,
    ).bind_tools(tools, tool_choice=context.settings.tool_choice)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()
