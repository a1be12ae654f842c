"""What is recorded of an exchange, and how turns are built from exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fake_vllm import Call, FakeConfig, FakeVllm, Faults, Reply, Script
from fake_vllm.text import encode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.client.recorder import _runner_up as runner_up
from agenteval.records import Turn

from .conftest import TOOLS, Opener, Seam, user

TWO_CALLS = Script("", [Reply(calls=[Call("look", {"id": 1}), Call("look", {"id": 2})]), Reply(text="Done.")])


def prompts_of(turns: Sequence[Turn]) -> list[list[int]]:
    """Every turn's whole prompt, from what each adds."""
    prompts, history = [], []
    for turn in turns:
        prompt = [*history[: turn.prompt_kept], *turn.prompt_added]
        prompts.append(prompt)
        history = [*prompt, *turn.output_ids]
    return prompts


def messages_of(turns: Sequence[Turn]) -> list[list[dict[str, Any]]]:
    """Every turn's messages, from what each adds."""
    found: list[list[dict[str, Any]]] = []
    for turn in turns:
        before = found[-1] if found else []
        found.append([*before[: turn.messages_kept], *turn.messages_added])
    return found


def answer_of(seam: Seam, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation after one turn: the model's message, and a result for each call."""
    message = seam.ask(messages, tools=TOOLS, tool_choice="required")["choices"][0]["message"]
    calls = message.get("tool_calls") or []
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "found"} for call in calls]
    said = {"role": "assistant", "content": message["content"], "tool_calls": calls}
    return [*messages, said, *results]


def test_the_exchange_is_recorded_whole(seam: Opener) -> None:
    opened = seam()
    response = opened.ask(tools=TOOLS, tool_choice="required")
    (turn,) = opened.turns()
    (sent,) = opened.server.requests
    choice = response["choices"][0]
    assert turn.request == {key: value for key, value in sent.items() if key != "messages"}
    assert list(turn.messages_added) == sent["messages"] == user()
    assert list(turn.prompt_added) == encode(opened.server.engine.prompt_of(sent))
    assert list(turn.output_ids) == choice["token_ids"]
    assert list(turn.output_tokens) == [entry["token"] for entry in choice["logprobs"]["content"]]
    assert list(turn.logprobs) == [entry["logprob"] for entry in choice["logprobs"]["content"]]
    assert turn.finish_reason == "tool_calls"
    assert turn.prompt_tokens == response["usage"]["prompt_tokens"] == len(turn.prompt_added)
    assert turn.response["system_fingerprint"] == response["system_fingerprint"]
    assert (turn.turn, turn.kind, turn.is_continuous) == (0, "episode", None)
    assert turn.requests_in_flight == 1
    assert 0 <= turn.queued_s < 1
    assert turn.elapsed_s > 0


def test_the_runner_up_is_the_best_that_was_not_chosen(seam: Opener) -> None:
    opened = seam()
    response = opened.ask()
    (turn,) = opened.turns()
    for place, entry in enumerate(response["choices"][0]["logprobs"]["content"]):
        rival = entry["top_logprobs"][1]
        assert (turn.runner_up_tokens[place], turn.runner_up_logprobs[place]) == (rival["token"], rival["logprob"])


@pytest.mark.parametrize(
    ("top", "found"),
    [
        pytest.param([("a", -0.1), ("b", -2.0)], ("b", -2.0), id="chosen first"),
        pytest.param([("b", -0.05), ("a", -0.1)], ("b", -0.05), id="guided: the likelier one was not allowed"),
        pytest.param([("b", -2.0), ("c", -3.0)], ("b", -2.0), id="chosen is not among the best"),
        pytest.param([("a", -0.1), ("a", -0.7)], ("a", -0.7), id="two tokens with one text"),
        pytest.param([("a", -0.1)], (None, None), id="only the chosen one"),
        pytest.param(None, (None, None), id="none"),
    ],
)
def test_the_runner_up_of_one_position(
    top: list[tuple[str, float]] | None, found: tuple[str | None, float | None]
) -> None:
    listed = top and [{"token": token, "logprob": logprob} for token, logprob in top]
    assert runner_up({"token": "a", "logprob": -0.1, "top_logprobs": listed}) == found


