"""A run's summary, as values."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.audit import clause_verdicts
from agenteval.compare import ORDER, differs_at, passed_by_episode, sample_of
from agenteval.contract import Contract
from agenteval.judge import contract_of
from agenteval.records import (
    ClauseVerdict,
    Divergence,
    Episode,
    EpisodeStatus,
    Evidence,
    FaultCount,
    Grade,
    Level,
    Run,
    RunEnd,
    Verdict,
)
from agenteval.store import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a person wants to know of a run, in one value."""

    run: Run
    end: RunEnd | None
    contract: Contract
    episodes: tuple[Episode, ...]
    passed: dict[str, bool | None]
    """Episode id to whether it passed; None where it was not graded."""
    grades: tuple[Grade, ...]
    """What every check says of every finished episode."""
    divergences: tuple[Divergence, ...]
    evidence: tuple[Evidence, ...]
    faults: tuple[FaultCount, ...]
    """Every declared fault of every episode."""

    @property
    def verdict(self) -> Verdict | None:
        """None where the run did not come to one."""
        return None if self.end is None else self.end.verdict

    @property
    def clauses(self) -> dict[str, ClauseVerdict]:
        """Each clause's verdict; empty where the run was not judged."""
        return clause_verdicts(self.evidence) if self.is_judged else {}

    @property
    def not_run(self) -> tuple[Episode, ...]:
        """Episodes that were started and have no end that can be graded."""
        return tuple(episode for episode in self.episodes if episode.status is EpisodeStatus.NOT_RUN)

    @property
    def finished(self) -> int:
        """Episodes with an end that can be graded."""
        return len(self.episodes) - len(self.not_run)

    @property
    def passing(self) -> int:
        """Episodes that passed."""
        return sum(value is True for value in self.passed.values())

    @property
    def failing(self) -> int:
        """Episodes that a check failed."""
        return sum(value is False for value in self.passed.values())

    @property
    def not_graded(self) -> int:
        """Finished episodes of which nothing is known: a check could not be evaluated, or there is no grade."""
        return self.finished - self.passing - self.failing

    @property
    def is_judged(self) -> bool:
        """Whether repeats were compared and clauses audited; both are stored together, the evidence last."""
        return bool(self.evidence)

    @property
    def pairs(self) -> int:
        """Repeats that could be compared with the first of their sample."""
        plans = [episode.plan for episode in self.episodes if episode.status is EpisodeStatus.FINISHED]
        return len(plans) - len({sample_of(plan) for plan in plans})

    @property
    def silent_faults(self) -> tuple[FaultCount, ...]:
        """Declared faults that did not fire in their episode: the agent never made the call."""
        return tuple(fault for fault in self.faults if not fault.fired)

    def differing(self, level: Level) -> int:
        """Pairs that differ at a level."""
        return sum(differs_at(divergence, level) for divergence in self.divergences)

    def by_level(self) -> dict[str, int]:
        """Level to pairs that differ there, strictest first."""
        return {level.value: self.differing(level) for level in ORDER}


def summarize(reader: RunReader) -> RunSummary:
    """Read a run's summary from the database.

    Raises:
        UnknownNameError: If there is no such run.
    """
    run, end = reader.run()
    grades = tuple(reader.grades())
    return RunSummary(
        run=run,
        end=end,
        contract=contract_of(run),
        episodes=tuple(reader.episodes()),
        passed=passed_by_episode(grades),
        grades=grades,
        divergences=tuple(reader.divergences()),
        evidence=tuple(reader.evidence()),
        faults=tuple(reader.faults()),
    )
