"""What goes wrong at the seam: which error, and that the recorder remembers it whatever the agent does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import run_records as made
from fake_vllm import FakeConfig, FakeVllm, Faults, Generation, HttpAnswer

from agenteval.client import AsyncRecordingTransport, EpisodeOverError, RequestRules
from agenteval.errors import (
    AgentevalError,
    InputError,
    MalformedResponseError,
    RequestContradictsContractError,
    ServerDiedError,
    ServerRefusedError,
)
from agenteval.records import StopReason

from .conftest import TOOLS, Opener, Seam, user


def fault(**fields: Any) -> FakeConfig:
    return FakeConfig(faults=Faults(**fields))


def failure_of(opened: Seam, error: type[AgentevalError], **fields: Any) -> Any:
    """The error that an ask raises, which must be the one that the recorder remembers."""
    with pytest.raises(error) as caught:
        opened.ask(**fields)
    assert opened.recorder.failure is caught.value
    return caught.value


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        pytest.param(fault(error_on=frozenset({1})), ServerRefusedError, "answered 500", id="500"),
        pytest.param(fault(truncate_on=frozenset({1})), ServerDiedError, "stopped answering", id="half a body"),
        pytest.param(fault(die_after_requests=0), ServerDiedError, "stopped answering", id="connection reset"),
        pytest.param(fault(hang_on=frozenset({1}), hang_s=0.01), ServerDiedError, "stopped answering", id="hung up"),
        pytest.param(fault(omit=frozenset({"token_ids"})), MalformedResponseError, "token_ids", id="no token ids"),
        pytest.param(fault(omit=frozenset({"logprobs"})), MalformedResponseError, "logprobs", id="no logprobs"),
        pytest.param(
            fault(omit=frozenset({"prompt_token_ids"})), MalformedResponseError, "prompt_token_ids", id="no prompt ids"
        ),
        pytest.param(FakeConfig(api_key="secret"), ServerRefusedError, "answered 401", id="wrong key"),
        pytest.param(FakeConfig(served_model_name="other"), ServerRefusedError, "does not exist", id="wrong model"),
    ],
)
def test_a_failing_server_gives_its_error(
    seam: Opener, config: FakeConfig, error: type[AgentevalError], words: str
) -> None:
    opened = seam(config)
    assert words in str(failure_of(opened, error))
    assert opened.turns() == []


class Liar(FakeVllm):
    """Answers what a test wants."""

    lie: Callable[[dict[str, Any]], Any]
    raw: bytes | None = None

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        if self.raw is None:
            self.lie(body)

    def _counted_chat(self, body: bytes) -> HttpAnswer:
        return super()._counted_chat(body) if self.raw is None else HttpAnswer(200, self.raw)


def logprob_entry(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda body: body["choices"][0]["logprobs"]["content"][0].update(fields)


def choice(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda body: body["choices"][0].update(fields)


@pytest.mark.parametrize(
    ("lie", "field"),
    [
        pytest.param(lambda body: body.update(choices=[]), "choices", id="no choice"),
        pytest.param(lambda body: body.update(choices=body["choices"] * 2), "choices", id="two choices"),
        pytest.param(lambda body: body.update(choices=["text"]), "choices", id="a choice that is text"),
        pytest.param(choice(message=None), "choices", id="no message"),
        pytest.param(choice(message={"tool_calls": "text"}), "choices[0].message.tool_calls", id="calls as text"),
        pytest.param(choice(message={"tool_calls": [1]}), "choices[0].message.tool_calls", id="a call that is none"),
        pytest.param(lambda body: body.update(prompt_token_ids=[]), "prompt_token_ids", id="no prompt"),
        pytest.param(lambda body: body.update(prompt_token_ids=["1"]), "prompt_token_ids", id="prompt ids as text"),
        pytest.param(choice(token_ids=[1.5]), "choices[0].token_ids", id="a fraction as an id"),
        pytest.param(choice(logprobs="none"), "choices[0].logprobs.content", id="logprobs as text"),
        pytest.param(
            lambda body: body["choices"][0]["logprobs"]["content"].pop(),
            "choices[0].logprobs.content",
            id="a logprob too few",
        ),
        pytest.param(logprob_entry(logprob=None), "choices[0].logprobs.content[0]", id="a null logprob"),
        pytest.param(logprob_entry(logprob=float("nan")), "choices[0].logprobs.content[0]", id="NaN"),
        pytest.param(logprob_entry(logprob=float("-inf")), "choices[0].logprobs.content[0]", id="an infinity"),
        pytest.param(logprob_entry(token=7), "choices[0].logprobs.content[0]", id="a token without text"),
        pytest.param(logprob_entry(top_logprobs=[{}]), "choices[0].logprobs.content[0]", id="an empty rival"),
    ],
)
def test_a_response_that_the_evidence_cannot_rest_on_is_malformed(
    seam: Opener, lie: Callable[[dict[str, Any]], Any], field: str
) -> None:
    server = Liar()
    server.lie = lie
    error = failure_of(seam(server=server), MalformedResponseError)
    assert error.field == field
    assert str(error).endswith("version' from boots\"")


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"\xff\xfe", b'"text"', b"null"])
def test_a_body_that_is_no_json_object_is_malformed(seam: Opener, raw: bytes) -> None:
    server = Liar()
    server.raw = raw
    assert failure_of(seam(server=server), MalformedResponseError).field == "body"


def test_a_conversation_that_no_longer_fits_is_an_end_and_no_error_of_the_server(seam: Opener) -> None:
    opened = seam(FakeConfig(max_model_len=256))
    assert failure_of(opened, EpisodeOverError, messages=user("word " * 300)).stop_reason is StopReason.CONTEXT_FULL


def test_a_limit_above_the_models_is_an_error_and_no_full_context(seam: Opener) -> None:
    """Else every episode would end at its first turn, and count as failed by the model."""
    assert failure_of(seam(FakeConfig(max_model_len=256)), ServerRefusedError, max_tokens=300).status == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/models"),
        ("POST", "/responses"),
        ("POST", "/completions"),
        ("POST", "/embeddings"),
        ("GET", "/metrics"),
    ],
)
def test_other_endpoints_are_refused(seam: Opener, method: str, path: str) -> None:
    opened = seam()
    with pytest.raises(InputError, match=f"requested {method} /v1{path}") as caught:
        opened.http.request(method, path, json={} if method == "POST" else None)
    assert opened.recorder.failure is caught.value
    assert opened.server.requests == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"messages": "hi"}'])
def test_a_request_without_messages_is_refused(seam: Opener, body: bytes) -> None:
    opened = seam()
    with pytest.raises(InputError, match="no list of messages"):
        opened.http.post("/chat/completions", content=body)


@pytest.mark.parametrize("text", ["\ud800", "half \udfff"])
def test_half_a_character_is_refused_before_it_is_sent(seam: Opener, text: str) -> None:
    opened = seam()
    with pytest.raises(InputError, match="half a character"):
        opened.http.post("/chat/completions", content=json.dumps({"messages": user(text)}))
    assert opened.server.requests == []


def test_a_contradiction_never_reaches_the_server(seam: Opener) -> None:
    opened = seam()
    failure_of(opened, RequestContradictsContractError, temperature=0.7)
    assert opened.server.requests == []


def test_after_a_failure_nothing_is_sent_whatever_the_agent_retries(seam: Opener) -> None:
    opened = seam(fault(error_on=frozenset({1})))
    first = failure_of(opened, ServerRefusedError)
    for _ in range(3):
        assert failure_of(opened, ServerRefusedError) is first
    assert len(opened.server.requests) == 1


def test_an_episode_that_is_over_makes_no_request(seam: Opener) -> None:
    def over() -> None:
        raise EpisodeOverError(StopReason.MAX_TURNS, "2 turns were made")

    opened = seam(check_over=over)
    assert failure_of(opened, EpisodeOverError).stop_reason is StopReason.MAX_TURNS
    assert opened.server.requests == []


def test_what_had_been_recorded_before_a_failure_is_handed_over(seam: Opener) -> None:
    opened = seam(fault(error_on=frozenset({2})))
    opened.ask()
    failure_of(opened, ServerRefusedError)
    assert [turn.turn for turn in opened.stored] == [0]


def test_threads_of_one_episode_take_turns(seam: Opener) -> None:
    opened = seam(FakeConfig(latency_s=0.01), concurrency=8)

    async def crowd() -> None:
        transport = AsyncRecordingTransport(opened.transport)
        async with httpx.AsyncClient(transport=transport, base_url=f"{opened.server.base_url}/v1") as http:
            asked = [http.post("/chat/completions", json={"messages": user(f"Order A-{n}.")}) for n in range(6)]
            await asyncio.gather(*asked)

    asyncio.run(crowd())
    turns = opened.turns()
    assert [turn.turn for turn in turns] == list(range(6))
    assert {turn.requests_in_flight for turn in turns} == {1}


def test_a_request_keeps_the_agents_headers_but_not_its_length(seam: Opener) -> None:
    opened = seam(FakeConfig(api_key="secret"))
    answer = opened.http.post(
        "/chat/completions", json={"messages": user(), "tools": TOOLS}, headers={"Authorization": "Bearer secret"}
    )
    assert answer.status_code == 200


def test_the_salt_isolates_what_the_rules_isolate(seam: Opener) -> None:
    server = FakeVllm()
    seams = [
        seam(
            server=server,
            rules=RequestRules.of(made.contract(), made.plan(cache_salt=salt), model_name="fake", max_tokens=8),
        )
        for salt in ("a", "b", "a")
    ]
    for opened in seams:
        opened.ask(user("The same long question, word for word. " * 10))
    first, other, again = (opened.turns()[0].cached_tokens for opened in seams)
    assert (first, other) == (0, 0)
    assert again
