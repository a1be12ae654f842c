"""Two trajectories laid side by side: which turns agree, and what differs where they do not.

Pure over records; knows no store and no Textual. All text in the values is safe to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from agenteval.compare import (
    Trajectory,
    call_answered,
    call_asked,
    first_difference,
    full_messages,
    full_prompts,
    margin_at,
    message_text,
    token_rows,
)
from agenteval.digest import canonical_json
from agenteval.records import Divergence, EpisodeStatus, ToolCall, Turn
from agenteval.tui.text import (
    Excerpt,
    Shown,
    count,
    excerpt_around,
    logprob,
    margin,
    passed,
    quoted,
    visible,
    visible_lines,
)

_WINDOW = 120
"""Characters shown on each side of what differs."""
_LONG = 1_200
"""Characters shown of an argument list, a result or an answer."""
_PATCHES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of a turn, on both sides."""

    label: str
    a: Excerpt
    b: Excerpt
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One turn of both sides, or how the episodes ended."""

    title: str
    differences: tuple[str, ...]
    """What differs, in words; empty where the sides agree in every bit."""
    gist: Shown
    """What happened, in one phrase."""
    facts: tuple[Fact, ...]
    is_first_divergence: bool

    @property
    def mark(self) -> str:
        """A sign that tells agreement without colour."""
        if not self.differences:
            return "="
        return "~" if self.differences == ("logprobs",) and not self.is_first_divergence else "≠"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Two trajectories of one sample."""

    repeat_a: int
    repeat_b: int
    divergence: str
    """What differs first and where; a sentence where nothing does."""
    cause: Shown | None
    blocks: tuple[Block, ...]
    first: int | None
    """Place of the first divergence among the blocks."""


