"""From evidence to the verdict of clauses and of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agenteval.audit.batching import BatchingAuditor
from agenteval.audit.boot import BootAuditor
from agenteval.audit.cache import CacheAuditor
from agenteval.audit.engine import EngineAuditor
from agenteval.audit.facts import BREACHED, KEPT, NOT_PROMISED, UNPROVEN, Auditor, ClauseEvidence, RunFacts, shown
from agenteval.audit.model import ModelAuditor
from agenteval.audit.prompts import PromptsAuditor
from agenteval.audit.repeats import RepeatsAuditor
from agenteval.audit.sampling import SamplingAuditor
from agenteval.audit.tools import ToolsAuditor
from agenteval.compare import differs_at
from agenteval.contract import Contract
from agenteval.contract.clauses import CLAUSES
from agenteval.records import Boot, ClauseVerdict, EpisodeStatus, Evidence, Run, Turn, Verdict

_AUDITORS = (
    CacheAuditor,
    BatchingAuditor,
    SamplingAuditor,
    EngineAuditor,
    ModelAuditor,
    BootAuditor,
    ToolsAuditor,
    PromptsAuditor,
    RepeatsAuditor,
)
_WORST_FIRST = (BREACHED, UNPROVEN, KEPT, NOT_PROMISED)
"""The view `clauses` has the same order in SQL; a test holds the two together."""


def audit_run(facts: RunFacts, turns: Iterable[Turn]) -> tuple[Evidence, ...]:
    """The evidence of every clause, in the contract's order.

    Args:
        facts: What was stored of the run, its turns excepted.
        turns: Every turn, episodes' and probes', the turns of one episode together and in order.
    """
    auditors: list[Auditor] = [auditor(facts) for auditor in _AUDITORS]
    seen: Counter[str] = Counter()
    for turn in turns:
        seen[turn.episode_id] += 1
        for auditor in auditors:
            auditor.observe(turn)
    missing = list(_missing(facts, seen))
    return tuple(
        row
        for auditor in auditors
        for row in (*auditor.conclude(), *(replace(row, clause=auditor.clause) for row in missing))
    )


def start_breaches(run: Run, contract: Contract, boot: Boot, probes: Iterable[Turn]) -> tuple[Evidence, ...]:
    """What a boot's report of itself and its first probes break already, before any episode.

    Args:
        run: As it was recorded.
        contract: What the run promises.
        boot: The server that was started.
        probes: The turns of its probes.
    """
    facts = RunFacts(run=run, contract=contract, boots=((boot, None),), episodes=(), divergences=(), tasks=())
    return tuple(row for row in audit_run(facts, probes) if row.verdict is BREACHED)


def _missing(facts: RunFacts, seen: Mapping[str, int]) -> Iterator[Evidence]:
    """What every clause rests on and is not there; nothing can be said of a server or an episode without records."""
    evidence = ClauseEvidence(facts.run.run_id, "")
    if not facts.boots:
        yield evidence.row("servers that were recorded", UNPROVEN, expected="at least one", observed="none")
    finished = [episode for episode in facts.episodes if episode.status is EpisodeStatus.FINISHED]
    silent = [
        episode.plan.label
        for episode in finished
        if not episode.turns or seen.get(episode.plan.episode_id, 0) != episode.turns
    ]
    if silent or not finished:
        observed = f"{len(silent)} of {len(finished)} finished episodes lack some"
        yield evidence.row(
            "turns that were recorded",
            UNPROVEN,
            expected="every turn that was made, at least one in every finished episode",
            observed=observed,
            episodes=shown(silent),
        )


def clause_verdicts(evidence: Sequence[Evidence]) -> dict[str, ClauseVerdict]:
    """Each clause's verdict: its worst evidence; a clause without evidence is unproven."""
    verdicts = {}
    for clause in CLAUSES:
        found = {row.verdict for row in evidence if row.clause == clause}
        verdicts[clause] = next((verdict for verdict in _WORST_FIRST if verdict in found), UNPROVEN)
    return verdicts


def run_verdict(facts: RunFacts, evidence: Sequence[Evidence]) -> Verdict:
    """What the run comes to.

    An episode that was not run leaves the question open, whatever the others show. Then a breach counts most; then a
    divergence that the contract only measures; then a clause that could not be proven.
    """
    finished = sum(episode.status is EpisodeStatus.FINISHED for episode in facts.episodes)
    if finished < facts.run.planned_episodes:
        return Verdict.UNPROVEN
    found = set(clause_verdicts(evidence).values())
    if BREACHED in found:
        return Verdict.BREACHED
    if any(differs_at(divergence, facts.contract.repeats.level) for divergence in facts.divergences):
        return Verdict.DIVERGED
    return Verdict.UNPROVEN if UNPROVEN in found else Verdict.KEPT
