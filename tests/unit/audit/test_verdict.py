"""From evidence to a verdict: clauses by their worst row, the run by a fixed order."""

from __future__ import annotations

from dataclasses import replace

import pytest
import run_records as made
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.audit import RunFacts, clause_verdicts, run_verdict
from agenteval.compare import compare
from agenteval.contract.clauses import CLAUSES
from agenteval.records import ClauseVerdict, Divergence, EpisodeStatus, Evidence, Verdict

KEPT, BREACHED = ClauseVerdict.KEPT, ClauseVerdict.BREACHED
UNPROVEN, NOT_PROMISED = ClauseVerdict.UNPROVEN, ClauseVerdict.NOT_PROMISED
WORST_FIRST = [BREACHED, UNPROVEN, KEPT, NOT_PROMISED]


def row(clause: str, verdict: ClauseVerdict) -> Evidence:
    return Evidence(run_id=made.RUN, clause=clause, fact="f", verdict=verdict, expected="e", observed="o")


def rows(**found: ClauseVerdict) -> list[Evidence]:
    return [row(clause, found.get(clause, KEPT)) for clause in CLAUSES]


def divergence() -> Divergence:
    found = compare(
        made.trajectory(made.turn()), made.trajectory(replace(made.turn(), output_ids=(11, 12, 14)), of=made.plan(1))
    )
    assert found is not None
    return found


def facts(*, diverged: bool = False, finished: int = 2) -> RunFacts:
    found, _ = made.kept_run(made.contract())
    episodes = tuple(
        replace(episode, status=EpisodeStatus.FINISHED if place < finished else EpisodeStatus.NOT_RUN)
        for place, episode in enumerate(found.episodes)
    )
    return replace(found, episodes=episodes, divergences=(divergence(),) if diverged else ())


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(WORST_FIRST), min_size=1, max_size=5))
def test_a_clause_is_as_good_as_its_worst_row(verdicts: list[ClauseVerdict]) -> None:
    found = clause_verdicts([row("cache", verdict) for verdict in verdicts])
    assert found["cache"] is min(verdicts, key=WORST_FIRST.index)


def test_a_clause_without_evidence_is_unproven() -> None:
    assert set(clause_verdicts([]).values()) == {UNPROVEN}


@pytest.mark.parametrize(
    ("run", "evidence", "verdict"),
    [
        pytest.param(facts(), rows(), Verdict.KEPT, id="all kept"),
        pytest.param(facts(), rows(batching=NOT_PROMISED), Verdict.KEPT, id="kept, something not promised"),
        pytest.param(facts(), rows(cache=UNPROVEN), Verdict.UNPROVEN, id="something unproven"),
        pytest.param(facts(), rows(cache=UNPROVEN, boot=BREACHED), Verdict.BREACHED, id="breached beats unproven"),
        pytest.param(facts(diverged=True), rows(repeats=NOT_PROMISED), Verdict.DIVERGED, id="diverged, not promised"),
        pytest.param(facts(diverged=True), rows(cache=UNPROVEN), Verdict.DIVERGED, id="diverged beats unproven"),
        pytest.param(facts(diverged=True), rows(repeats=BREACHED), Verdict.BREACHED, id="breached beats diverged"),
        pytest.param(facts(finished=1), rows(), Verdict.UNPROVEN, id="an episode not run"),
        pytest.param(facts(finished=1), rows(boot=BREACHED), Verdict.UNPROVEN, id="not run beats breached"),
        pytest.param(facts(finished=1, diverged=True), rows(), Verdict.UNPROVEN, id="not run beats diverged"),
        pytest.param(facts(finished=0), rows(), Verdict.UNPROVEN, id="nothing run"),
    ],
)
def test_the_runs_verdict_follows_a_fixed_order(run: RunFacts, evidence: list[Evidence], verdict: Verdict) -> None:
    assert run_verdict(run, evidence) is verdict


def test_an_episode_that_never_started_counts_as_not_run() -> None:
    found = facts()
    planned = replace(found.run, planned_episodes=3)
    assert run_verdict(replace(found, run=planned), rows()) is Verdict.UNPROVEN


def test_a_divergence_below_the_contracts_level_is_none() -> None:
    tolerant = made.contract(repeats__level="calls")
    assert run_verdict(replace(facts(diverged=True), contract=tolerant), rows()) is Verdict.KEPT
