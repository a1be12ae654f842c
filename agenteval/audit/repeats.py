"""Repeats: did the same seed give the same trajectory?"""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit.facts import NOT_PROMISED, ClauseEvidence, RunFacts, shown
from agenteval.compare import differs_at
from agenteval.records import EpisodeStatus, Evidence, Turn


class RepeatsAuditor:
    """Rests on the comparison of all repeats of each task, variant and sample."""

    clause = "repeats"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._evidence = facts, ClauseEvidence(facts.run.run_id, self.clause)

    def observe(self, turn: Turn) -> None:
        """Nothing: the comparison has seen the turns."""

    def conclude(self) -> Iterator[Evidence]:
        """Pairs compared, and those that differ at the contract's level."""
        repeats, level = self._facts.contract.repeats, self._facts.contract.repeats.level
        finished = [episode.plan for episode in self._facts.episodes if episode.status is EpisodeStatus.FINISHED]
        samples = {(plan.task, plan.variant, plan.sample) for plan in finished}
        pairs = len(finished) - len(samples)
        wanted = self._facts.run.planned_episodes // repeats.count * (repeats.count - 1)
        differing = [divergence for divergence in self._facts.divergences if differs_at(divergence, level)]
        observed = f"{len(differing)} of {pairs} pairs differ; {wanted} were planned"
        names = shown([f"{item.task}/{item.variant} at {item.level}" for item in differing])
        fact, expected = f"repeats compared at {level}", f"all {wanted} pairs agree"
        if repeats.agree == "measured":
            yield self._evidence.row(fact, NOT_PROMISED, expected="measured", observed=observed, episodes=names)
            return
        complete = pairs == wanted and wanted > 0
        yield self._evidence.judged(
            fact,
            False if differing else True if complete else None,
            expected=expected if wanted else "at least two repeats",
            observed=observed,
            episodes=names,
        )
