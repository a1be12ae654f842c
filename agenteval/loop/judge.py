"""From a run's stored episodes to its divergences, evidence and verdict."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from agenteval.audit import RunFacts, audit_run, run_verdict
from agenteval.compare import Trajectory, compare_repeats
from agenteval.contract import Contract
from agenteval.grade import has_passed
from agenteval.records import Divergence, Episode, Turn, Verdict
from agenteval.store import RunReader, RunWriter


def judge_run(path: Path, run_id: str, contract: Contract, writer: RunWriter) -> Verdict:
    """Compare repeats, audit every clause, store what was found.

    Everything is read back from the database, so that the verdict rests on what is stored and on nothing else.

    Raises:
        StoreError: If the database cannot be read, or the findings not be stored.
    """
    reader = RunReader(path=path, run_id=run_id)
    divergences = tuple(find_divergences(reader))
    facts = RunFacts(
        run=reader.run()[0],
        contract=contract,
        boots=tuple(reader.boots()),
        episodes=tuple(reader.episodes()),
        divergences=divergences,
    )
    evidence = audit_run(facts, _all_turns(reader))
    for divergence in divergences:
        writer.append(divergence)
    for row in evidence:
        writer.append(row)
    return run_verdict(facts, evidence)


def find_divergences(reader: RunReader) -> Iterator[Divergence]:
    """Divergences between a run's repeats; memory holds the repeats of one sample at a time."""
    passed = _passed(reader)
    grouped = itertools.groupby(reader.trajectories(), key=lambda item: _sample_of(item[0]))
    for _, group in grouped:
        yield from compare_repeats(
            Trajectory(episode=episode, turns=turns, passed=passed.get(episode.plan.episode_id))
            for episode, turns in group
        )


def _sample_of(episode: Episode) -> tuple[str, str, int]:
    return episode.plan.task, episode.plan.variant, episode.plan.sample


def _passed(reader: RunReader) -> dict[str, bool | None]:
    grades = itertools.groupby(reader.grades(), key=lambda grade: grade.episode_id)
    return {episode_id: has_passed(tuple(group)) for episode_id, group in grades}


def _all_turns(reader: RunReader) -> Iterator[Turn]:
    yield from reader.probe_turns()
    for _, turns in reader.trajectories():
        yield from turns
