"""Where two trajectories first part, and what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenteval.compare.levels import calls_made, first_difference, token_rows
from agenteval.compare.model import Aftermath, Place, Trajectory
from agenteval.records import Level, Turn

NEAR_TIE_NATS = 0.1
"""Below this margin the numeric noise of half precision can swap the two best tokens."""
_SHOWN_TOKENS = 12


def place_of(a: Sequence[Turn], b: Sequence[Turn], level: Level) -> Place:
    """Where they first differ: a turn's prompt, its tokens (its logprobs where no token differs), or its tools.

    Args:
        a: Turns of one side, in order.
        b: Turns of the other.
        level: The level at which the two trajectories differ.
    """
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if _prompt(left) != _prompt(right):
            return Place(turn=index, part="prompt")
        token = first_difference(left.output_ids, right.output_ids)
        if token is None and level is Level.LOGPROBS:
            token = first_difference(token_rows(left), token_rows(right))
        if token is not None:
            return Place(turn=index, part="output", token=token)
        if calls_made(left) != calls_made(right):
            return Place(turn=index, part="tools")
    return Place(turn=min(len(a), len(b)), part="end")


def _prompt(turn: Turn) -> tuple[int, tuple[int, ...]]:
    """Equal for equal prompts, as long as all turns before are equal."""
    return turn.prompt_kept, turn.prompt_added


def full_prompts(turns: Sequence[Turn]) -> list[tuple[int, ...]]:
    """Each turn's whole prompt, from what each adds to the one before.

    Args:
        turns: One episode's, from its first, in order.
    """
    prompts: list[tuple[int, ...]] = []
    before: tuple[int, ...] = ()
    for turn in turns:
        prompts.append(before[: turn.prompt_kept] + turn.prompt_added)
        before = prompts[-1] + turn.output_ids
    return prompts


def full_messages(turns: Sequence[Turn]) -> list[tuple[dict[str, Any], ...]]:
    """Each turn's whole list of messages, from what each adds to the one before.

    Args:
        turns: One episode's, from its first, in order.
    """
    messages: list[tuple[dict[str, Any], ...]] = []
    for turn in turns:
        before = messages[-1] if messages else ()
        messages.append(before[: turn.messages_kept] + turn.messages_added)
    return messages


def text_at(turns: Sequence[Turn], place: Place) -> str:
    """What stands from the place on: a few tokens, or what stands for them."""
    if place.turn >= len(turns):
        return "(the episode has ended)"
    turn = turns[place.turn]
    if place.part == "prompt":
        return "(the prompt differs)"
    if place.token is None:
        return "; ".join(f"{call.tool}: {call.result}" for call in turn.tool_calls) or "(no tool call)"
    return "".join(turn.output_tokens[place.token : place.token + _SHOWN_TOKENS]) or "(the output has ended)"


def margin_of(turns: Sequence[Turn], place: Place) -> float | None:
    """The margin at a place; None where it is no token."""
    return None if place.token is None else margin_at(turns[place.turn], place.token)


def margin_at(turn: Turn, token: int) -> float | None:
    """Logprob of the chosen token less the runner-up's, in nats; None where the output has ended or has no rival."""
    if token >= len(turn.logprobs):
        return None
    rival = turn.runner_up_logprobs[token]
    return None if rival is None else turn.logprobs[token] - rival


def aftermath_of(a: Trajectory, b: Trajectory, place: Place) -> Aftermath:
    """How far two trajectories stay apart after a place, in calls and results.

    They rejoin at the beginning of their longest common tail: the turns, at least one, that lie after the place on both
    sides, whatever their numbers, and make the same calls with the same results to the end.
    """
    sides = [[calls_made(turn) for turn in side.turns] for side in (a, b)]
    outcome_differs = a.passed != b.passed
    if sides[0] == sides[1]:
        return Aftermath(turns_apart=0, rejoins=(place.turn, place.turn), outcome_differs=outcome_differs)
    most = max(0, min(len(side) for side in sides) - place.turn - 1)
    tail = next((size for size in range(most) if sides[0][-1 - size] != sides[1][-1 - size]), most)
    ends = [len(side) - tail for side in sides]
    return Aftermath(
        turns_apart=max(end - place.turn for end in ends),
        rejoins=(ends[0], ends[1]) if tail else None,
        outcome_differs=outcome_differs,
    )
