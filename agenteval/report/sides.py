"""One pair of episodes, both sides at the place where they part: text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from agenteval.columns import table
from agenteval.compare import Aftermath, Trajectory, margin_at
from agenteval.diff import Pair
from agenteval.log import printable
from agenteval.records import Divergence, ToolCall, Turn
from agenteval.report.text import divergence_place, short_text

_BEFORE, _AFTER = 12, 10
"""Tokens shown before the first one that differs, and from it on."""
_CALL = 160
"""Characters of a call or a result that are shown; the TUI and --json show all."""
_INDENT = " " * 10


def sides_text(pair: Pair, a: Trajectory, b: Trajectory) -> str:
    """Both sides of a pair at their first divergence, token by token, and what came of it.

    Args:
        pair: What the comparison said.
        a: The first side, whole.
        b: The second one.
    """
    found = pair.divergence
    if found is None or pair.aftermath is None:
        return f"{printable(pair.label)}: equal in every bit"
    lines = [f"{printable(pair.label)}: {divergence_place(found)}"]
    lines += [f"{'because' if not place else '':<10}{printable(sign)}" for place, sign in enumerate(pair.signs)]
    lines.append(f"then      {aftermath_text(pair.aftermath, a, b)}")
    if found.turn < min(len(a.turns), len(b.turns)):
        lines += _turns(found, a.turns[found.turn], b.turns[found.turn])
    else:
        lines += [f"turns     {len(a.turns)} against {len(b.turns)}"]
    return "\n".join(lines)


def aftermath_text(aftermath: Aftermath, a: Trajectory, b: Trajectory) -> str:
    """What became of two trajectories after they had parted, in words."""
    if not aftermath.turns_apart:
        text = "every call and result is the same"
    elif aftermath.rejoins is None:
        text = f"apart for {_turns_word(aftermath.turns_apart)}, to the end"
    else:
        of_a, of_b = aftermath.rejoins
        apart = _turns_word(aftermath.turns_apart)
        text = f"apart for {apart}, then the same again from turn {of_a} of a and turn {of_b} of b"
    outcomes = [{True: "passed", False: "failed", None: "not graded"}[side.passed] for side in (a, b)]
    same = f"both {outcomes[0]}" if outcomes[0] == outcomes[1] else f"a {outcomes[0]}, b {outcomes[1]}"
    return f"{text}; {same}"


def _turns_word(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def _turns(found: Divergence, a: Turn, b: Turn) -> Iterator[str]:
    """The turn where they part."""
    yield f"turn {found.turn}"
    rows = [
        ("prompt tokens", f"{a.prompt_tokens:,}", f"{b.prompt_tokens:,}"),
        ("cached tokens", _count(a.cached_tokens), _count(b.cached_tokens)),
        ("in flight", str(a.requests_in_flight), str(b.requests_in_flight)),
        *([("boot", a.boot_id, b.boot_id)] if a.boot_id != b.boot_id else []),
    ]
    yield _indented(table(("", "a", "b"), rows))
    if found.token is not None:
        before = "".join(a.output_tokens[max(0, found.token - _BEFORE) : found.token])
        yield f"{_INDENT}after {short_text(before, 80)}" if before else f"{_INDENT}at the start of the output"
        yield _indented(_token_table(a, b, found.token))
    for left, right in zip_longest(a.tool_calls, b.tool_calls):
        yield from _call_lines(left, right)


def _token_table(a: Turn, b: Turn, first: int) -> str:
    """Some tokens of both outputs, with logprobs and runners-up; a mark where they differ."""
    rows = []
    for token in range(first, min(max(len(a.output_ids), len(b.output_ids)), first + _AFTER)):
        sides = [_token_cells(turn, token) for turn in (a, b)]
        rows.append((f"{token} {'≠' if _id(a, token) != _id(b, token) else ' '}", *sides[0], *sides[1]))
    return table(("token", "a", "logprob", "runner-up", "margin", "b", "logprob", "runner-up", "margin"), rows)


def _token_cells(turn: Turn, token: int) -> tuple[str, str, str, str]:
    if token >= len(turn.output_ids):
        return ("(ended)", "", "", "")
    rival = turn.runner_up_tokens[token]
    margin = margin_at(turn, token)
    return (
        short_text(turn.output_tokens[token], 20),
        f"{turn.logprobs[token]:.4f}",
        "-" if rival is None else short_text(rival, 20),
        "-" if margin is None else f"{margin:.3g}",
    )


def _id(turn: Turn, token: int) -> int | None:
    return turn.output_ids[token] if token < len(turn.output_ids) else None


def _call_lines(a: ToolCall | None, b: ToolCall | None) -> Iterator[str]:
    """A call of both sides and its result; once where both are the same."""
    sides: Sequence[tuple[str, ToolCall | None]] = (("a", a), ("b", b))
    texts = [_call_text(call) for _, call in sides]
    if texts[0] == texts[1]:
        yield f"{'call':<10}{texts[0]}"
        return
    for (name, _), text in zip(sides, texts, strict=True):
        yield f"{f'call {name}':<10}{text}"


def _call_text(call: ToolCall | None) -> str:
    if call is None:
        return "(no such call)"
    error = f" (error: {call.error})" if call.error is not None else ""
    text = printable(f"{call.tool}({call.arguments}) -> {call.result}{error}")
    return text if len(text) <= _CALL else text[: _CALL - 1] + "…"


def _count(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _indented(text: str) -> str:
    return "\n".join(f"{_INDENT}{line}" for line in text.splitlines())
