"""What the user says next: sent after each answer, by whichever graph, until the talk or the turns end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import run_records as made
from fake_vllm import Call, Reply
from langchain_core.messages import AIMessage

from agenteval.agent import AgentResult, build_graph, run_agent
from agenteval.client import EpisodeOverError
from agenteval.records import StopReason
from agenteval.spec import Message, TaskVariant

from .conftest import Stage, StageBuilder

LOOK = Reply(calls=[Call("look", {"id": 7})])
PUSH = Reply(calls=[Call("push", {"item": "a"})])


def finish(answer: str) -> Reply:
    return Reply(calls=[Call("finish", {"answer": answer})])


def talk(*follow_ups: str, **fields: Any) -> TaskVariant:
    """A task whose user says more."""
    return replace(made.VARIANT, follow_ups=follow_ups, **fields)


def said(stage: Stage) -> list[str]:
    """Roles of the last request's messages, the user's with what they say."""
    return [
        f"user: {message['content']}" if message["role"] == "user" else message["role"] for message in stage.sent()[-1]
    ]


def test_a_follow_up_comes_after_the_finish_tool_and_the_last_answer_counts(stage: StageBuilder) -> None:
    episode = stage([finish("1"), LOOK, finish("2")], variant=talk("And order 8?"))
    assert run_agent(build_graph, episode.context) == AgentResult(answer="2", stop_reason=StopReason.FINISH_TOOL)
    assert said(episode) == [
        "system",
        "user: Look at order A-7.",
        "assistant",
        "tool",
        "user: And order 8?",
        "assistant",
        "tool",
    ]
    assert [tool for tool, _, _ in episode.calls()] == ["finish", "look", "finish"]


def test_a_follow_up_comes_after_an_answer_without_a_call(stage: StageBuilder) -> None:
    episode = stage([Reply(text="One."), Reply(text="Two."), Reply(text="Three.")], variant=talk("2?", "3?"))
    result = run_agent(build_graph, episode.context)
    assert result == AgentResult(answer="Three.", stop_reason=StopReason.ANSWER)
    assert said(episode) == ["system", "user: Look at order A-7.", "assistant", "user: 2?", "assistant", "user: 3?"]


def test_an_answer_before_a_follow_up_is_none_of_the_last(stage: StageBuilder) -> None:
    episode = stage([finish("1"), Reply(text="")], variant=talk("And now?"))
    assert run_agent(build_graph, episode.context) == AgentResult(answer="", stop_reason=StopReason.ANSWER)


def test_the_world_clock_and_counts_go_on_through_the_talk(stage: StageBuilder) -> None:
    episode = stage([PUSH, finish("1"), PUSH, finish("2")], variant=talk("Again."))
    run_agent(build_graph, episode.context)
    assert episode.toolbox.world == {"stack": ["a", "a"]}
    assert [call.call_id for _, call in episode.recorder.calls] == [f"call_{turn:03d}_00" for turn in range(4)]
    assert [turn for turn, _ in episode.recorder.calls] == [0, 1, 2, 3]


def test_the_turn_limit_is_for_all_together(stage: StageBuilder) -> None:
    episode = stage([LOOK, LOOK, finish("1"), LOOK], variant=talk("More?", "And more?"))
    with pytest.raises(EpisodeOverError) as over:
        run_agent(build_graph, episode.context)
    assert over.value.stop_reason is StopReason.MAX_TURNS
    assert len(episode.server.requests) == 4
    assert (episode.toolbox.answer, episode.toolbox.follow_ups_left) == (None, 1)


def test_no_follow_up_is_sent_where_the_turns_have_run_out(stage: StageBuilder) -> None:
    episode = stage([LOOK], variant=talk("More?"))
    assert run_agent(build_graph, episode.context).stop_reason is StopReason.MAX_TURNS
    assert "user: More?" not in said(episode)


def test_an_episode_starts_with_all_messages_of_its_task(stage: StageBuilder) -> None:
    start = (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Hi."),
        Message(role="assistant", content="Hello."),
        Message(role="user", content="Go."),
    )
    episode = stage([finish("1")], variant=talk(messages=start))
    run_agent(build_graph, episode.context)
    assert episode.context.prompt == "Go."
    assert episode.sent()[0] == [message.model_dump() for message in start]


class Echo:
    """A graph of one's own that answers with how many messages it was given."""

    def __init__(self) -> None:
        self.given: list[list[Any]] = []

    def invoke(self, state: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        self.given.append(list(state["messages"]))
        return {"messages": [*state["messages"], AIMessage(f"{len(state['messages'])} messages")]}


def test_a_graph_of_ones_own_need_not_know_of_follow_ups(stage: StageBuilder) -> None:
    echo = Echo()
    result = run_agent(lambda _context: echo, stage([], variant=talk("More?", "Bye.")).context)
    assert result == AgentResult(answer="6 messages", stop_reason=StopReason.ANSWER)
    assert [len(given) for given in echo.given] == [2, 4, 6]
    assert echo.given[2][-1] == {"role": "user", "content": "Bye."}


class Stops:
    """A graph that gives up."""

    def __init__(self, stop: str) -> None:
        self.stop, self.runs = stop, 0

    def invoke(self, state: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        self.runs += 1
        return {"messages": state["messages"], "stop": self.stop, "answer": None}


@pytest.mark.parametrize("stop", ["max_turns", "context_full"])
def test_after_an_end_that_is_no_answer_the_user_says_no_more(stage: StageBuilder, stop: str) -> None:
    graph = Stops(stop)
    result = run_agent(lambda _context: graph, stage([], variant=talk("More?")).context)
    assert (result.stop_reason, graph.runs) == (StopReason(stop), 1)