@pytest.mark.parametrize(
    ("config", "counts"),
    [
        pytest.param(FakeConfig(), [0, True], id="a number"),
        pytest.param(FakeConfig(null_cached_tokens="at_zero"), [None, True], id="null for zero"),
        pytest.param(FakeConfig(null_cached_tokens="always"), [None, None], id="always null"),
        pytest.param(FakeConfig(prompt_tokens_details=False), [None, None], id="no details"),
        pytest.param(FakeConfig(faults=Faults(omit=frozenset({"usage"}))), [None, None], id="no usage"),
    ],
)
def test_cached_tokens_are_as_reported_and_null_stays_unknown(
    seam: Opener, config: FakeConfig, counts: list[Any]
) -> None:
    opened = seam(config)
    for _ in range(2):
        opened.ask(user("Tell me. " * 20))
    found = [turn.cached_tokens for turn in opened.turns()]
    assert [count if not count else count > 0 for count in found] == counts


def test_call_ids_are_made_of_turn_and_place_and_the_servers_are_kept(seam: Opener) -> None:
    opened = seam(FakeConfig(script=[TWO_CALLS]))
    for _ in range(2):
        response = opened.ask(tools=TOOLS, tool_choice="auto")
    ids = [call["id"] for call in response["choices"][0]["message"]["tool_calls"]]
    assert ids == ["call_001_00", "call_001_01"]
    turns = opened.turns()
    kept = [call["id"] for turn in turns for call in turn.response["choices"][0]["message"]["tool_calls"]]
    assert len(set(kept)) == 4
    assert all(name.startswith("chatcmpl-tool-") for name in kept)


def test_a_turn_is_on_disk_before_the_next_answer_reaches_the_agent(seam: Opener) -> None:
    opened = seam()
    for number in range(3):
        opened.ask()
        assert opened.waits == list(range(number))


def test_a_prompt_that_does_not_extend_the_turn_before_is_named(seam: Opener) -> None:
    opened = seam(FakeConfig(guided_format="json_list"))
    answer_of(opened, answer_of(opened, user()))
    assert [turn.is_continuous for turn in opened.turns()] == [None, False]


def test_a_prompt_that_extends_the_turn_before_is_continuous(seam: Opener) -> None:
    opened = seam(FakeConfig(guided_format="hermes"))
    answer_of(opened, answer_of(opened, user()))
    assert [turn.is_continuous for turn in opened.turns()] == [None, True]


TEXTS = st.text("ab é", max_size=12)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    conversations=st.lists(
        st.lists(st.tuples(st.sampled_from(["user", "system", "assistant"]), TEXTS), min_size=1, max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_what_each_turn_adds_rebuilds_every_prompt_and_every_message(
    seam: Opener, conversations: list[list[tuple[str, str]]]
) -> None:
    """Whatever an agent does to its history: extend it, cut it, or write another one."""
    with FakeVllm() as server:
        opened = seam(server=server)
        said = [[{"role": role, "content": text} for role, text in messages] for messages in conversations]
        for messages in said:
            opened.ask(messages, max_tokens=4)
        turns = opened.turns()
        assert messages_of(turns) == said
        assert prompts_of(turns) == [encode(server.engine.prompt_of(request)) for request in server.requests]
        assert [turn.prompt_tokens for turn in turns] == [len(prompt) for prompt in prompts_of(turns)]


def test_growing_conversations_are_stored_as_what_they_add(seam: Opener) -> None:
    opened = seam()
    messages = user()
    for _ in range(4):
        messages = answer_of(opened, messages)
    turns = opened.turns()
    assert sum(len(turn.messages_added) for turn in turns) < len(messages) + 1
    assert messages_of(turns)[-1] == opened.server.requests[-1]["messages"]
