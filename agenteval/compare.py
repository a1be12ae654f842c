"""Where two trajectories first part, at which level, and why; pure over records.

Levels nest: equal logprobs mean equal tokens, equal tokens mean equal calls, and so on. A divergence's level is the
loosest that differs. Times, waiting and ids never matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.digest import canonical_json
from agenteval.records import Divergence, Episode, EpisodeStatus, Level, Turn

ORDER = (Level.LOGPROBS, Level.TOKENS, Level.CALLS, Level.TOOLS, Level.OUTCOME)
"""Strictest first."""
_SHOWN_TOKENS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """An episode with its turns and whether it passed."""

    episode: Episode
    turns: tuple[Turn, ...]
    passed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of a turn, or the end of the shorter trajectory."""

    turn: int
    part: Literal["prompt", "output", "tools", "end"]
    token: int | None = None
    """Of the output; None for every other part."""


def differs_at(divergence: Divergence, level: Level) -> bool:
    """Whether two trajectories count as different under a level."""
    return ORDER.index(divergence.level) >= ORDER.index(level)


def compare_repeats(trajectories: Iterable[Trajectory]) -> Iterator[Divergence]:
    """Each later repeat of a sample against the first one that was run.

    Args:
        trajectories: Of one run, in any order; episodes that were not run are left out.
    """
    groups: dict[tuple[str, str, int], list[Trajectory]] = {}
    for trajectory in trajectories:
        plan = trajectory.episode.plan
        if trajectory.episode.status is EpisodeStatus.FINISHED:
            groups.setdefault((plan.task, plan.variant, plan.sample), []).append(trajectory)
    for group in groups.values():
        first, *others = sorted(group, key=lambda item: item.episode.plan.repeat)
        for other in others:
            divergence = compare(first, other)
            if divergence is not None:
                yield divergence


def compare(a: Trajectory, b: Trajectory) -> Divergence | None:
    """The first divergence of two trajectories; None where they agree in every bit."""
    level = _level(a, b)
    if level is None:
        return None
    place = _place(a.turns, b.turns, level)
    plan_a, plan_b = a.episode.plan, b.episode.plan
    return Divergence(
        run_id=plan_a.run_id,
        episode_a=plan_a.episode_id,
        episode_b=plan_b.episode_id,
        task=plan_a.task,
        variant=plan_a.variant,
        sample=plan_a.sample,
        repeat_a=plan_a.repeat,
        repeat_b=plan_b.repeat,
        level=level,
        turn=place.turn,
        token=place.token,
        text_a=_text(a.turns, place),
        text_b=_text(b.turns, place),
        margin_a=_margin(a.turns, place),
        margin_b=_margin(b.turns, place),
        cause=_cause(a, b, place),
    )


def _level(a: Trajectory, b: Trajectory) -> Level | None:
    views: dict[Level, Callable[[Trajectory], Any]] = {
        Level.OUTCOME: lambda item: item.passed,
        Level.TOOLS: lambda item: [call.tool for turn in item.turns for call in turn.tool_calls],
        Level.CALLS: lambda item: [
            (call.tool, canonical_arguments(call.arguments)) for turn in item.turns for call in turn.tool_calls
        ],
        Level.TOKENS: lambda item: [turn.output_ids for turn in item.turns],
        Level.LOGPROBS: lambda item: [_bits(turn) for turn in item.turns],
    }
    return next((level for level in reversed(ORDER) if views[level](a) != views[level](b)), None)


