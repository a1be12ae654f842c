"""Running a graph for one episode, whoever wrote it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenteval.agent.context import EpisodeContext
from agenteval.agent.graph import build_graph
from agenteval.errors import InputError, sentence
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
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(
            f"The agent {name!r} cannot be imported: {sentence(str(error))} Is its folder installed or on PYTHONPATH?"
        ) from error
    # A module of the user's runs its own code when it is imported, which can raise anything, or leave.
    except (Exception, SystemExit) as error:
        raise InputError(
            f"The module of the agent {name!r} fails when it is imported: {type(error).__name__}: "
            f"{sentence(str(error))} Mend it, then run again."
        ) from error
    factory = getattr(module, attribute, None)
    if factory is None:
        raise InputError(f"The module {module_name!r} has no {attribute!r}. Write package.module:factory.")
    if not callable(factory):
        raise InputError(f"{name!r} is no function. It must take an EpisodeContext and return a graph.")
    graph_factory: GraphFactory = factory
    return graph_factory


def run_agent(factory: GraphFactory, context: EpisodeContext) -> AgentResult:
    """Run the graph to its end, once more for each of the user's follow-ups, and read off how it ended.

    Each run gets all messages so far. The finish tool decides where it was called. A graph that leaves `stop` and
    `answer` out of its state (LangGraph's prebuilt agents do) has answered with its last message, if that is the
    model's.

    Raises:
        TypeError: If the graph ends in something that is no state with messages.
    """
    graph = factory(context)
    result, messages = _converse(graph, context, context.messages())
    for text in context.follow_ups:
        if result.stop_reason not in (StopReason.FINISH_TOOL, StopReason.ANSWER):
            break
        context.toolbox.resume()
        result, messages = _converse(graph, context, [*messages, {"role": "user", "content": text}])
    return result


def _converse(graph: Any, context: EpisodeContext, messages: list[Any]) -> tuple[AgentResult, list[Any]]:
    """Run the graph to its next answer: how it ended, and all messages so far."""
    final = graph.invoke({"messages": messages}, {"recursion_limit": _STEPS_PER_TURN * (context.max_turns + 1)})
    history = final.get("messages") if isinstance(final, dict) else None
    if not isinstance(history, list) or not history:
        raise TypeError("the graph ended in a state without a list of messages")
    return _result(final, context, history[-1]), history


def _result(final: dict[str, Any], context: EpisodeContext, last: Any) -> AgentResult:
    if context.toolbox.is_finished:
        return AgentResult(answer=context.toolbox.answer, stop_reason=StopReason.FINISH_TOOL)
    answer = final["answer"] if "answer" in final else _answer_of(last)
    if answer is not None and not isinstance(answer, str):
        raise TypeError(f"the graph's answer is {type(answer).__name__}, not a text")
    stop = final.get("stop")
    return AgentResult(answer=answer, stop_reason=StopReason.ANSWER if stop is None else StopReason(stop))


def _answer_of(message: Any) -> str | None:
    """The text of the model's message, as a dict or LangChain's; None for a tool's result or another's message."""
    fields = message if isinstance(message, dict) else {"role": message.type, "content": message.content}
    if fields.get("role") not in ("assistant", "ai"):
        return None
    content = fields.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
