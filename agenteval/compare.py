"""Where two trajectories first part, at which level, and why; pure over records.

Levels nest: equal logprobs mean equal tokens, equal tokens mean equal calls, and so on. A divergence's level is the
loosest that differs. Times, waiting and ids never matter. Whether an episode passed is one of the levels, so what its
grades come to is said here too; what a check asks is not.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.digest import canonical_json
from agenteval.records import Divergence, Episode, EpisodePlan, EpisodeStatus, Grade, Level, ToolCall, Turn

ORDER = (Level.LOGPROBS, Level.TOKENS, Level.CALLS, Level.TOOLS, Level.OUTCOME)
"""Strictest first."""
NEAR_TIE_NATS = 0.1
"""Below this margin the numeric noise of half precision can swap the two best tokens."""
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


def has_passed(grades: Sequence[Grade]) -> bool | None:
    """Whether all checks passed; None where one could not be evaluated or there is none."""
    if not grades or any(grade.passed is None for grade in grades):
        return None
    return all(grade.passed for grade in grades)


def passed_by_episode(grades: Iterable[Grade]) -> dict[str, bool | None]:
    """Episode id to whether it passed; an episode without grades is left out.

    Args:
        grades: In any order.
    """
    groups: dict[str, list[Grade]] = {}
    for grade in grades:
        groups.setdefault(grade.episode_id, []).append(grade)
    return {episode_id: has_passed(group) for episode_id, group in groups.items()}


def sample_of(plan: EpisodePlan) -> tuple[str, str, int]:
    """What repeats have in common: task, variant and sample."""
    return plan.task, plan.variant, plan.sample


def compare_stored(
    stored: Iterable[tuple[Episode, tuple[Turn, ...]]], passed: Mapping[str, bool | None]
) -> Iterator[Divergence]:
    """Divergences between a run's repeats; memory holds the repeats of one sample at a time.

    Args:
        stored: Episodes of one run with their turns, the repeats of a sample together.
        passed: Episode id to whether it passed, as `passed_by_episode` says.
    """
    for _, group in itertools.groupby(stored, key=lambda item: sample_of(item[0].plan)):
        yield from compare_repeats(
            Trajectory(episode=episode, turns=turns, passed=passed.get(episode.plan.episode_id))
            for episode, turns in group
        )


def compare_repeats(trajectories: Iterable[Trajectory]) -> Iterator[Divergence]:
    """Each later repeat of a sample against the first one that was run.

    Args:
        trajectories: Of one run, in any order; episodes that were not run are left out.
    """
    groups: dict[tuple[str, str, int], list[Trajectory]] = {}
    for trajectory in trajectories:
        if trajectory.episode.status is EpisodeStatus.FINISHED:
            groups.setdefault(sample_of(trajectory.episode.plan), []).append(trajectory)
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
        Level.CALLS: lambda item: [call_asked(call) for turn in item.turns for call in turn.tool_calls],
        Level.TOKENS: lambda item: [turn.output_ids for turn in item.turns],
        Level.LOGPROBS: lambda item: [token_rows(turn) for turn in item.turns],
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


def _place(a: Sequence[Turn], b: Sequence[Turn], level: Level) -> Place:
    """Where they first differ: a turn's prompt, its tokens (its logprobs where no token differs), or its tools."""
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if _prompt(left) != _prompt(right):
            return Place(turn=index, part="prompt")
        token = first_difference(left.output_ids, right.output_ids)
        if token is None and level is Level.LOGPROBS:
            token = first_difference(token_rows(left), token_rows(right))
        if token is not None:
            return Place(turn=index, part="output", token=token)
        if _did(left) != _did(right):
            return Place(turn=index, part="tools")
    return Place(turn=min(len(a), len(b)), part="end")


def token_rows(turn: Turn) -> list[tuple[int, float, str | None, float | None]]:
    """What stands at each token of a turn's output: its id and logprob, the runner-up's text and logprob."""
    columns = (turn.output_ids, turn.logprobs, turn.runner_up_tokens, turn.runner_up_logprobs)
    return list(zip(*columns, strict=True))


def call_asked(call: ToolCall) -> tuple[str, str]:
    """What a tool was asked: its name and its arguments in their one form."""
    return call.tool, canonical_arguments(call.arguments)


def call_answered(call: ToolCall) -> tuple[str, str | None]:
    """What a tool gave back, and why it refused or failed."""
    return call.result, call.error


def _did(turn: Turn) -> list[tuple[tuple[str, str], tuple[str, str | None]]]:
    """What the tools of a turn were asked and gave back."""
    return [(call_asked(call), call_answered(call)) for call in turn.tool_calls]


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


def first_difference(a: Sequence[Any], b: Sequence[Any]) -> int | None:
    """Place of the first item that differs; the shorter length where one begins the other, None where equal."""
    length = min(len(a), len(b))
    place = next((place for place in range(length) if a[place] != b[place]), length)
    return None if place == len(a) == len(b) else place


def _text(turns: Sequence[Turn], place: Place) -> str:
    """What stands from the place on: a few tokens, or what stands for them."""
    if place.turn >= len(turns):
        return "(the episode has ended)"
    turn = turns[place.turn]
    if place.part == "prompt":
        return "(the prompt differs)"
    if place.token is None:
        return "; ".join(f"{call.tool}: {call.result}" for call in turn.tool_calls) or "(no tool call)"
    return "".join(turn.output_tokens[place.token : place.token + _SHOWN_TOKENS]) or "(the output has ended)"


def _margin(turns: Sequence[Turn], place: Place) -> float | None:
    return None if place.token is None else margin_at(turns[place.turn], place.token)


def margin_at(turn: Turn, token: int) -> float | None:
    """Logprob of the chosen token less the runner-up's, in nats; None where the output has ended or has no rival."""
    if token >= len(turn.logprobs):
        return None
    rival = turn.runner_up_logprobs[token]
    return None if rival is None else turn.logprobs[token] - rival


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
    if crowd is None:
        return "unexplained"
    if crowd[0] == crowd[1]:
        return f"company of other requests, {crowd[0]} in flight on both sides"
    return f"other requests in flight: {crowd[0]} against {crowd[1]}"


def _shown(count: int | None) -> str:
    return "unknown" if count is None else str(count)
