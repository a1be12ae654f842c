"""Two trajectories compared, and the repeats of a run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agenteval.compare.causes import causes_of
from agenteval.compare.levels import level_of, sample_of
from agenteval.compare.model import Comparison, Trajectory
from agenteval.compare.places import aftermath_of, margin_of, place_of, text_at
from agenteval.records import Divergence, Episode, EpisodeStatus, Turn


def compare(a: Trajectory, b: Trajectory) -> Divergence | None:
    """The first divergence of two repeats; None where they agree in every bit."""
    return compare_pair(a, b).divergence


def compare_pair(a: Trajectory, b: Trajectory, *, settings: Sequence[str] = ()) -> Comparison:
    """Two trajectories of one task, variant and sample: where they first part, why, and what came of it.

    Args:
        a: The one side.
        b: The other.
        settings: How the two runs were set otherwise, in words; empty for repeats of one run.
    """
    level = level_of(a, b)
    if level is None:
        return Comparison(divergence=None, aftermath=None)
    place = place_of(a.turns, b.turns, level)
    causes = causes_of(a, b, place, settings)
    plan_a, plan_b = a.episode.plan, b.episode.plan
    divergence = Divergence(
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
        text_a=text_at(a.turns, place),
        text_b=text_at(b.turns, place),
        margin_a=margin_of(a.turns, place),
        margin_b=margin_of(b.turns, place),
        cause=causes[0][1],
        cause_kind=causes[0][0],
    )
    return Comparison(
        divergence=divergence,
        aftermath=aftermath_of(a, b, place),
        signs=tuple(text for _, text in causes),
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
