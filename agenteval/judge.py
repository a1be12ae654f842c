"""From a run's stored facts to its divergences, evidence and verdict, at its end or at any time after.

Reads the store, judges with `compare` and `audit`, and stores what a run's end was found to be; knows no server and no
agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from agenteval.audit import RunFacts, audit_run, run_verdict
from agenteval.compare import compare_stored, passed_by_episode
from agenteval.contract import Contract
from agenteval.digest import canonical_json, is_digest
from agenteval.errors import DamagedRecordError
from agenteval.loading import wrong_fields
from agenteval.records import Divergence, EpisodeStatus, Evidence, Grade, Run, RunEnd, Turn, Verdict
from agenteval.store import RunReader, RunWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the stored facts of a run come to."""

    divergences: tuple[Divergence, ...]
    evidence: tuple[Evidence, ...]
    verdict: Verdict
    contradictions: tuple[str, ...] = ()
    """Stored facts that cannot be true together: the database was changed after it was written."""


def derive_findings(reader: RunReader) -> Findings:
    """Compare repeats and audit every clause, from what is stored of the run and nothing else.

    Raises:
        UnknownNameError: If there is no such run.
        StoreError: If the database cannot be read, or holds what no run writes.
    """
    run, end = reader.run()
    divergences = tuple(compare_stored(reader.trajectories(), passed_by_episode(reader.grades())))
    facts = RunFacts(
        run=run,
        contract=contract_of(run),
        boots=tuple(reader.boots()),
        episodes=tuple(reader.episodes()),
        divergences=divergences,
        tasks=tuple(reader.tasks()),
    )
    evidence = audit_run(facts, _all_turns(reader))
    return Findings(
        divergences=divergences,
        evidence=evidence,
        verdict=run_verdict(facts, evidence),
        contradictions=tuple(_contradictions(facts, end, reader.grades())),
    )


def _contradictions(facts: RunFacts, end: RunEnd | None, grades: Iterable[Grade]) -> Iterator[str]:
    """What a run stored twice and is no longer the same, and what every run stores and is not there."""
    run = facts.run
    if facts.contract.name != run.contract or facts.contract.digest() != run.contract_digest:
        yield "runs.contract and contract_digest are not those of contract_fields"
    if end is not None and end.verdict is not None and end.status != "finished":
        yield f"runs.verdict is {end.verdict}, although its status is {end.status}"
    yield from _against_lock(run, run.facts.get("lock"))
    checks = {(task.task, task.variant): len(task.definition.get("checks", ())) for task in facts.tasks}
    graded = Counter(grade.episode_id for grade in grades)
    for episode in facts.episodes:
        wanted = checks.get((episode.plan.task, episode.plan.variant))
        found = graded[episode.plan.episode_id]
        if episode.status is EpisodeStatus.FINISHED and wanted not in (None, found):
            yield f"{episode.plan.label} has {found} grades for {wanted} checks"


def _against_lock(run: Run, lock: Any) -> Iterator[str]:
    """Runs of older versions have no lock."""
    if not isinstance(lock, dict):
        return
    for section, field, stored in (
        ("contract", "name", run.contract),
        ("contract", "digest", run.contract_digest),
        ("suite", "name", run.suite),
        ("suite", "digest", run.suite_digest),
        ("model", "name", run.model),
        ("model", "digest", run.model_digest if is_digest(run.model_digest) else None),
    ):
        locked = lock.get(section, {}).get(field)
        if locked != stored:
            yield f"runs has the {section} {field} {stored}, its lock {locked}"


def contract_of(run: Run) -> Contract:
    """The contract under which a run was made.

    Raises:
        DamagedRecordError: If its fields are no contract's.
    """
    try:
        return Contract.model_validate_json(canonical_json(run.contract_fields))
    except pydantic.ValidationError as error:
        reason = f"contract_fields: {wrong_fields(error)}"
        raise DamagedRecordError(run_id=run.run_id, table="runs", reason=reason) from error


def judge_run(path: Path, run_id: str, writer: RunWriter) -> Verdict:
    """Judge a run whose episodes are all stored, and store what was found.

    Raises:
        StoreError: If the database cannot be read, or the findings not be stored.
    """
    findings = derive_findings(RunReader(path=path, run_id=run_id))
    for divergence in findings.divergences:
        writer.append(divergence)
    for row in findings.evidence:
        writer.append(row)
    return findings.verdict


def _all_turns(reader: RunReader) -> Iterator[Turn]:
    yield from reader.probe_turns()
    for _, turns in reader.trajectories():
        yield from turns
