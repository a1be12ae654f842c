"""Asks a live server for a recorded turn again, under one condition."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from agenteval.client import EpisodeRecorder, Exchange, Gate, TurnIdentity
from agenteval.errors import MalformedResponseError, ServerDiedError, ServerRefusedError
from agenteval.explain.model import Condition, Match, Side, Subject, Trial
from agenteval.explain.subject import answer_of
from agenteval.records import Turn
from agenteval.server import Server

CANDIDATES = 10
"""Logprobs asked for at each position, so that both sides' tokens are among them."""
_TIMEOUT_S = 1_800.0
_MOST_AT_ONCE = 1_024
"""Requests that a gate which only counts lets through: as many as a contract may ask for."""
_SIDES: tuple[Side, Side] = ("a", "b")
_COMPANY = "\n\n(Request {place} of those that keep it company.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """An exchange as a turn, and what a turn does not hold."""

    turn: Turn
    response: dict[str, Any]
    has_company: bool = True
    """Whether the server took every other request that was sent beside it."""


class Replayer:
    """Sends a subject's requests to one server; each trial has cache salts of its own."""

    def __init__(
        self,
        subject: Subject,
        server: Server,
        *,
        model_name: str,
        check_over: Callable[[], None],
        record: Callable[[Exchange], None],
    ) -> None:
        """Bind the replays to a server.

        Args:
            subject: What is asked for again.
            server: A healthy one with its cache on.
            model_name: The name under which it serves the model.
            check_over: Raises when no other request may be made.
            record: Takes every exchange, whole, from any thread.
        """
        self._subject, self._server = subject, server
        self._model_name, self._check_over, self._record = model_name, check_over, record
        self._gate = Gate(_MOST_AT_ONCE)
        self._null_is_zero: bool | None = None

    def try_once(self, condition: Condition, attempt: int) -> Trial:
        """One trial.

        Raises:
            ServerError: If the server refuses or fails.
        """
        salt = f"agenteval-explain-{uuid.uuid4().hex}"
        if condition.warm_tokens:
            self._prefill(self._subject.prompt_ids[: condition.warm_tokens + 1], salt)
        has_head = condition.history is None or self._send_history(condition, salt)
        reply = self._in_company(condition, salt)
        return self._trial(condition, attempt, salt, reply, has_head)

    def _send_history(self, condition: Condition, salt: str) -> bool:
        """A side's earlier turns; tells whether the first of them found in the cache what it should."""
        if condition.head_tokens:
            self._prefill(self._subject.first_prompt_ids[: condition.head_tokens + 1], salt)
        requests = self._subject.requests[condition.history == "b"][:-1]
        replies = [self._chat(request, salt) for request in requests]
        return self._cached(replies[0].turn) == condition.head_tokens

    def _prefill(self, prompt_ids: Sequence[int], salt: str) -> None:
        """Have token ids computed and kept; one token is asked for, since there is no answer without."""
        body = {
            "model": self._model_name,
            "prompt": list(prompt_ids),
            "max_tokens": 1,
            "temperature": 0.0,
            "cache_salt": salt,
        }
        self._post("/v1/completions", body)

    def _cached(self, turn: Turn) -> int | None:
        """Tokens read from the cache; a null is zero from a server that is seen to count where there is a hit."""
        if turn.cached_tokens is None and self._null_is_zero is None:
            salt = f"agenteval-explain-{uuid.uuid4().hex}"
            self._prefill(self._subject.prompt_ids, salt)
            # Asked for as every trial is: a server may count for one path and not for another.
            hit = self._chat(self._subject.requests[0][-1], salt)
            self._null_is_zero = bool(hit.turn.cached_tokens)
        return 0 if turn.cached_tokens is None and self._null_is_zero else turn.cached_tokens

    def _in_company(self, condition: Condition, salt: str) -> _Reply:
        """The turn, sent at the same moment as so many others that are nearly it."""
        request = self._subject.requests[condition.request_of == "b"][-1]
        company = condition.company
        if not company:
            return self._chat(request, salt)
        barrier = threading.Barrier(company + 1)

        def send(body: dict[str, Any], own_salt: str) -> _Reply:
            barrier.wait()
            return self._chat(body, own_salt)

        with ThreadPoolExecutor(company + 1) as threads:
            others = [
                threads.submit(send, _with_remark(request, _COMPANY.format(place=place)), f"{salt}-{place}")
                for place in range(company)
            ]
            reply = threads.submit(send, request, salt).result()
        return _Reply(turn=reply.turn, response=reply.response, has_company=all(map(_was_taken, others)))

    def _chat(self, request: dict[str, Any], salt: str) -> _Reply:
        body = {**request, "model": self._model_name, "cache_salt": salt, "top_logprobs": CANDIDATES}
        exchange = self._post("/v1/chat/completions", body)
        turns: list[Turn] = []

        def keep(turn: Turn) -> Callable[[], None]:
            turns.append(turn)
            return lambda: None

        recorder = EpisodeRecorder(TurnIdentity(run_id="", boot_id="", episode_id="", kind="probe"), keep)
        recorder.add_exchange(exchange)
        recorder.end_turn()
        return _Reply(turn=turns[0], response=exchange.response)

    def _post(self, path: str, body: dict[str, Any]) -> Exchange:
        self._check_over()
        with self._gate.enter() as slot:
            started_at, started_s = datetime.now(UTC), time.monotonic()
            response = self._send(path, body)
            elapsed_s = time.monotonic() - started_s
        exchange = Exchange(
            request=body,
            response=response,
            started_at=started_at,
            elapsed_s=elapsed_s,
            queued_s=slot.queued_s,
            requests_in_flight=slot.peak,
        )
        self._record(exchange)
        return exchange

    def _send(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._server.api_key}"}
        try:
            answer = httpx.post(
                f"{self._server.base_url}{path}", json=body, headers=headers, timeout=_TIMEOUT_S, trust_env=False
            )
        except httpx.HTTPError as error:
            raise ServerDiedError(base_url=self._server.base_url, reason=str(error)) from error
        if answer.status_code != httpx.codes.OK:
            raise ServerRefusedError(status=answer.status_code, body=answer.text)
        try:
            found = answer.json()
        except ValueError as error:
            raise MalformedResponseError(field="body", reason="it is no JSON") from error
        if not isinstance(found, dict):
            raise MalformedResponseError(field="body", reason="it is no object")
        return found

    def _trial(self, condition: Condition, attempt: int, salt: str, reply: _Reply, has_head: bool) -> Trial:
        subject, turn = self._subject, reply.turn
        cached = self._cached(turn)
        answer = answer_of(turn, subject.token)
        departs = {side: subject.difference(answer, side) for side in _SIDES}
        match: Match = next((side for side in _SIDES if departs[side] is None), "neither")
        return Trial(
            condition=condition,
            attempt=attempt,
            request_id=str(reply.response.get("id", "")),
            cache_salt=salt,
            is_same_prompt=turn.prompt_added == subject.prompt_ids,
            cached_tokens=cached,
            requests_in_flight=turn.requests_in_flight,
            is_reached=has_head and reply.has_company and _is_reached(condition, cached, turn.requests_in_flight),
            answer=answer,
            match=match,
            is_exact=match != "neither" and answer.rows == subject.answers[match == "b"].rows,
            departs_at=None if match != "neither" else max(place or 0 for place in departs.values()),
            candidate_logprobs=_candidate_logprobs(reply, subject),
        )


