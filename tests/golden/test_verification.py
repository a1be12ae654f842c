"""`verify` in words and in JSON: a run that found the same, one that did not, one that came to no judgement."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import run_records as made
from golden_files import check_golden

from agenteval.audit import audit_run, run_verdict
from agenteval.judge import Findings
from agenteval.records import RunEnd, Verdict
from agenteval.report import RunSummary, Verification, verification_json, verification_text


def verification(*, lost: int = 0, is_judged: bool = True, verdict: Verdict = Verdict.KEPT) -> Verification:
    """A strict run that was kept; the database has since lost the first turns of its episodes, if so wished."""
    facts, turns = made.kept_run(made.contract())
    first = next(place for place, turn in enumerate(turns) if turn.kind == "episode")
    stored = audit_run(facts, turns)
    left = [*turns[:first], *turns[first + lost :]]
    evidence = audit_run(facts, left)
    end = RunEnd(run_id=made.RUN, ended_at=made.START, status="finished", verdict=verdict, message=None)
    summary = RunSummary(
        run=facts.run,
        end=end if is_judged else None,
        contract=facts.contract,
        episodes=facts.episodes,
        passed={},
        grades=(),
        divergences=(),
        evidence=stored if is_judged else (),
        faults=(),
    )
    findings = Findings(divergences=(), evidence=evidence, verdict=run_verdict(facts, evidence))
    return Verification(stored=summary, findings=findings)


CASES = {
    "same": (verification(), 0),
    "lost-turn": (verification(lost=1), 2),
    "other-verdict": (verification(verdict=Verdict.BREACHED), 2),
    "not-judged": (verification(is_judged=False), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_verification_for_people(name: str) -> None:
    check_golden(f"verification/{name}.txt", verification_text(CASES[name][0]) + "\n")


@pytest.mark.parametrize("name", CASES)
def test_verification_for_machines(name: str) -> None:
    found = verification_json(CASES[name][0])
    check_golden(f"verification/{name}.json", json.dumps(found, indent=2) + "\n")


@pytest.mark.parametrize("name", CASES)
def test_exit_status_of_a_verification(name: str) -> None:
    made_of, code = CASES[name]
    assert made_of.exit_code == verification_json(made_of)["exit_code"] == code


def test_a_verdict_by_another_version_is_told_as_such() -> None:
    made_of = CASES["lost-turn"][0]
    older = replace(made_of, stored=replace(made_of.stored, run=replace(made_of.stored.run, agenteval_version="0.0.1")))
    assert "it was judged by agenteval 0.0.1, this is" in verification_text(older)