def canonical_arguments(text: str) -> str:
    """Tool arguments with key order and number form settled; text that is no JSON stays as it is."""
    try:
        return canonical_json(_settle_numbers(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def _settle_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _settle_numbers(item) for key, item in value.items()}
    return [_settle_numbers(item) for item in value] if isinstance(value, list) else value


def _bits(turn: Turn) -> tuple[Any, ...]:
    return (turn.output_ids, turn.logprobs, turn.runner_up_tokens, turn.runner_up_logprobs)


def _place(a: Sequence[Turn], b: Sequence[Turn], level: Level) -> Place:
    """Where they first differ: a turn's prompt, its tokens (its logprobs where no token differs), or its tools."""
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if _prompt(left) != _prompt(right):
            return Place(turn=index, part="prompt")
        rows = [_rows(turn, with_logprobs=level is Level.LOGPROBS) for turn in (left, right)]
        if rows[0] != rows[1]:
            return Place(turn=index, part="output", token=_first_difference(*rows))
        if _did(left) != _did(right):
            return Place(turn=index, part="tools")
    return Place(turn=min(len(a), len(b)), part="end")


def _rows(turn: Turn, *, with_logprobs: bool) -> list[tuple[Any, ...]]:
    """What stands at each token of a turn's output."""
    columns: list[Sequence[Any]] = [turn.output_ids]
    if with_logprobs:
        columns += [turn.logprobs, turn.runner_up_tokens, turn.runner_up_logprobs]
    return list(zip(*columns, strict=True))


def _did(turn: Turn) -> list[tuple[str, str, str, str | None]]:
    """What the tools of a turn were asked and gave back."""
    return [(call.tool, canonical_arguments(call.arguments), call.result, call.error) for call in turn.tool_calls]


def _prompt(turn: Turn) -> tuple[int, tuple[int, ...]]:
    """Equal for equal prompts, as long as all turns before are equal."""
    return turn.prompt_kept, turn.prompt_added


def _first_difference(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Place of the first item that differs; the shorter length where one begins the other."""
    length = min(len(a), len(b))
    return next((place for place in range(length) if a[place] != b[place]), length)


def _text(turns: Sequence[Turn], place: Place) -> str:
    """What stands from the place on: a few tokens, or what stands for them."""
    if place.turn >= len(turns):
        return "(the episode has ended)"
    turn = turns[place.turn]
    if place.part == "prompt":
        return "(the prompt differs)"
    if place.token is None:
        return "; ".join(f"{tool}: {result}" for tool, _, result, _ in _did(turn)) or "(no tool call)"
    return "".join(turn.output_tokens[place.token : place.token + _SHOWN_TOKENS]) or "(the output has ended)"


def _margin(turns: Sequence[Turn], place: Place) -> float | None:
    if place.token is None or place.token >= len(turns[place.turn].logprobs):
        return None
    turn = turns[place.turn]
    rival = turn.runner_up_logprobs[place.token]
    return None if rival is None else turn.logprobs[place.token] - rival


def _cause(a: Trajectory, b: Trajectory, place: Place) -> str:
    """The first recorded difference that can explain the divergence, in a fixed order of elimination."""
    if place.part == "end":
        same_length = len(a.turns) == len(b.turns)
        return "the grades differ, the trajectories do not" if same_length else "one trajectory has more turns"
    if place.part == "prompt":
        return "the prompts differ"
    if place.part == "tools":
        return "the tools answered otherwise"
    # A hit, or company, in an earlier turn leaves its mark on the cached keys and values that this turn reads.
    pairs = list(zip(a.turns, b.turns, strict=False))[: place.turn + 1]
    if pairs[-1][0].boot_id != pairs[-1][1].boot_id:
        return "another boot"
    cached = [(x.cached_tokens, y.cached_tokens) for x, y in pairs]
    first = next(((x, y) for x, y in cached if x != y), None)
    if first is not None:
        return f"cached tokens differ: {_shown(first[0])} against {_shown(first[1])}"
    company = [(x.requests_in_flight, y.requests_in_flight) for x, y in pairs]
    crowd = next(((x, y) for x, y in company if x != y or x > 1), None)
    return "unexplained" if crowd is None else f"other requests in flight: {crowd[0]} against {crowd[1]}"


def _shown(count: int | None) -> str:
    return "unknown" if count is None else str(count)
