"""Oddities of how a suite sets up its agent."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.lint.oddity import Oddity
from agenteval.spec import AgentSettings


def agent_warnings(agent: AgentSettings) -> Iterator[Oddity]:
    """What is odd about the agent of a suite.yaml."""
    if agent.graph is not None:
        module, _, factory = agent.graph.partition(":")
        if not module or not factory:
            yield ("agent", "graph"), f"{agent.graph!r} names no agent; write it as package.module:factory"
    elif agent.tool_choice == "required" and agent.finish_tool is None:
        what = "every turn must call a tool and none ends the episode, so that no episode has an answer"
        yield ("agent", "finish_tool"), f"{what}; name a finish_tool, or let tool_choice be auto"
