"""The httpx transports that agents speak through."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx

from agenteval.client.gate import Gate
from agenteval.client.recorder import EpisodeOverError, EpisodeRecorder, Exchange
from agenteval.client.rules import RequestRules
from agenteval.errors import (
    AgentevalError,
    InputError,
    MalformedResponseError,
    ServerDiedError,
    ServerRefusedError,
)
from agenteval.records import StopReason

READ_TIMEOUT_S = 1_800.0
"""A completion on a CPU can take minutes; a longer silence is taken for a hung server."""
_COMPLETIONS = "/chat/completions"
_CONTEXT_FULL = (
    "maximum context length",
    "longer than the maximum model length",
    # The prompt leaves no room at all; we never ask for fewer than 1.
    "max_tokens must be at least 1, got",
)
"""Refusals of a conversation that has grown too long. Others, such as a max_tokens above max_model_len, are errors."""


def open_connection(concurrency: int) -> httpx.HTTPTransport:
    """Connections to one server, shared by its episodes; no retry, since a retry is another request."""
    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    return httpx.HTTPTransport(retries=0, limits=limits, trust_env=False)


class RecordingTransport(httpx.BaseTransport):
    """Sends one episode's requests by the contract's rules and records every exchange.

    Requests of one episode go one after another, whatever threads an agent has: turns have an order.
    """

    def __init__(
        self,
        *,
        connection: httpx.BaseTransport,
        gate: Gate,
        rules: RequestRules,
        recorder: EpisodeRecorder,
        check_over: Callable[[], None],
        base_url: str,
    ) -> None:
        """Bind the seam to an episode.

        Args:
            connection: The server's; not closed with this transport.
            gate: The server's.
            rules: What the contract writes and refuses.
            recorder: The episode's.
            check_over: Raises when the episode must not make another request; called before each.
            base_url: The only server that the episode's requests may go to.
        """
        self._connection, self._gate = connection, gate
        self._rules, self._recorder, self._check_over = rules, recorder, check_over
        self._base_url = httpx.URL(base_url)
        self._one_at_a_time = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer an agent's request; every error is remembered by the recorder before it is raised."""
        with self._one_at_a_time:
            # Clients that retry by themselves would otherwise turn a failed episode into one with other turns.
            if self._recorder.failure is not None:
                raise self._recorder.failure
            try:
                self._check_over()
                self._check_origin(request.url)
                self._recorder.end_turn()
                body = self._rules.apply(_read_body(request))
                response = self._recorder.add_exchange(self._exchange(request, body))
                self._recorder.wait_durable()
            except AgentevalError as error:
                raise self._recorder.fail(error) from None
        return httpx.Response(200, json=response, request=request)

    def _check_origin(self, url: httpx.URL) -> None:
        """Another server is not the one that is audited, and would be shown this boot's key."""
        if (url.scheme, url.host, url.port) != (self._base_url.scheme, self._base_url.host, self._base_url.port):
            raise InputError(
                f"The agent sent a request to {url.scheme}://{url.netloc.decode()}, the run's server is "
                f"{self._base_url}. Use the context's base_url, and another client for other servers."
            )

    def _exchange(self, request: httpx.Request, body: dict[str, Any]) -> Exchange:
        sent = _with_body(request, body)
        with self._gate.enter() as slot:
            started_at, started = datetime.now(UTC), time.monotonic()
            try:
                answer = self._connection.handle_request(sent)
                content = answer.read()
            except httpx.HTTPError as error:
                reason = str(error) or type(error).__name__
                raise ServerDiedError(base_url=str(request.url.copy_with(path="/")), reason=reason) from error
            elapsed_s = time.monotonic() - started
        return Exchange(
            request=body,
            response=_read_response(answer.status_code, content),
            started_at=started_at,
            elapsed_s=elapsed_s,
            queued_s=slot.queued_s,
            requests_in_flight=slot.peak,
        )


class AsyncRecordingTransport(httpx.AsyncBaseTransport):
    """The same seam for agents that await; the exchange runs in a thread."""

    def __init__(self, inner: RecordingTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer an agent's request."""
        await request.aread()
        return await asyncio.to_thread(self._inner.handle_request, request)


def _read_body(request: httpx.Request) -> dict[str, Any]:
    if request.method != "POST" or not request.url.path.endswith(_COMPLETIONS):
        raise InputError(
            f"The agent requested {request.method} {request.url.path}; only POST {_COMPLETIONS} is recorded. "
            "Use the chat completions API in the agent."
        )
    try:
        body = json.loads(request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise InputError("The agent's request has no list of messages. Send one, as the chat completions API asks.")
    return body


def _with_body(request: httpx.Request, body: dict[str, Any]) -> httpx.Request:
    headers = {
        name: value
        for name, value in request.headers.items()
        if name.lower() not in ("content-length", "content-type", "accept-encoding")
    }
    timeout = httpx.Timeout(READ_TIMEOUT_S, connect=30.0).as_dict()
    try:
        return httpx.Request("POST", request.url, headers=headers, json=body, extensions={"timeout": timeout})
    except ValueError as error:
        raise InputError(
            f"The agent's request cannot be sent as JSON: {error}. Look for NaN or for half a character (a lone "
            "surrogate) in its messages."
        ) from error


def _read_response(status: int, content: bytes) -> dict[str, Any]:
    text = content.decode("utf-8", errors="replace")
    if status == 400 and any(words in text for words in _CONTEXT_FULL):
        raise EpisodeOverError(StopReason.CONTEXT_FULL, f"the conversation no longer fits the model: {text[:300]}")
    if status != 200:
        raise ServerRefusedError(status=status, body=text)
    try:
        response = json.loads(text)
    except ValueError as error:
        raise MalformedResponseError(field="body", reason=f"it is not JSON: {text[:200]!r}") from error
    if not isinstance(response, dict):
        raise MalformedResponseError(field="body", reason="it is not a JSON object")
    return response
