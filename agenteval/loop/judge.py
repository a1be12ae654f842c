"""From a run's stored episodes to its divergences, evidence and verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agenteval.audit import RunFacts, audit_run, run_verdict
from agenteval.compare import compare_stored, passed_by_episode
from agenteval.contract import Contract
from agenteval.records import Turn, Verdict
from agenteval.store import RunReader, RunWriter


def judge_run(path: Path, run_id: str, contract: Contract, writer: RunWriter) -> Verdict:
    """Compare repeats, audit every clause, store what was found.

    Everything is read back from the database, so that the verdict rests on what is stored and on nothing else.

    Raises:
        StoreError: If the database cannot be read, or the findings not be stored.
    """
    reader = RunReader(path=path, run_id=run_id)
    divergences = tuple(compare_stored(reader.trajectories(), passed_by_episode(reader.grades())))
    facts = RunFacts(
        run=reader.run()[0],
        contract=contract,
        boots=tuple(reader.boots()),
        episodes=tuple(reader.episodes()),
        divergences=divergences,
        tasks=tuple(reader.tasks()),
    )
    evidence = audit_run(facts, _all_turns(reader))
    for divergence in divergences:
        writer.append(divergence)
    for row in evidence:
        writer.append(row)
    return run_verdict(facts, evidence)


def _all_turns(reader: RunReader) -> Iterator[Turn]:
    yield from reader.probe_turns()
    for _, turns in reader.trajectories():
        yield from turns
