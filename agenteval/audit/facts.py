"""What auditors are given, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from agenteval.contract import Contract
from agenteval.records import (
    Boot,
    BootEnd,
    ClauseVerdict,
    Divergence,
    Episode,
    Evidence,
    Run,
    TaskRecord,
    Turn,
)

KEPT, BREACHED, UNPROVEN = ClauseVerdict.KEPT, ClauseVerdict.BREACHED, ClauseVerdict.UNPROVEN
NOT_PROMISED = ClauseVerdict.NOT_PROMISED
_SHOWN = 5
"""Items of a list that a row of evidence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run's stored facts, its turns excepted, which auditors see one by one."""

    run: Run
    contract: Contract
    boots: tuple[tuple[Boot, BootEnd | None], ...]
    episodes: tuple[Episode, ...]
    divergences: tuple[Divergence, ...]
    tasks: tuple[TaskRecord, ...]

    @property
    def is_managed(self) -> bool:
        """Whether every boot was started by us; of another's server, much cannot be proven."""
        return bool(self.boots) and all(boot.is_managed for boot, _ in self.boots)


def server_section(boot: Boot, *names: str) -> dict[str, Any]:
    """A section of the configuration that a server reported, by its path; empty where it reported none."""
    section: Any = boot.facts.get("config")
    for name in names:
        section = section.get(name) if isinstance(section, dict) else None
    return section if isinstance(section, dict) else {}


_IN_ORDER = ("stopped", "left running", "kept for the next run")
"""How a boot ends whose server answered to the last."""


def ended_in_order(end: BootEnd | None) -> bool:
    """Whether a boot ended when its episodes were over, so that the probes of its end could be sent."""
    return end is not None and end.reason in _IN_ORDER


def argument(boot: Boot, flag: str) -> str | None:
    """The value that a server of ours was given for an option; None where it was not given."""
    values = [value for name, value in zip(boot.argv, boot.argv[1:], strict=False) if name == flag]
    return values[-1] if values else None


def log_fact(boot: Boot, name: str) -> str | None:
    """What a server's start-up log said of itself; None where there is no log, or it did not say."""
    log = boot.facts.get("log")
    return log.get(name) if isinstance(log, dict) else None


class Auditor(Protocol):
    """Sees every turn of a run once, episodes' and probes', then concludes."""

    clause: str

    def observe(self, turn: Turn) -> None:
        """Take note of one turn; turns of an episode come in order."""

    def conclude(self) -> Iterator[Evidence]:
        """The evidence, at least one row."""


@dataclass(frozen=True, slots=True)
class ClauseEvidence:
    """Makes the evidence rows of one clause."""

    run_id: str
    clause: str

    def row(
        self,
        fact: str,
        verdict: ClauseVerdict,
        *,
        expected: object,
        observed: object,
        **detail: Any,
    ) -> Evidence:
        """One row of evidence."""
        return Evidence(
            run_id=self.run_id,
            clause=self.clause,
            fact=fact,
            verdict=verdict,
            expected=str(expected),
            observed=str(observed),
            detail=detail,
        )

    def judged(self, fact: str, holds: bool | None, *, expected: object, observed: object, **detail: Any) -> Evidence:
        """A row that is kept or breached, or unproven where `holds` is None."""
        verdict = UNPROVEN if holds is None else KEPT if holds else BREACHED
        return self.row(fact, verdict, expected=expected, observed=observed, **detail)


def place_of(turn: Turn) -> str:
    """Where a turn stands in its run, for people."""
    return f"{turn.episode_id} turn {turn.turn}"


def shown(items: list[str]) -> str:
    """The first few of a list, and how many more there are."""
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
