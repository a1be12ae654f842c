"""What a run's stored facts come to when they are judged again, beside what the run itself found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import agenteval
from agenteval.digest import canonical_json
from agenteval.judge import Findings
from agenteval.log import printable
from agenteval.records import Evidence, Verdict
from agenteval.report.summary import RunSummary
from agenteval.report.text import CANNOT_TELL, EXIT_CODES, clause_lines, clauses_json, verdict_line

_SHOWN_DIFFERENCES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A run judged twice."""

    stored: RunSummary
    """As the run judged itself, or did not."""
    findings: Findings
    """As its stored facts are judged now."""

    @property
    def derived(self) -> RunSummary:
        """The run's summary with what was found now."""
        return replace(self.stored, evidence=self.findings.evidence, divergences=self.findings.divergences)

    @property
    def verdict(self) -> Verdict:
        """What the stored facts come to now."""
        return self.findings.verdict

    @property
    def differences(self) -> tuple[str, ...]:
        """Where the two judgements differ, and stored facts contradict each other, one a line."""
        lines = list(self.findings.contradictions)
        if not self.stored.is_judged:
            return tuple(lines)
        if self.stored.verdict is not self.verdict:
            lines.append(f"verdict: the run stored {self.stored.verdict}, its facts come to {self.verdict}")
        if set(self.stored.divergences) != set(self.findings.divergences):
            stored, found = len(self.stored.divergences), len(self.findings.divergences)
            lines.append(f"divergences: the run stored {stored}, its facts come to {found}, and they are not the same")
        before, now = (Counter(map(_row_text, rows)) for rows in (self.stored.evidence, self.findings.evidence))
        lines += [f"only stored: {row}" for row in (before - now).elements()]
        lines += [f"only found now: {row}" for row in (now - before).elements()]
        return tuple(lines)

    @property
    def exit_code(self) -> int:
        """The verdict's; that the two judgements differ leaves open which is right."""
        return CANNOT_TELL if self.differences else EXIT_CODES[self.verdict]


def verification_text(verification: Verification) -> str:
    """For people: one line a clause, whether the run had found the same, the verdict."""
    run, derived = verification.stored.run, verification.derived
    lines = [
        f"run {run.run_id}: contract {run.contract}, judged again from what is stored",
        *clause_lines(derived),
        *_agreement(verification),
        verdict_line(derived, verification.verdict),
    ]
    return "\n".join(lines)


def verification_json(verification: Verification) -> dict[str, Any]:
    """For machines: everything."""
    stored = verification.stored
    return {
        "run_id": stored.run.run_id,
        "contract": stored.run.contract,
        "verdict": verification.verdict.value,
        "stored_verdict": None if stored.verdict is None else stored.verdict.value,
        "agrees": not verification.differences if stored.is_judged or verification.differences else None,
        "differences": list(verification.differences),
        "exit_code": verification.exit_code,
        "clauses": clauses_json(verification.derived),
    }


def _agreement(verification: Verification) -> list[str]:
    stored, differences = verification.stored, verification.differences
    if not stored.is_judged and not differences:
        return ["stored    the run came to no judgement of its own"]
    if not differences:
        facts, parted = len(stored.evidence), len(stored.divergences)
        return [f"stored    the run found the same: {facts} facts, {parted} divergences, verdict {stored.verdict}"]
    count = "1 difference" if len(differences) == 1 else f"{len(differences)} differences"
    lines = [f"stored    {count} from what the run found"]
    if stored.run.agenteval_version != agenteval.__version__:
        lines.append(
            f"          it was judged by agenteval {stored.run.agenteval_version}, this is {agenteval.__version__}"
        )
    lines += [f"          {line}" for line in differences[:_SHOWN_DIFFERENCES]]
    more = len(differences) - _SHOWN_DIFFERENCES
    return lines + ([f"          and {more} more; --json shows all"] if more > 0 else [])


def _row_text(row: Evidence) -> str:
    detail = f" {canonical_json(row.detail)}" if row.detail else ""
    return printable(f"{row.clause} {row.verdict}: {row.fact}: {row.observed}; expected {row.expected}{detail}")
