"""How many different trajectories the attempts at one task variant took."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from agenteval.compare.levels import call_asked
from agenteval.compare.model import Trajectory
from agenteval.records import EpisodeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Variety:
    """The attempts at one task variant, over its samples and repeats."""

    task: str
    variant: str
    episodes: int
    """Those that were finished."""
    by_tokens: int
    """Different sequences of output tokens."""
    by_calls: int
    """Different sequences of tool calls with their arguments."""


def varieties(trajectories: Iterable[Trajectory]) -> list[Variety]:
    """Count the different trajectories of each task variant, in the order in which the variants come.

    Args:
        trajectories: Of one run, in any order; those that were not run are left out.
    """
    tokens: dict[tuple[str, str], list[Hashable]] = {}
    calls: dict[tuple[str, str], list[Hashable]] = {}
    for item in trajectories:
        if item.episode.status is EpisodeStatus.FINISHED:
            key = (item.episode.plan.task, item.episode.plan.variant)
            tokens.setdefault(key, []).append(tuple(turn.output_ids for turn in item.turns))
            asked = tuple(call_asked(call) for turn in item.turns for call in turn.tool_calls)
            calls.setdefault(key, []).append(asked)
    return [
        Variety(
            task=key[0],
            variant=key[1],
            episodes=len(found),
            by_tokens=len(set(found)),
            by_calls=len(set(calls[key])),
        )
        for key, found in tokens.items()
    ]
