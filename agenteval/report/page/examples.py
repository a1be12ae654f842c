"""Examples of a comparison: both sides where a pair parts, cut to what a reader takes in, what differs set apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from agenteval.compare import Trajectory, first_difference, margin_at
from agenteval.diff import Pair
from agenteval.log import printable
from agenteval.records import Divergence, ToolCall, Turn
from agenteval.report.sides import aftermath_text
from agenteval.report.text import divergence_place

_AROUND, _DIFFERENCE, _SIGN, _TOKEN = 240, 240, 240, 80
"""Characters shown on each side of a difference, of the difference itself, of one sign, and of one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text with the part that differs set apart; safe to show, and cut where it is long."""

    before: str
    differing: str | None
    """None where nothing in it differs."""
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenShown:
    """The token at which two outputs part, as one side drew it."""

    text: str
    token_id: int
    logprob: float
    runner_up: str | None
    """None where no second candidate was recorded."""
    runner_up_logprob: float | None
    margin: float | None
    """Nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideShown:
    """One side of an example."""

    name: str
    """Of the run, or of the repeat."""
    output: Passage
    token: TokenShown | None
    """None where the difference is no token, or this side's output has ended there."""
    prompt_tokens: int
    cached_tokens: int | None
    requests_in_flight: int
    calls: tuple[tuple[Passage, Passage], ...]
    """Each call, and what it gave back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One divergence from both sides."""

    label: str
    place: str
    signs: tuple[str, ...]
    """What was recorded that could explain it, the cause first."""
    aftermath: str
    turns: tuple[int, int]
    """How many each side took."""
    sides: tuple[SideShown, SideShown] | None
    """None where one side has no such turn."""


def make_example(pair: Pair, a: Trajectory, b: Trajectory, *, names: tuple[str, str] | None) -> Example:
    """A pair as a report shows it.

    Args:
        pair: One that differs.
        a: Its first side, whole.
        b: The second.
        names: Of the two runs; None where the sides are repeats of one.
    """
    found, aftermath = pair.divergence, pair.aftermath
    assert found is not None
    assert aftermath is not None
    sides = None
    if found.turn < min(len(a.turns), len(b.turns)):
        repeats = (f"repeat {pair.repeat_a}", f"repeat {pair.repeat_b}")
        sides = _sides(found, a.turns[found.turn], b.turns[found.turn], names or repeats)
    return Example(
        label=printable(pair.label),
        place=divergence_place(found),
        signs=tuple(_cut(sign, _SIGN) for sign in pair.signs),
        aftermath=aftermath_text(aftermath, a, b),
        turns=(len(a.turns), len(b.turns)),
        sides=sides,
    )


def _sides(found: Divergence, a: Turn, b: Turn, names: tuple[str, str]) -> tuple[SideShown, SideShown]:
    """Both sides at the turn where they part, the nth call of one beside the nth of the other."""
    calls = list(zip_longest(a.tool_calls, b.tool_calls))
    asked = [_passages(*map(_asked, pair)) for pair in calls]
    given = [_passages(*map(_given, pair)) for pair in calls]
    first, second = (
        SideShown(
            name=names[side],
            output=_output(turn, found.token),
            token=_token(turn, found.token),
            prompt_tokens=turn.prompt_tokens,
            cached_tokens=turn.cached_tokens,
            requests_in_flight=turn.requests_in_flight,
            calls=tuple((call[side], result[side]) for call, result in zip(asked, given, strict=True)),
        )
        for side, turn in enumerate((a, b))
    )
    return first, second


def _output(turn: Turn, token: int | None) -> Passage:
    """A turn's output around the token that differs; its beginning where none does."""
    if token is None:
        return Passage(before=_cut("".join(turn.output_tokens), _AROUND), differing=None, after="")
    before, after = "".join(turn.output_tokens[:token]), "".join(turn.output_tokens[token + 1 :])
    differing = _token_text(turn.output_tokens[token]) if token < len(turn.output_ids) else "(ended)"
    return Passage(before=_cut_front(before, _AROUND), differing=differing, after=_cut(after, _AROUND))


def _token(turn: Turn, token: int | None) -> TokenShown | None:
    if token is None or token >= len(turn.output_ids):
        return None
    rival = turn.runner_up_tokens[token]
    return TokenShown(
        text=_token_text(turn.output_tokens[token]),
        token_id=turn.output_ids[token],
        logprob=turn.logprobs[token],
        runner_up=None if rival is None else _token_text(rival),
        runner_up_logprob=turn.runner_up_logprobs[token],
        margin=margin_at(turn, token),
    )


def _token_text(text: str) -> str:
    """A token that can be seen: some, such as those that end a turn, stand for no text."""
    return _cut(text, _TOKEN) or "(no text)"


def _asked(call: ToolCall | None) -> str:
    return "(no such call)" if call is None else f"{call.tool}({call.arguments})"


def _given(call: ToolCall | None) -> str:
    if call is None:
        return "(no result)"
    return call.result if call.error is None else f"{call.result} (error: {call.error})"


def _passages(a: str, b: str) -> tuple[Passage, Passage]:
    """Two texts, each with the stretch set apart that the other has otherwise."""
    if a == b:
        same = Passage(before=_cut(a, 2 * _AROUND), differing=None, after="")
        return same, same
    head = first_difference(a, b) or 0
    tail = first_difference(a[head:][::-1], b[head:][::-1]) or 0
    first, second = (
        Passage(
            before=_cut_front(text[:head], _AROUND),
            differing=_cut(text[head : len(text) - tail], _DIFFERENCE) or "(nothing)",
            after=_cut(text[len(text) - tail :], _AROUND),
        )
        for text in (a, b)
    )
    return first, second


def _cut(text: str, characters: int) -> str:
    """The start of a text, safe to show; says how much is left out."""
    left_out = len(text) - characters
    return printable(text) if left_out <= 0 else f"{printable(text[:characters])} … ({left_out:,} characters more)"


def _cut_front(text: str, characters: int) -> str:
    """The end of a text, as `_cut`."""
    left_out = len(text) - characters
    return printable(text) if left_out <= 0 else f"({left_out:,} characters before) … {printable(text[-characters:])}"
