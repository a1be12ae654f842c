"""What a stored answer itself shows: whether it contradicts its request, its own tokens, or arithmetic.

Probes show that a server can obey; these show that it did, turn by turn, as far as an answer can tell.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.digest import canonical_json
from agenteval.records import Turn

_GUIDES = ("response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar")
_SHAPERS = ("presence_penalty", "frequency_penalty", "logit_bias", "bad_words", "allowed_token_ids", "min_tokens")
"""Fields that may keep the likeliest token from being taken; the logprobs are those before them."""
_BANNED = -100.0
"""A bias that no logit outweighs."""
_DRAFTED = 16
"""Tokens that a drafting model may have written beyond a stop before it is seen."""
_ROUNDING = 1e-3
"""What a sum of probabilities may exceed 1 by, since logprobs are stored in 32 bits."""
_CALL = re.compile(r'\{\s*"name"\s*:')
"""Begins a call in both syntaxes that are read."""
_UNREADABLE = "\ufffd"
"""Stands in a token's text for the part of a character, so that the texts cannot be joined."""


def is_greedy(turn: Turn) -> bool:
    """Whether each token must be the likeliest one: nothing is drawn, guided, banned or penalised."""
    request = turn.request
    is_guided = request.get("tool_choice") not in (None, "auto", "none") or any(request.get(name) for name in _GUIDES)
    is_shaped = any(request.get(name) for name in _SHAPERS) or request.get("repetition_penalty") not in (None, 1.0)
    return request.get("temperature") == 0 and not is_guided and not is_shaped


def disobedience(turn: Turn) -> Iterator[str]:
    """In what an answer does what its request's sampling fields forbid."""
    request, ids = turn.request, turn.output_ids
    if is_greedy(turn):
        pairs = zip(turn.logprobs, turn.runner_up_logprobs, strict=True)
        place = next((place for place, (own, rival) in enumerate(pairs) if rival is not None and rival > own), None)
        if place is not None:
            yield f"greedy, but token {place} was less likely than its rival"
    allowed = request.get("allowed_token_ids")
    if allowed and not set(ids) <= set(allowed):
        yield "a token that allowed_token_ids does not have"
    least = request.get("min_tokens") or 0
    if len(ids) < least and turn.finish_reason != "length":
        yield f"{len(ids)} tokens, fewer than min_tokens {least}"
    if set(ids[least:-1]) & set(request.get("stop_token_ids") or ()):
        yield "tokens after one of stop_token_ids"
    if not least:
        written = "".join(turn.output_tokens[:-_DRAFTED])
        yield from (f"it went on after the stop text {text!r}" for text in request.get("stop") or () if text in written)
    banned = {int(token) for token, bias in (request.get("logit_bias") or {}).items() if bias <= _BANNED}
    if banned & set(ids):
        yield "a token that logit_bias bans"


def is_distribution(turn: Turn) -> bool:
    """Whether chosen token and runner-up can be parts of one distribution, at every place."""
    return all(
        own <= _ROUNDING and math.exp(min(own, 0.0)) + (0.0 if rival is None else math.exp(rival)) <= 1 + _ROUNDING
        for own, rival in zip(turn.logprobs, turn.runner_up_logprobs, strict=True)
    )


def says_its_tokens(turn: Turn) -> bool | None:
    """Whether text and tool calls, as the agent got them, are what the tokens say.

    None where that cannot be told: characters are cut between tokens, or calls are written in a syntax that is not
    read here (Hermes' and vLLM's list of guided calls are).
    """
    text = "".join(turn.output_tokens)
    if _UNREADABLE in text:
        return None
    if _content(turn).strip() not in text:
        return False
    told = [_told(call) for call in _message(turn).get("tool_calls") or ()]
    if not told:
        return True
    written = list(_written(text))
    return None if None in told or not written else all(call in written for call in told)


def _content(turn: Turn) -> str:
    return turn.content or ""


def _message(turn: Turn) -> Mapping[str, Any]:
    choices = turn.response.get("choices")
    message = choices[0].get("message") if isinstance(choices, list) and choices else None
    return message if isinstance(message, dict) else {}


def _told(call: Any) -> str | None:
    """A tool call of the response, canonical; None where its arguments are no JSON."""
    function = call["function"]
    try:
        return canonical_json([function["name"], json.loads(function["arguments"])])
    except (ValueError, RecursionError):
        return None


def _written(text: str) -> Iterator[str]:
    """The tool calls in what a model wrote, canonical."""
    decoder = json.JSONDecoder()
    for start in _CALL.finditer(text):
        try:
            value, _ = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        given = value.get("arguments", value.get("parameters"))
        if given is not None:
            yield canonical_json([value["name"], given])
