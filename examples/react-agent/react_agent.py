"""LangGraph's prebuilt ReAct agent on langchain-openai's ChatOpenAI, unchanged but for the client that it is given.

PYTHONPATH=examples/react-agent agenteval run tasks/starter --contract strict --agent react_agent:make_graph --limit 1
"""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

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
    )
    bound = model.bind_tools(
        tools,
        tool_choice=context.settings.tool_choice,
        parallel_tool_calls=context.settings.parallel_tool_calls,
    )
    return create_react_agent(bound, tools)
