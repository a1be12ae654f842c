"""Running a graph for one episode, whoever wrote it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenteval.agent.context import EpisodeContext
from agenteval.agent.graph import build_graph
from agenteval.errors import InputError
from agenteval.records import StopReason

GraphFactory = Callable[[EpisodeContext], Any]
"""Makes the graph of one episode: anything with `invoke(state, config)` over a state with `messages`."""
_STEPS_PER_TURN = 10
"""LangGraph's own limit on steps, far above ours on turns, which the recorded client keeps for every graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """How the agent ended by itself."""

    answer: str | None
    stop_reason: StopReason


def load_factory(name: str | None) -> GraphFactory:
    """The factory named `package.module:factory`; None is agenteval's own graph.

    Raises:
        InputError: If there is no such module or function.
    """
    if name is None:
        return build_graph
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InputError(f"{name!r} names no agent. Write it as package.module:factory.")
    try:
        factory = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise InputError(
            f"The agent {name!r} cannot be imported: {error}. Is its folder installed or on PYTHONPATH?"
        ) from error
    except AttributeError as error:
        raise InputError(f"The module {module_name!r} has no {attribute!r}. Write package.module:factory.") from error
    if not callable(factory):
        raise InputError(f"{name!r} is no function. It must take an EpisodeContext and return a graph.")
    graph_factory: GraphFactory = factory
    return graph_factory


def run_agent(factory: GraphFactory, context: EpisodeContext) -> AgentResult:
    """Run the graph to its end and read off how it ended.

    A graph that leaves `stop` and `answer` out of its state (LangGraph's prebuilt agents do) has answered with its
    last message, or with the finish tool where it called that.
    """
    config = {"recursion_limit": _STEPS_PER_TURN * (context.max_turns + 1)}
    state = {"messages": context.messages(), "calls": [], "turns": 0, "stop": None, "answer": None}
    own = factory is build_graph
    final = factory(context).invoke(state if own else {"messages": context.messages()}, config)
    if context.toolbox.is_finished:
        return AgentResult(answer=context.toolbox.answer, stop_reason=StopReason.FINISH_TOOL)
    if own:
        return AgentResult(answer=final["answer"], stop_reason=final["stop"])
    return AgentResult(answer=_text_of(final["messages"][-1]), stop_reason=StopReason.ANSWER)


def _text_of(message: Any) -> str:
    content = message["content"] if isinstance(message, dict) else message.content
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, dict))
