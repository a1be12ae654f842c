"""One episode's exchanges -> its turns, each stored as what it adds to the one before."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeGuard

from agenteval.errors import AgentError, AgentevalError, MalformedResponseError
from agenteval.records import StopReason, ToolCall, Turn, TurnKind

WaitDurable = Callable[[], None]
"""Blocks until the turn that was handed over is on disk; raises when it cannot be written."""
HandOver = Callable[[Turn], WaitDurable]
"""Takes a finished turn."""
_MAX_COUNT = 2**31
"""Token ids and counts are stored as 32-bit integers; no vocabulary and no context comes near."""
_IN_FIELDS = ("prompt_token_ids", "prompt_logprobs")


class EpisodeOverError(AgentevalError):
    """The episode has come to its end, although the agent would go on; raised into the agent to stop it."""

    def __init__(self, stop_reason: StopReason, message: str) -> None:
        self.stop_reason = stop_reason
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its response, whole, as they went over the wire."""

    request: dict[str, Any]
    response: dict[str, Any]
    started_at: datetime
    elapsed_s: float
    queued_s: float
    requests_in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnIdentity:
    """Whose turns these are."""

    run_id: str
    boot_id: str
    episode_id: str
    kind: TurnKind


class EpisodeRecorder:
    """Collects an episode's turns and hands each over as soon as it has ended.

    A turn ends when the next request of the episode begins, or the episode itself: only then have all its tool calls
    been made. Requests come one at a time, which the transport sees to; calls may come from other threads.
    """

    def __init__(self, identity: TurnIdentity, hand_over: HandOver) -> None:
        self._identity, self._hand_over = identity, hand_over
        self._lock = threading.RLock()
        self._pending: Turn | None = None
        self._wait: WaitDurable | None = None
        self._server_ids: dict[str, str] = {}
        self._history: list[int] = []
        self._messages: list[dict[str, Any]] = []
        self.turns = 0
        """Turns so far, the pending one included."""
        self.output_tokens = 0
        """Tokens that the model wrote in all turns so far."""
        self.failure: AgentevalError | None = None
        """The first error of the seam; agents may wrap or swallow it, the loop must not."""
        self.calls: list[tuple[int, ToolCall]] = []
        """Every tool call of the episode with its turn, in order."""

    def fail(self, error: AgentevalError) -> AgentevalError:
        """Remember the first error, and give it back to be raised."""
        self.failure = self.failure or error
        return error

    def end_turn(self) -> None:
        """Hand the pending turn over; writing goes on in the background."""
        with self._lock:
            if self._pending is not None:
                self._wait = self._hand_over(self._pending)
                self._pending = None

    def wait_durable(self) -> None:
        """Block until the turn handed over last is on disk."""
        if self._wait is not None:
            self._wait()
            self._wait = None

    def add_exchange(self, exchange: Exchange) -> dict[str, Any]:
        """Make the next turn of an exchange; gives the response with deterministic tool-call ids.

        Raises:
            MalformedResponseError: If the response lacks what the evidence rests on.
        """
        turn = self._build(exchange)
        response, self._server_ids = _with_fixed_ids(exchange.response, self.turns)
        with self._lock:
            self._pending = turn
            self.turns += 1
            self.output_tokens += len(turn.output_ids)
        return response

    def add_tool_call(self, call: ToolCall) -> None:
        """Add a call to the pending turn; its server id is filled in.

        Raises:
            AgentError: If no turn could have caused it: it came before the first one, or during the next request.
        """
        with self._lock:
            if self._pending is None:
                raise self.fail(
                    AgentError(
                        episode=self._identity.episode_id,
                        reason=f"it called the tool {call.tool!r} outside of a turn; call tools between two requests",
                    )
                )
            call = replace(call, server_call_id=self._server_ids.get(call.call_id, ""))
            self.calls.append((self._pending.turn, call))
            self._pending = replace(self._pending, tool_calls=(*self._pending.tool_calls, call))

    def calls_this_turn(self) -> int:
        """Tool calls of the pending turn so far."""
        return 0 if self._pending is None else len(self._pending.tool_calls)

    def _build(self, exchange: Exchange) -> Turn:
        choice, prompt_ids, output_ids = _read_choice(exchange.response)
        entries = _read_logprobs(choice, len(output_ids))
        messages = exchange.request["messages"]
        kept = _common_prefix(self._history, prompt_ids)
        messages_kept = _common_prefix(self._messages, messages)
        turn = Turn(
            run_id=self._identity.run_id,
            boot_id=self._identity.boot_id,
            episode_id=self._identity.episode_id,
            turn=self.turns,
            kind=self._identity.kind,
            started_at=exchange.started_at,
            elapsed_s=exchange.elapsed_s,
            queued_s=exchange.queued_s,
            requests_in_flight=exchange.requests_in_flight,
            request={key: value for key, value in exchange.request.items() if key != "messages"},
            messages_kept=messages_kept,
            messages_added=tuple(messages[messages_kept:]),
            prompt_tokens=len(prompt_ids),
            prompt_kept=kept,
            prompt_added=tuple(prompt_ids[kept:]),
            is_continuous=None if self.turns == 0 else kept == len(self._history),
            output_ids=tuple(output_ids),
            output_tokens=tuple(entry["token"] for entry in entries),
            logprobs=tuple(float(entry["logprob"]) for entry in entries),
            runner_up_tokens=tuple(_runner_up(entry)[0] for entry in entries),
            runner_up_logprobs=tuple(_runner_up(entry)[1] for entry in entries),
            cached_tokens=_cached_tokens(exchange.response),
            finish_reason=choice.get("finish_reason"),
            content=choice["message"].get("content"),
            response=_rest_of(exchange.response),
        )
        self._history = [*prompt_ids, *output_ids]
        self._messages = list(messages)
        return turn