def align(a: Trajectory, b: Trajectory, divergence: Divergence | None) -> Diff:
    """Lay two trajectories side by side, turn n with turn n.

    Args:
        a: The one that was run first.
        b: The other one.
        divergence: What `compare` says of them.
    """
    first = None if divergence is None else divergence.turn
    prompts = [full_prompts(side.turns) for side in (a, b)]
    messages = [full_messages(side.turns) for side in (a, b)]
    blocks = []
    for place, (left, right) in enumerate(zip_longest(a.turns, b.turns)):
        if left is None or right is None:
            blocks.append(_lonely(place, left, right, is_first=place == first))
            continue
        views = [
            _TurnView(turn=turn, prompt=prompts[side][place], messages=messages[side][place])
            for side, turn in enumerate((left, right))
        ]
        token = divergence.token if divergence is not None and place == first else None
        blocks.append(_both(views[0], views[1], token, is_first=place == first))
    blocks.append(_ends(a, b, is_first=first == len(blocks)))
    return Diff(
        repeat_a=a.episode.plan.repeat,
        repeat_b=b.episode.plan.repeat,
        divergence=_sentence(a, b, divergence),
        cause=None if divergence is None else visible(divergence.cause),
        blocks=tuple(blocks),
        first=first,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TurnView:
    turn: Turn
    prompt: tuple[int, ...]
    messages: tuple[dict[str, Any], ...]


def _sentence(a: Trajectory, b: Trajectory, divergence: Divergence | None) -> str:
    if any(side.episode.status is EpisodeStatus.NOT_RUN for side in (a, b)):
        return "not compared: one side has no end"
    if divergence is None:
        return "equal in every bit"
    where = f"turn {divergence.turn}" + ("" if divergence.token is None else f" token {divergence.token}")
    return f"{divergence.level} differ from {where} on"


def _both(a: _TurnView, b: _TurnView, token: int | None, *, is_first: bool) -> Block:
    """A turn that both sides have; `token` is the divergence's where it falls in this turn."""
    left, right = a.turn, b.turn
    calls_a, calls_b = left.tool_calls, right.tool_calls
    same_tokens = left.output_ids == right.output_ids
    token = _first_token(left, right) if token is None else token
    differences = tuple(
        name
        for name, differs in {
            "prompt": a.prompt != b.prompt,
            "tokens": not same_tokens,
            "logprobs": same_tokens and token_rows(left) != token_rows(right),
            "calls": list(map(call_asked, calls_a)) != list(map(call_asked, calls_b)),
            "results": list(map(call_answered, calls_a)) != list(map(call_answered, calls_b)),
        }.items()
        if differs
    )
    facts = [
        _fact("prompt", f"{left.prompt_tokens:,} tokens", f"{right.prompt_tokens:,} tokens"),
        _fact("cached", count(left.cached_tokens), count(right.cached_tokens)),
        _fact("in flight", str(left.requests_in_flight), str(right.requests_in_flight)),
        *([_fact("boot", left.boot_id, right.boot_id)] if left.boot_id != right.boot_id else []),
        *(_message_facts(a.messages, b.messages) if "prompt" in differences else []),
        _output_fact(left, right, token),
        *([] if token is None else _token_facts(left, right, token)),
        *(fact for pair in zip_longest(calls_a, calls_b) for fact in _call_facts(*pair)),
    ]
    return Block(
        title=f"turn {left.turn}",
        differences=differences,
        gist=_gist(left, right),
        facts=tuple(facts),
        is_first_divergence=is_first,
    )


def _first_token(a: Turn, b: Turn) -> int | None:
    """The first output token that differs; where none does, the first that differs in a logprob."""
    token = first_difference(a.output_ids, b.output_ids)
    return first_difference(token_rows(a), token_rows(b)) if token is None else token


def _gist(a: Turn, b: Turn) -> Shown:
    """The calls of both sides, and the cache where it differs."""
    phrases = [", ".join(map(_call_phrase, turn.tool_calls)) or "no call" for turn in (a, b)]
    gist = phrases[0] if phrases[0] == phrases[1] else " | ".join(phrases)
    if a.cached_tokens != b.cached_tokens:
        gist = f"cached {count(a.cached_tokens)} | {count(b.cached_tokens)}  {gist}"
    return Shown(gist)


def _call_phrase(call: ToolCall) -> str:
    return f"{visible(call.tool, 40)}({visible(call.arguments, 80)})"


def _fact(label: str, a: str, b: str) -> Fact:
    return Fact(
        label=label,
        a=Excerpt(before=visible_lines(a, _LONG)),
        b=Excerpt(before=visible_lines(b, _LONG)),
        differs=a != b,
    )


def _message_facts(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> list[Fact]:
    """The first message that differs, around the first character that does."""
    for place, (left, right) in enumerate(zip_longest(a, b)):
        if left != right:
            texts = [message_text(message) for message in (left, right)]
            start = first_difference(*texts) or 0
            sides = [excerpt_around(text, start, start + 1, _WINDOW) for text in texts]
            return [Fact(label=f"message {place}", a=sides[0], b=sides[1], differs=True)]
    return [_fact("message", "messages agree; the template or tokenizer made other ids", "the same messages")]


def _output_fact(a: Turn, b: Turn, token: int | None) -> Fact:
    """What the model wrote, the token in question marked."""
    if token is None:
        text = "".join(a.output_tokens)
        same = Excerpt(before=visible(text, _LONG))
        return Fact(label="output", a=same, b=same, differs=False)
    sides = [_output_excerpt(turn, token) for turn in (a, b)]
    return Fact(label="output", a=sides[0], b=sides[1], differs=a.output_ids != b.output_ids)


def _output_excerpt(turn: Turn, token: int) -> Excerpt:
    start = len("".join(turn.output_tokens[:token]))
    end = start + len("".join(turn.output_tokens[token : token + 1]))
    return excerpt_around("".join(turn.output_tokens), start, end, _WINDOW)


def _token_facts(a: Turn, b: Turn, token: int) -> list[Fact]:
    """The two best candidates of both sides at one token."""
    rows: list[tuple[str, str, str]] = [
        (f"token {token}", _chosen(a, token), _chosen(b, token)),
        ("runner-up", _runner_up(a, token), _runner_up(b, token)),
        ("margin", _margin(a, token), _margin(b, token)),
    ]
    facts = [
        Fact(label=label, a=Excerpt(before=Shown(x)), b=Excerpt(before=Shown(y)), differs=x != y)
        for label, x, y in rows
    ]
    differs_at = first_difference(a.output_ids, b.output_ids)
    same = len(a.output_ids) if differs_at is None else differs_at
    gaps = [abs(x - y) for x, y in zip(a.logprobs[:same], b.logprobs[:same], strict=False) if x != y]
    if gaps:
        text = Excerpt(before=Shown(f"{len(gaps)} of {same} equal tokens differ in logprob, by up to {max(gaps):.3g}"))
        facts.append(Fact(label="logprobs", a=text, b=Excerpt(), differs=True))
    return facts


def _chosen(turn: Turn, token: int) -> str:
    if token >= len(turn.output_ids):
        return "(the output has ended)"
    value = turn.logprobs[token] if token < len(turn.logprobs) else None
    return f"{quoted(turn.output_tokens[token])} {logprob(value)}"


def _runner_up(turn: Turn, token: int) -> str:
    if token >= len(turn.runner_up_tokens):
        return "-"
    return f"{quoted(turn.runner_up_tokens[token])} {logprob(turn.runner_up_logprobs[token])}"


def _margin(turn: Turn, token: int) -> str:
    return "-" if token >= len(turn.logprobs) else margin(margin_at(turn, token))


def _call_facts(a: ToolCall | None, b: ToolCall | None) -> list[Fact]:
    """A call of both sides, what it returned and what it did to the world."""
    rows = [
        ("call", _call_text(a), _call_text(b)),
        ("result", _result_text(a), _result_text(b)),
        ("world", _patch_text(a), _patch_text(b)),
    ]
    return [_fact(label, x, y) for label, x, y in rows if x or y]


def _call_text(call: ToolCall | None) -> str:
    return "(no such call)" if call is None else f"{call.tool}({call.arguments})"


def _result_text(call: ToolCall | None) -> str:
    if call is None:
        return ""
    return call.result if call.error is None else f"{call.result}\nerror: {call.error}"


def _patch_text(call: ToolCall | None) -> str:
    if call is None:
        return ""
    lines = [
        f"{step.get('op')} {step.get('path')}" + (f" {canonical_json(step['value'])}" if "value" in step else "")
        for step in call.world_patch[:_PATCHES]
    ]
    hidden = len(call.world_patch) - _PATCHES
    return "\n".join([*lines, f"and {hidden} more"] if hidden > 0 else lines)


def _lonely(place: int, a: Turn | None, b: Turn | None, *, is_first: bool) -> Block:
    """A turn that only one side has."""
    turn = a or b
    assert turn is not None
    ended = "(the episode has ended)"
    text = "".join(turn.output_tokens)
    calls = "\n".join(map(_call_text, turn.tool_calls))
    rows = [("output", text), ("call", calls)] if calls else [("output", text)]
    return Block(
        title=f"turn {place}",
        differences=("length",),
        gist=Shown(", ".join(map(_call_phrase, turn.tool_calls)) or "no call"),
        facts=tuple(_fact(label, value if a else ended, value if b else ended) for label, value in rows),
        is_first_divergence=is_first,
    )


def _ends(a: Trajectory, b: Trajectory, *, is_first: bool) -> Block:
    """How the two episodes ended."""
    left, right = a.episode, b.episode
    facts = [
        _fact("result", passed(a.passed), passed(b.passed)),
        _fact("stopped", left.stop_reason, right.stop_reason),
        _fact("answer", left.answer or "(none)", right.answer or "(none)"),
        *([_fact("message", left.message or "", right.message or "")] if left.message or right.message else []),
        _fact("turns", str(left.turns), str(right.turns)),
    ]
    gist = passed(a.passed) if a.passed == b.passed else f"{passed(a.passed)} | {passed(b.passed)}"
    return Block(
        title="end",
        differences=tuple(fact.label for fact in facts if fact.differs),
        gist=Shown(gist),
        facts=tuple(facts),
        is_first_divergence=is_first,
    )
