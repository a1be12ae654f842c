"""Clients that agents are built on: each is held and recorded the same way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import httpx
import pytest
from fake_vllm import Call, FakeConfig, Faults, Reply, Script
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from openai import APIConnectionError, AsyncOpenAI, OpenAI

from agenteval.client import AsyncRecordingTransport
from agenteval.errors import RequestContradictsContractError, ServerRefusedError

from .conftest import TOOLS, Opener, Seam, user

SCRIPT = FakeConfig(script=[Script("", [Reply(calls=[Call("look", {"id": 7})])])])


def by_openai(opened: Seam, **fields: Any) -> list[tuple[str, str]]:
    client = OpenAI(base_url=f"{opened.server.base_url}/v1", api_key="none", http_client=cast(Any, opened.http))
    answer = client.chat.completions.create(
        model="fake", messages=cast(Any, user()), tools=cast(Any, TOOLS), tool_choice="auto", **fields
    )
    return [(call.id, call.function.arguments) for call in cast(Any, answer.choices[0].message.tool_calls)]


def by_openai_async(opened: Seam, **fields: Any) -> list[tuple[str, str]]:
    async def ask() -> list[tuple[str, str]]:
        transport = AsyncRecordingTransport(opened.transport)
        async with httpx.AsyncClient(transport=transport) as http:
            client = AsyncOpenAI(base_url=f"{opened.server.base_url}/v1", api_key="none", http_client=cast(Any, http))
            answer = await client.chat.completions.create(
                model="fake", messages=cast(Any, user()), tools=cast(Any, TOOLS), tool_choice="auto", **fields
            )
        return [(call.id, call.function.arguments) for call in cast(Any, answer.choices[0].message.tool_calls)]

    return asyncio.run(ask())


def by_langchain(opened: Seam, **fields: Any) -> list[tuple[str, str]]:
    model = ChatOpenAI(
        model="fake",
        base_url=f"{opened.server.base_url}/v1",
        api_key=cast(Any, "none"),
        http_client=opened.http,
        max_retries=0,
        **fields,
    )
    message = cast(AIMessage, model.bind_tools(TOOLS, tool_choice="auto").invoke(user()))
    return [(str(call["id"]), str(call["args"]).replace("'", '"')) for call in message.tool_calls]


SDKS = pytest.mark.parametrize("ask", [by_openai, by_openai_async, by_langchain])


@SDKS
def test_every_sdk_is_recorded_the_same_way(seam: Opener, ask: Any) -> None:
    opened = seam(SCRIPT)
    assert ask(opened) == [("call_000_00", '{"id": 7}')]
    (turn,) = opened.turns()
    (request,) = opened.server.requests
    assert (request["seed"], request["temperature"], request["logprobs"]) == (turn.request["seed"], 0.0, True)
    assert request["messages"] == user()
    assert len(turn.output_ids) == len(turn.logprobs) > 0


@SDKS
def test_every_sdk_is_held_to_the_contract(seam: Opener, ask: Any) -> None:
    opened = seam(SCRIPT)
    with pytest.raises(Exception, match=r"."):
        ask(opened, temperature=0.7)
    assert isinstance(opened.recorder.failure, RequestContradictsContractError)
    assert opened.server.requests == []


def test_retries_of_an_sdk_send_nothing_more(seam: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = seam(FakeConfig(faults=Faults(error_on=frozenset({1}))))
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    client = OpenAI(
        base_url=f"{opened.server.base_url}/v1", api_key="none", http_client=cast(Any, opened.http), max_retries=2
    )
    with pytest.raises((APIConnectionError, ServerRefusedError)):
        client.chat.completions.create(model="fake", messages=cast(Any, user()))
    assert isinstance(opened.recorder.failure, ServerRefusedError)
    assert len(opened.server.requests) == 1


def test_the_async_seam_leaves_no_thread_of_ours(seam: Opener) -> None:
    before = {thread.name for thread in threading.enumerate()}
    by_openai_async(seam(SCRIPT))
    after = {thread.name for thread in threading.enumerate()} - before
    assert not [name for name in after if not name.startswith(("fake-vllm", "Thread-"))]
