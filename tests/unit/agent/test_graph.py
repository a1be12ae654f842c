"""The default graph: when it asks, what the tools answer, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_vllm import Call, Reply

from agenteval.agent import AgentResult, build_graph, run_agent
from agenteval.client import EpisodeOverError
from agenteval.records import StopReason

from .conftest import Stage, StageBuilder

LOOK = Reply(calls=[Call("look", {"id": 7})])
FINISH = Reply(calls=[Call("finish", {"answer": "42"})])


def run(stage: Stage) -> AgentResult:
    return run_agent(build_graph, stage.context)


def tool_results(stage: Stage) -> list[str]:
    return [message["content"] for message in stage.sent()[-1] if message["role"] == "tool"]


def test_the_finish_tool_ends_the_episode_with_its_answer(stage: StageBuilder) -> None:
    episode = stage([LOOK, FINISH])
    assert run(episode) == AgentResult(answer="42", stop_reason=StopReason.FINISH_TOOL)
    assert [turn.turn for turn in episode.turns()] == [0, 1]
    assert episode.calls() == [
        ("look", '{"id": 7}', "call_000_00"),
        ("finish", '{"answer": "42"}', "call_001_00"),
    ]


def test_a_turn_without_a_call_is_the_answer_where_the_model_may_choose(stage: StageBuilder) -> None:
    episode = stage([LOOK, Reply(text="It is 42.")])
    assert run(episode) == AgentResult(answer="It is 42.", stop_reason=StopReason.ANSWER)


def test_an_empty_turn_is_an_empty_answer(stage: StageBuilder) -> None:
    assert run(stage([Reply(text="")])).answer == ""


def test_the_turn_limit_ends_the_episode_without_an_answer(stage: StageBuilder) -> None:
    episode = stage([LOOK])
    assert run(episode) == AgentResult(answer=None, stop_reason=StopReason.MAX_TURNS)
    assert len(episode.server.requests) == 4
    assert episode.recorder.failure is None


def test_a_finish_in_the_last_turn_still_counts(stage: StageBuilder) -> None:
    assert run(stage([LOOK, LOOK, LOOK, FINISH])).stop_reason is StopReason.FINISH_TOOL


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param(Call("look", '{"id": '), "the arguments are not JSON", id="half of JSON"),
        pytest.param(Call("look", "[7]"), "not a JSON object", id="a list"),
        pytest.param(Call("look", {"id": "seven"}), "must be of type", id="a wrong type"),
        pytest.param(Call("look", {}), "missing", id="nothing"),
        pytest.param(Call("lokk", {"id": 7}), "there is no tool", id="an unknown tool"),
        pytest.param(Call("finish", {}), "missing", id="finish without an answer"),
    ],
)
def test_a_wrong_call_becomes_an_error_that_the_model_sees(stage: StageBuilder, call: Call, words: str) -> None:
    episode = stage([Reply(calls=[call]), FINISH])
    assert run(episode).stop_reason is StopReason.FINISH_TOOL
    assert [words in json.loads(result)["error"] for result in tool_results(episode)] == [True]
    assert episode.recorder.calls[0][1].error is not None


def test_a_history_with_malformed_arguments_stays_readable_for_the_template(stage: StageBuilder) -> None:
    """vLLM refuses a request whose history holds arguments that are no JSON object."""
    episode = stage([Reply(calls=[Call("look", '{"id": ')]), FINISH])
    run(episode)
    (assistant,) = [message for message in episode.sent()[-1] if message["role"] == "assistant"]
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {"malformed": '{"id": '}
    assert episode.calls()[0][1] == '{"id": ', "the record keeps what was generated"


def test_calls_of_one_turn_run_in_the_order_in_which_they_were_written(stage: StageBuilder) -> None:
    items = [Call("push", {"item": letter}) for letter in "abc"]
    episode = stage([Reply(calls=items), FINISH])
    run(episode)
    assert episode.toolbox.world == {"stack": ["a", "b", "c"]}
    (first, _) = episode.turns()
    assert [(call.call, call.call_id) for call in first.tool_calls] == [
        (0, "call_000_00"),
        (1, "call_000_01"),
        (2, "call_000_02"),
    ]
    assert all(call.server_call_id.startswith("chatcmpl-tool-") for call in first.tool_calls)


def test_calls_after_finish_in_the_same_turn_still_run(stage: StageBuilder) -> None:
    episode = stage([Reply(calls=[Call("finish", {"answer": "x"}), Call("push", {"item": "a"})])])
    assert run(episode).answer == "x"
    assert episode.toolbox.world == {"stack": ["a"]}
    assert len(episode.server.requests) == 1


def test_without_a_call_under_required_the_model_is_reminded(stage: StageBuilder) -> None:
    episode = stage([Reply(text="Let me think."), FINISH], tool_choice="required")
    assert run(episode).stop_reason is StopReason.FINISH_TOOL
    assert [message["role"] for message in episode.sent()[-1]] == ["system", "user", "assistant", "user"]
    assert "Call exactly one of the tools" in episode.sent()[-1][-1]["content"]


def test_reminders_end_at_the_turn_limit(stage: StageBuilder) -> None:
    episode = stage([Reply(text="Let me think.")], tool_choice="required")
    assert run(episode) == AgentResult(answer=None, stop_reason=StopReason.MAX_TURNS)
    assert len(episode.server.requests) == 4


def test_the_suites_settings_reach_the_request(stage: StageBuilder) -> None:
    episode = stage([FINISH], tool_choice="required", parallel_tool_calls=False, max_tokens=77)
    run(episode)
    (request,) = episode.server.requests
    fields: dict[str, Any] = {name: request[name] for name in ("tool_choice", "parallel_tool_calls")}
    assert fields == {"tool_choice": "required", "parallel_tool_calls": False}
    assert request["max_completion_tokens"] == 77
    assert [tool["function"]["name"] for tool in request["tools"]] == ["finish", "look", "push"]
    assert request["messages"] == episode.context.messages()


def test_without_a_finish_tool_none_is_offered(stage: StageBuilder) -> None:
    episode = stage([Reply(text="42")], finish_tool=None)
    assert run(episode).answer == "42"
    assert [tool["function"]["name"] for tool in episode.server.requests[0]["tools"]] == ["look", "push"]


def test_two_episodes_of_one_script_are_equal_byte_for_byte(stage: StageBuilder) -> None:
    episodes = [stage([LOOK, FINISH]) for _ in range(2)]
    for episode in episodes:
        run(episode)
    assert episodes[0].server.requests == episodes[1].server.requests


def test_an_end_of_the_seam_reaches_through_the_graph(stage: StageBuilder) -> None:
    episode = stage([LOOK])
    episode.recorder.fail(EpisodeOverError(StopReason.CONTEXT_FULL, "full"))
    with pytest.raises(Exception, match=r"."):
        run(episode)
    assert isinstance(episode.recorder.failure, EpisodeOverError)
