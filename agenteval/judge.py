"""From a run's stored facts to its divergences, evidence and verdict, at its end or at any time after.

Reads the store and judges with `compare` and `audit`; knows no server and no agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pydantic

from agenteval.audit import RunFacts, audit_run, run_verdict
from agenteval.compare import compare_stored, passed_by_episode
from agenteval.contract import Contract
from agenteval.digest import canonical_json
from agenteval.errors import DamagedRecordError
from agenteval.loading import wrong_fields
from agenteval.records import Divergence, Evidence, Run, Turn, Verdict
from agenteval.store import RunReader, RunWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the stored facts of a run come to."""

    divergences: tuple[Divergence, ...]
    evidence: tuple[Evidence, ...]
    verdict: Verdict


def derive_findings(reader: RunReader) -> Findings:
    """Compare repeats and audit every clause, from what is stored of the run and nothing else.

    Raises:
        UnknownNameError: If there is no such run.
        StoreError: If the database cannot be read.
    """
    run = reader.run()[0]
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
    return Findings(divergences=divergences, evidence=evidence, verdict=run_verdict(facts, evidence))


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