def _was_taken(other: Future[_Reply]) -> bool:
    """Whether a request of the company was answered.

    Raises:
        StoppedError: If the user asks for a stop.
        ServerDiedError: If the server is gone.
    """
    try:
        other.result()
    except (ServerRefusedError, MalformedResponseError):
        return False
    return True


def _is_reached(condition: Condition, cached_tokens: int | None, requests_in_flight: int) -> bool:
    """Whether cache and company were as a condition asks; a hit that a server does not count is not shown."""
    if requests_in_flight != condition.company + 1:
        return False
    return bool(cached_tokens) if condition.history is not None else cached_tokens == condition.warm_tokens


def _candidate_logprobs(reply: _Reply, subject: Subject) -> tuple[float | None, float | None]:
    """Logprobs of both sides' tokens at the place, as far as the server tells them."""
    entries = reply.response["choices"][0]["logprobs"]["content"]
    if subject.token >= len(entries):
        return None, None
    entry = entries[subject.token]
    known = {rival["token"]: float(rival["logprob"]) for rival in entry.get("top_logprobs") or ()}
    known.setdefault(entry["token"], float(entry["logprob"]))
    first, second = subject.candidates
    if first == second and subject.tells_tokens_apart:
        # Two ids of one text, halves of a character for instance: the server's list does not say which is which.
        return None, None
    return known.get(first), known.get(second)


def _with_remark(request: dict[str, Any], remark: str) -> dict[str, Any]:
    """The same request, its last text a little longer: near in length, and another prompt."""
    messages = [dict(message) for message in request["messages"]]
    for message in reversed(messages):
        if isinstance(message.get("content"), str):
            message["content"] += remark
            break
    return {**request, "messages": messages}