def _read_choice(response: dict[str, Any]) -> tuple[dict[str, Any], list[int], list[int]]:
    """The only choice, the prompt's ids and the output's ids."""
    choices = response.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise MalformedResponseError(field="choices", reason="there is not exactly one with a message")
    calls = choice["message"].get("tool_calls") or []
    if not isinstance(calls, list) or not all(map(_is_call, calls)):
        raise MalformedResponseError(field="choices[0].message.tool_calls", reason="it is no list of function calls")
    for field, value in (
        ("message.content", choice["message"].get("content")),
        ("finish_reason", choice.get("finish_reason")),
    ):
        if value is not None and not isinstance(value, str):
            raise MalformedResponseError(field=f"choices[0].{field}", reason="it is no text")
    prompt_ids, output_ids = response.get("prompt_token_ids"), choice.get("token_ids")
    if not _are_ids(prompt_ids) or not prompt_ids:
        raise MalformedResponseError(field="prompt_token_ids", reason="it is missing, empty or no list of integers")
    if not _are_ids(output_ids):
        raise MalformedResponseError(field="choices[0].token_ids", reason="it is missing or no list of integers")
    return choice, prompt_ids, output_ids


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return isinstance(function, dict) and all(isinstance(function.get(name), str) for name in ("name", "arguments"))


def _are_ids(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < _MAX_COUNT for item in value)


def _read_logprobs(choice: dict[str, Any], tokens: int) -> list[dict[str, Any]]:
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or len(content) != tokens:
        found = f"{len(content)} entries for {tokens} tokens" if isinstance(content, list) else "it is missing"
        raise MalformedResponseError(field="choices[0].logprobs.content", reason=found)
    for place, entry in enumerate(content):
        if not _is_candidate(entry) or not all(map(_is_candidate, entry.get("top_logprobs") or [])):
            raise MalformedResponseError(
                field=f"choices[0].logprobs.content[{place}]", reason="it has no token or no finite logprob"
            )
    return content


def _is_candidate(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return False
    logprob = entry.get("logprob")
    # NaN is not even equal to itself, so no comparison of repeats could ever agree on it.
    return isinstance(logprob, int | float) and -sys.float_info.max <= logprob <= sys.float_info.max


def _cached_tokens(response: dict[str, Any]) -> int | None:
    """Prompt tokens read from the cache; anything but a count is unknown, never zero."""
    usage = response.get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    count = details.get("cached_tokens") if isinstance(details, dict) else None
    return count if type(count) is int and 0 <= count < _MAX_COUNT else None


def _runner_up(entry: dict[str, Any]) -> tuple[str | None, float | None]:
    """The best candidate that was not chosen; under guided decoding it may be likelier than the chosen one."""
    rivals = list(entry.get("top_logprobs") or [])
    # Two tokens may have one text (halves of a character), so only one candidate is taken for the chosen one.
    chosen = (entry["token"], entry["logprob"])
    own = next((place for place, rival in enumerate(rivals) if (rival["token"], rival["logprob"]) == chosen), None)
    if own is not None:
        del rivals[own]
    if not rivals:
        return None, None
    best = max(rivals, key=lambda rival: float(rival["logprob"]))
    return best["token"], float(best["logprob"])


def _with_fixed_ids(response: dict[str, Any], turn: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The response with each tool call's id made of turn and place, and the map back to the server's ids."""
    calls = response["choices"][0]["message"].get("tool_calls")
    if not calls:
        return response, {}
    ids = {call_id(turn, place): str(call.get("id", "")) for place, call in enumerate(calls)}
    copy: dict[str, Any] = json.loads(json.dumps(response))
    for place, call in enumerate(copy["choices"][0]["message"]["tool_calls"]):
        call["id"] = call_id(turn, place)
    return copy, ids


def call_id(turn: int, place: int) -> str:
    """Id of a tool call by where it stands; equal in every repeat."""
    return f"call_{turn:03d}_{place:02d}"


def _rest_of(response: dict[str, Any]) -> dict[str, Any]:
    """The response without what a turn's own fields hold."""
    rest = {key: value for key, value in response.items() if key not in _IN_FIELDS}
    choice = {key: value for key, value in response["choices"][0].items() if key not in ("token_ids", "logprobs")}
    return {**rest, "choices": [choice]}


def _common_prefix(a: Sequence[Any], b: Sequence[Any]) -> int:
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    return next(place for place in range(length) if a[place] != b[place])
