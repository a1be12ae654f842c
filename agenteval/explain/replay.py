"""Asks a live server for a recorded turn again, under one condition."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx

from agenteval.client import EpisodeRecorder, Exchange, TurnIdentity
from agenteval.compare import first_difference
from agenteval.errors import MalformedResponseError, ServerDiedError, ServerRefusedError
from agenteval.explain.model import Answer, Condition, Match, Subject, Trial
from agenteval.explain.subject import tells_tokens_apart
from agenteval.records import Turn
from agenteval.server import Server

CANDIDATES = 10
"""Logprobs asked for at each position, so that both sides' tokens are among them."""
_TIMEOUT_S = 1_800.0
_COMPANY = "\n\n(Request {place} of those that keep it company.)"


class Replayer:
    """Sends a subject's requests to one server; each trial has cache salts of its own."""

    def __init__(self, subject: Subject, server: Server, *, model_name: str, check_over: Callable[[], None]) -> None:
        """Bind the replays to a server.

        Args:
            subject: What is asked for again.
            server: A healthy one with its cache on.
            model_name: The name under which it serves the model.
            check_over: Raises when no other request may be made.
        """
        self._subject, self._server = subject, server
        self._model_name, self._check_over = model_name, check_over

    def try_once(self, condition: Condition, attempt: int) -> Trial:
        """One trial.

        Raises:
            ServerError: If the server refuses or fails.
        """
        salt = f"agenteval-explain-{uuid.uuid4().hex}"
        if condition.warm_tokens:
            self._warm(condition.warm_tokens, salt)
        if condition.history is not None:
            for request in self._subject.requests[condition.history == "b"][:-1]:
                self._chat(request, salt)
        turn, response = self._in_company(condition.company, salt)
        return self._trial(condition, attempt, turn, response)

    def _warm(self, tokens: int, salt: str) -> None:
        """Have the prompt's first tokens computed and kept; one more is asked for, since a hit ends before the last."""
        body = {
            "model": self._model_name,
            "prompt": list(self._subject.prompt_ids[: tokens + 1]),
            "max_tokens": 1,
            "temperature": 0.0,
            "cache_salt": salt,
        }
        self._post("/v1/completions", body)

    def _in_company(self, company: int, salt: str) -> tuple[Turn, dict[str, Any]]:
        """The turn, sent at the same moment as so many others that are nearly it."""
        request = self._subject.requests[0][-1]
        if not company:
            return self._chat(request, salt)
        barrier = threading.Barrier(company + 1)

        def send(body: dict[str, Any], own_salt: str) -> tuple[Turn, dict[str, Any]]:
            barrier.wait()
            return self._chat(body, own_salt)

        with ThreadPoolExecutor(company + 1) as threads:
            for place in range(company):
                other = {**request, "messages": _with_remark(request["messages"], _COMPANY.format(place=place))}
                threads.submit(send, other, f"{salt}-{place}")
            return threads.submit(send, request, salt).result()

    def _chat(self, request: dict[str, Any], salt: str) -> tuple[Turn, dict[str, Any]]:
        body = {**request, "model": self._model_name, "cache_salt": salt, "top_logprobs": CANDIDATES}
        started_at = datetime.now(UTC)
        response = self._post("/v1/chat/completions", body)
        turns: list[Turn] = []
        recorder = EpisodeRecorder(
            TurnIdentity(run_id="", boot_id="", episode_id="", kind="probe"),
            lambda turn: turns.append(turn) or (lambda: None),  # type: ignore[func-returns-value]
        )
        recorder.add_exchange(
            Exchange(
                request=body,
                response=response,
                started_at=started_at,
                elapsed_s=0.0,
                queued_s=0.0,
                requests_in_flight=1,
            )
        )
        recorder.end_turn()
        return turns[0], response

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._check_over()
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

    def _trial(self, condition: Condition, attempt: int, turn: Turn, response: dict[str, Any]) -> Trial:
        subject = self._subject
        end = subject.token + 1
        answer = Answer(token_ids=turn.output_ids[:end], tokens=turn.output_tokens[:end], logprobs=turn.logprobs[:end])
        match = _match(answer, subject)
        departs = [first_difference(answer.token_ids, recorded.token_ids) for recorded in subject.answers]
        return Trial(
            condition=condition,
            attempt=attempt,
            is_same_prompt=turn.prompt_added == subject.prompt_ids,
            cached_tokens=turn.cached_tokens,
            is_reached=_is_reached(condition, turn.cached_tokens),
            answer=answer,
            match=match,
            departs_at=None if match != "neither" else max(place or 0 for place in departs),
            candidate_logprobs=_candidate_logprobs(response, subject),
        )


def _is_reached(condition: Condition, cached_tokens: int | None) -> bool:
    """Whether the cache held what a condition asks for; a hit that a server does not count is not shown."""
    if condition.history is not None:
        return bool(cached_tokens)
    return (cached_tokens or 0) == condition.warm_tokens


def _match(answer: Answer, subject: Subject) -> Match:
    """Which recorded answer this is, up to the place where the two part."""
    by_tokens = tells_tokens_apart(subject)
    is_a, is_b = (
        answer.token_ids == recorded.token_ids and (by_tokens or answer.logprobs == recorded.logprobs)
        for recorded in subject.answers
    )
    if is_a and is_b:
        return "both"
    return "a" if is_a else "b" if is_b else "neither"


def _candidate_logprobs(response: dict[str, Any], subject: Subject) -> tuple[float | None, float | None]:
    """Logprobs of both sides' tokens at the place, as far as the server tells them."""
    entries = response["choices"][0]["logprobs"]["content"]
    if subject.token >= len(entries):
        return None, None
    entry = entries[subject.token]
    known = {rival["token"]: float(rival["logprob"]) for rival in entry.get("top_logprobs") or ()}
    known.setdefault(entry["token"], float(entry["logprob"]))
    first, second = (known.get(token) for token in subject.candidates)
    return first, second


def _with_remark(messages: Sequence[dict[str, Any]], remark: str) -> list[dict[str, Any]]:
    """The same conversation, its last text a little longer: near in length, and another prompt."""
    changed = [dict(message) for message in messages]
    for message in reversed(changed):
        if isinstance(message.get("content"), str):
            message["content"] += remark
            break
    return changed
