"""Two runs compared, or the repeats of one: which episodes pair, and what each pair comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agenteval.compare import Comparison, Trajectory, compare_pair, passed_by_episode, sample_of
from agenteval.diff.model import Pair, RunDiff, Side, Unpaired
from agenteval.diff.settings import settings_of
from agenteval.digest import digest_json
from agenteval.records import Episode, EpisodeStatus, Run
from agenteval.store import ALL_TURNS, RunReader, shared_turns, telling_turns

_Key = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One run, or the later or first repeats of it."""

    name: Side
    reader: RunReader
    run: Run
    episodes: Mapping[_Key, Episode]
    passed: Mapping[str, bool | None]
    parts: frozenset[tuple[object, ...]]
    """Task and variant, and task, variant and sample, of its episodes."""
    definitions: Mapping[tuple[str, str], str]
    """Task and variant to the digest of what was asked."""


def diff_runs(a: RunReader, b: RunReader | None) -> RunDiff:
    """Compare two runs, each repeat with the same one of the other; or one run's later repeats with the first.

    Args:
        a: The one run.
        b: The other, of the same database or another; None for the repeats of `a`.

    Raises:
        UnknownNameError: If there is no such run.
        StoreError: If a database cannot be read.
    """
    left = _side("a", a)
    right = left if b is None else _side("b", b)
    settings = () if b is None else settings_of(left.run, right.run)
    matched, unpaired = (_repeats(left), []) if b is None else _matched(left, right)
    return RunDiff(
        run_a=left.run,
        run_b=right.run,
        pairs=tuple(_pairs(left, right, matched, settings)),
        unpaired=tuple(unpaired),
        settings=settings,
    )


def trajectories_of(a: RunReader, b: RunReader | None, pair: Pair) -> tuple[Trajectory, Trajectory]:
    """Both sides of a pair, whole.

    Raises:
        StoreError: If a database cannot be read.
    """
    sides = ((a, pair.episode_a, pair.passed_a), (b or a, pair.episode_b, pair.passed_b))
    first, second = (
        Trajectory(
            episode=next(found for found in reader.episodes() if found.plan.episode_id == episode_id),
            turns=reader.turns(episode_id),
            passed=passed,
        )
        for reader, episode_id, passed in sides
    )
    return first, second


def _side(name: Side, reader: RunReader) -> _Side:
    episodes = {
        (*sample_of(episode.plan), episode.plan.repeat): episode
        for episode in sorted(reader.episodes(), key=lambda episode: (*sample_of(episode.plan), episode.plan.repeat))
    }
    return _Side(
        name=name,
        reader=reader,
        run=reader.run()[0],
        episodes=episodes,
        passed=passed_by_episode(reader.grades()),
        parts=frozenset(key[:length] for key in episodes for length in (2, 3)),
        definitions={(task.task, task.variant): digest_json(task.definition) for task in reader.tasks()},
    )


def _repeats(side: _Side) -> list[tuple[Episode, Episode]]:
    """Each finished later repeat of a sample with the first one that finished."""
    first: dict[tuple[str, str, int], Episode] = {}
    matched = []
    for episode in side.episodes.values():
        if episode.status is EpisodeStatus.FINISHED:
            before = first.setdefault(sample_of(episode.plan), episode)
            if before is not episode:
                matched.append((before, episode))
    return matched


def _matched(a: _Side, b: _Side) -> tuple[list[tuple[Episode, Episode]], list[Unpaired]]:
    """Episodes of the same task, variant, sample and repeat, and those that have no such other."""
    matched, unpaired = [], []
    for key in dict.fromkeys([*a.episodes, *b.episodes]):
        left, right = a.episodes.get(key), b.episodes.get(key)
        reason = _why_not(a, b, key)
        if reason is None:
            assert left is not None
            assert right is not None
            matched.append((left, right))
            continue
        found = left or right
        assert found is not None
        unpaired.append(Unpaired(side="b" if left is None else "a", label=found.plan.label, reason=reason))
    return matched, unpaired


def _why_not(a: _Side, b: _Side, key: _Key) -> str | None:
    """Why an episode pairs with none; None where it does."""
    left, right = a.episodes.get(key), b.episodes.get(key)
    for side in (a, b):
        if key not in side.episodes:
            return _absence(side, key)
    for side, episode in ((a, left), (b, right)):
        if episode is not None and episode.status is EpisodeStatus.NOT_RUN:
            return f"it was not run in {side.name}"
    if a.definitions.get(key[:2]) != b.definitions.get(key[:2]):
        return "the task is defined otherwise in the other run"
    return None


def _absence(side: _Side, key: _Key) -> str:
    """What a run lacks of an episode's task, sample or repeat."""
    _, _, sample, repeat = key
    if key[:2] not in side.parts:
        return f"{side.name} has no such task variant"
    if key[:3] not in side.parts:
        return f"{side.name} has no sample {sample}"
    return f"{side.name} has no repeat {repeat}"


def _pairs(a: _Side, b: _Side, matched: Sequence[tuple[Episode, Episode]], settings: tuple[str, ...]) -> Iterator[Pair]:
    """Each match compared; turns are read only where something differs, and only as far as they tell something."""
    ids = [(left.plan.episode_id, right.plan.episode_id) for left, right in matched]
    passed = [(a.passed.get(left), b.passed.get(right)) for left, right in ids]
    last = [
        # Where verdicts differ the divergence may be the end, so all turns count.
        found.last_telling_turn if x == y else ALL_TURNS
        for found, (x, y) in zip(shared_turns(a.reader, b.reader, ids), passed, strict=True)
    ]
    turns_a = telling_turns(a.reader, [(left, turn) for (left, _), turn in zip(ids, last, strict=True)])
    turns_b = telling_turns(b.reader, [(right, turn) for (_, right), turn in zip(ids, last, strict=True)])
    for (left, right), verdicts, first, second in zip(matched, passed, turns_a, turns_b, strict=True):
        comparison = compare_pair(
            Trajectory(episode=left, turns=first, passed=verdicts[0]),
            Trajectory(episode=right, turns=second, passed=verdicts[1]),
            settings=settings,
        )
        yield _pair(left, right, verdicts, comparison)


def _pair(left: Episode, right: Episode, passed: tuple[bool | None, bool | None], comparison: Comparison) -> Pair:
    return Pair(
        task=left.plan.task,
        variant=left.plan.variant,
        sample=left.plan.sample,
        repeat_a=left.plan.repeat,
        repeat_b=right.plan.repeat,
        episode_a=left.plan.episode_id,
        episode_b=right.plan.episode_id,
        passed_a=passed[0],
        passed_b=passed[1],
        divergence=comparison.divergence,
        aftermath=comparison.aftermath,
        signs=comparison.signs,
    )
