"""Why two trajectories part, by elimination: the first recorded difference that can explain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agenteval.compare.levels import first_difference
from agenteval.compare.model import Place, Trajectory
from agenteval.compare.places import full_messages
from agenteval.digest import canonical_json
from agenteval.records import CauseKind, Turn

_EXCERPT = 40
"""Characters shown of each side from the first one that differs."""
Cause = tuple[CauseKind, str]


def causes_of(a: Trajectory, b: Trajectory, place: Place, settings: Sequence[str]) -> list[Cause]:
    """Every recorded difference that can explain a divergence, in the order in which each rules out those after it.

    Args:
        a: The one side.
        b: The other.
        place: Where they part.
        settings: How the two runs were set otherwise, in words; empty for repeats of one run.
    """
    if place.part == "end":
        same_length = len(a.turns) == len(b.turns)
        text = "the grades differ, the trajectories do not" if same_length else "one trajectory has more turns"
        return [(CauseKind.GRADES if same_length else CauseKind.LENGTH, text)]
    if place.part == "prompt":
        return [(CauseKind.PROMPT, f"the prompts differ: {prompt_difference(a.turns, b.turns, place.turn)}")]
    if place.part == "tools":
        return [(CauseKind.TOOLS, "the tools answered otherwise")]
    found = [(CauseKind.SETTING, f"settings differ: {'; '.join(settings)}")] if settings else []
    # A hit, or company, in an earlier turn leaves its mark on the cached keys and values that this turn reads.
    found += _server_state(list(zip(a.turns, b.turns, strict=False))[: place.turn + 1])
    return found or [(CauseKind.UNEXPLAINED, "unexplained")]


def _server_state(pairs: Sequence[tuple[Turn, Turn]]) -> Iterator[Cause]:
    """Boot, cache and company, up to the turn where they part."""
    if pairs[-1][0].boot_id != pairs[-1][1].boot_id:
        yield CauseKind.BOOT, "another boot"
    cached = [(x.cached_tokens, y.cached_tokens) for x, y in pairs]
    hit = next(((x, y) for x, y in cached if x != y), None)
    if hit is not None:
        yield CauseKind.CACHE, f"cached tokens differ: {_shown(hit[0])} against {_shown(hit[1])}"
    company = [(x.requests_in_flight, y.requests_in_flight) for x, y in pairs]
    crowd = next(((x, y) for x, y in company if x != y or x > 1), None)
    if crowd is not None and crowd[0] == crowd[1]:
        yield CauseKind.BATCHING, f"company of other requests, {crowd[0]} in flight on both sides"
    elif crowd is not None:
        yield CauseKind.BATCHING, f"other requests in flight: {crowd[0]} against {crowd[1]}"


def _shown(count: int | None) -> str:
    return "unknown" if count is None else str(count)


def prompt_difference(a: Sequence[Turn], b: Sequence[Turn], turn: int) -> str:
    """Which message of a turn's prompt differs first, and from which character on.

    Args:
        a: Turns of one side, from the first.
        b: Turns of the other.
        turn: The turn whose prompts differ.
    """
    sides = [full_messages(side[: turn + 1])[turn] for side in (a, b)]
    differing = first_difference(*sides)
    if differing is None:
        return "equal messages, from which the template or tokenizer made other ids"
    pair = [side[differing] if differing < len(side) else None for side in sides]
    texts = [message_text(message) for message in pair]
    start = first_difference(*texts) or 0
    left, right = (text[start : start + _EXCERPT] for text in texts)
    return f"{_which(sides, differing)} from character {start} on: {left!r} against {right!r}"


def message_text(message: dict[str, Any] | None) -> str:
    """A message as one text: its content, then everything else in it that is not empty."""
    if message is None:
        return "(no such message)"
    content = message.get("content")
    rest = {key: value for key, value in message.items() if key not in ("role", "content") and value}
    parts = (content if isinstance(content, str) else canonical_json(content), canonical_json(rest) if rest else "")
    return f"{message.get('role')}: " + " ".join(part for part in parts if part)


def _which(sides: Sequence[Sequence[dict[str, Any]]], place: int) -> str:
    """A message by its role and number, and a tool's by the tool that it comes from."""
    message = next(side[place] for side in sides if place < len(side))
    if message.get("role") != "tool":
        return f"message {place} ({message.get('role')})"
    tools = [_tool_of(side, place) for side in sides if place < len(side)]
    return f"message {place} (result of {' and of '.join(dict.fromkeys(tools))})"


def _tool_of(messages: Sequence[dict[str, Any]], place: int) -> str:
    """The tool whose call a result answers."""
    wanted = messages[place].get("tool_call_id")
    for message in reversed(messages[:place]):
        for call in message.get("tool_calls") or ():
            if call.get("id") == wanted:
                return str(call.get("function", {}).get("name"))
    return "an unknown call"
