"""The summary as text for a terminal and as JSON for a machine."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agenteval.compare import ORDER
from agenteval.log import printable
from agenteval.records import OWN_AGENT, ClauseVerdict, Divergence, Evidence, Grade, Run, Verdict
from agenteval.report.summary import RunSummary

EXIT_CODES = {Verdict.KEPT: 0, Verdict.DIVERGED: 1, Verdict.BREACHED: 1, Verdict.UNPROVEN: 2}
"""Exit status of a run by its verdict."""
CANNOT_TELL = 2
"""Exit status where there is no verdict."""
_MEANING = {
    Verdict.KEPT: "every clause was kept",
    Verdict.DIVERGED: "the contract promises no repeatability, and repeats differ",
    Verdict.BREACHED: "a clause did not hold",
    Verdict.UNPROVEN: "what was measured does not decide every clause",
}
_SHOWN_REASONS, _REASON = 12, 140
"""Reasons for failing that the text shows, and their characters; the database and the JSON hold all."""
_INDENT = " " * 10
"""As wide as the words that begin a line."""


def summary_text(summary: RunSummary) -> str:
    """The summary for people, as lines without colour."""
    run = summary.run
    lines = [
        f"run {run.run_id}: suite {run.suite}, contract {run.contract}, model {run.model}{_agent(run)}",
        f"episodes  {_episodes(summary)}",
    ]
    lines += [
        f"{_INDENT}not run: {episode.plan.label}: {printable(episode.message or '')}" for episode in summary.not_run
    ]
    lines += [f"{_INDENT}{line}" for line in _unpassed(summary)]
    lines += _faults(summary)
    if summary.contract.repeats.count > 1:
        lines.append(f"repeats   {_repeats(summary)}")
    # The sort is stable, so that equals stay in the order of their tasks.
    worst_first = sorted(summary.divergences, key=lambda item: -ORDER.index(item.level))
    lines += [f"{_INDENT}{_divergence(item)}" for item in worst_first]
    if summary.evidence:
        lines += ["clauses", *clause_lines(summary)]
    lines.append(_verdict(summary))
    return "\n".join(lines)


def _faults(summary: RunSummary) -> list[str]:
    """How many declared faults fired, and which did not in how many episodes."""
    if not summary.faults:
        return []
    silent = Counter(f"{item.task}/{item.variant}: {item.fault} of {item.tool}" for item in summary.silent_faults)
    fired = len(summary.faults) - len(summary.silent_faults)
    lines = [f"faults    {fired} of {len(summary.faults)} declared faults fired"]
    lines += [f"{_INDENT}never fired: {_with_count(fault, count)}" for fault, count in silent.items()][:_SHOWN_REASONS]
    more = len(silent) - _SHOWN_REASONS
    return lines + ([f"{_INDENT}and {more} more; see the view faults"] if more > 0 else [])


def _with_count(line: str, episodes: int) -> str:
    return line if episodes == 1 else f"{line} ({episodes} episodes)"


def _unpassed(summary: RunSummary) -> list[str]:
    """Why episodes did not pass: each task variant's first check that says so, with how many episodes it stopped."""
    variants = {episode.plan.episode_id: f"{episode.plan.task}/{episode.plan.variant}" for episode in summary.episodes}
    first: dict[str, Grade] = {}
    for grade in summary.grades:
        if grade.passed is not True and grade.episode_id in variants:
            first.setdefault(grade.episode_id, grade)
    reasons = Counter(
        f"{_unpassed_word(grade)}: {variants[episode_id]}: {_short_reason(grade)}"
        for episode_id, grade in first.items()
    )
    lines = [_with_count(line, count) for line, count in reasons.items()]
    more = len(lines) - _SHOWN_REASONS
    return lines[:_SHOWN_REASONS] + ([f"and {more} more; see the table grades"] if more > 0 else [])


def _unpassed_word(grade: Grade) -> str:
    return "failed" if grade.passed is False else "not graded"


def _short_reason(grade: Grade) -> str:
    text = printable(grade.reason.removeprefix(f"{_unpassed_word(grade)}: "))
    return text if len(text) <= _REASON else text[: _REASON - 1] + "…"


def summary_json(summary: RunSummary) -> dict[str, Any]:
    """The summary for machines; keys are stable, unknown is null."""
    run = summary.run
    return {
        "run_id": run.run_id,
        "suite": run.suite,
        "suite_digest": run.suite_digest,
        "contract": run.contract,
        "contract_digest": run.contract_digest,
        "model": run.model,
        "model_digest": run.model_digest,
        "agent": run.agent,
        "status": "running" if summary.end is None else summary.end.status,
        "verdict": None if summary.verdict is None else summary.verdict.value,
        "exit_code": exit_code(summary),
        "episodes": {
            "planned": run.planned_episodes,
            "finished": summary.finished,
            "not_run": len(summary.not_run),
            "passed": summary.passing,
            "failed": summary.failing,
            "not_graded": summary.not_graded,
        },
        "repeats": {
            "count": summary.contract.repeats.count,
            "level": summary.contract.repeats.level.value,
            "pairs": summary.pairs,
            "differing": summary.by_level() if summary.is_judged else dict.fromkeys(summary.by_level()),
        },
        "faults": [
            {"episode_id": item.episode_id, "fault": item.fault, "tool": item.tool, "fired": item.fired}
            for item in summary.faults
        ],
        "grades": [
            {"episode_id": item.episode_id, "kind": item.kind, "passed": item.passed, "reason": item.reason}
            for item in summary.grades
            if item.passed is not True
        ],
        "divergences": [_divergence_json(item) for item in summary.divergences],
        "clauses": clauses_json(summary),
    }


def clauses_json(summary: RunSummary) -> dict[str, Any]:
    """Clause to its verdict and all its evidence."""
    return {
        clause: {
            "verdict": verdict.value,
            "evidence": [_evidence_json(row) for row in summary.evidence if row.clause == clause],
        }
        for clause, verdict in summary.clauses.items()
    }


def exit_code(summary: RunSummary) -> int:
    """0 kept, 1 breached or diverged, 2 could not tell."""
    return CANNOT_TELL if summary.verdict is None else EXIT_CODES[summary.verdict]


def _agent(run: Run) -> str:
    return "" if run.agent == OWN_AGENT else f", agent {printable(run.agent)}"


def _episodes(summary: RunSummary) -> str:
    graded = summary.passing + summary.failing
    rate = f" ({_percent(summary.passing, graded)})" if graded else ""
    rest = f", {summary.not_graded} not graded" if summary.not_graded else ""
    finished = f"{summary.finished} of {summary.run.planned_episodes} finished"
    return f"{finished}, {summary.passing} of {graded} passed{rate}{rest}"


def passed_text(*, passed: int, graded: int, not_graded: int) -> str:
    """How many episodes passed of those that could be graded; the others are told beside, as no failures."""
    rate = f"{passed} of {graded} ({_percent(passed, graded)})" if graded else "-"
    return f"{rate}, {not_graded} not graded" if not_graded else rate


def _percent(part: int, whole: int) -> str:
    """A share to the nearest percent; 100% means all of them and 0% none."""
    nearest = round(100 * part / whole)
    return f"{nearest if part in (0, whole) else min(max(nearest, 1), 99)}%"


def _repeats(summary: RunSummary) -> str:
    if not summary.pairs:
        return "no pair to compare"
    pairs = "1 pair" if summary.pairs == 1 else f"{summary.pairs} pairs"
    if not summary.is_judged:
        return f"{pairs}, not compared"
    counts = ", ".join(f"{level} {count}" for level, count in summary.by_level().items())
    return f"{pairs} compared at {summary.contract.repeats.level}; that differ: {counts}"


def _divergence(item: Divergence) -> str:
    names = f"{item.task}/{item.variant} sample {item.sample} repeat {item.repeat_a} against {item.repeat_b}"
    return f"{names}: {divergence_text(item)}"


def divergence_place(item: Divergence) -> str:
    """At which level two trajectories differ, and from where on."""
    token = "" if item.token is None else f" token {item.token}"
    return f"{item.level} differ from turn {item.turn}{token} on"


def divergence_text(item: Divergence) -> str:
    """Where two trajectories part, what stands there, and why."""
    margins = (
        ""
        if item.margin_a is None or item.margin_b is None
        else f", margin {item.margin_a:.3g} against {item.margin_b:.3g}"
    )
    texts = f"{short_text(item.text_a)} against {short_text(item.text_b)}"
    return f"{divergence_place(item)}: {texts}{margins}; {printable(item.cause)}"


def clause_lines(summary: RunSummary) -> list[str]:
    """Each clause's verdict and the first row that decided it, then every other row that was not kept."""
    lines = []
    for clause, verdict in summary.clauses.items():
        rows = [row for row in summary.evidence if row.clause == clause]
        deciding = [row for row in rows if row.verdict is verdict][:1]
        others = [row for row in rows if row not in deciding and _is_open(row)]
        facts = "1 fact" if len(rows) == 1 else f"{len(rows)} facts"
        told = [_fact(row) for row in deciding + others] or ["nothing was measured"]
        lines.append(f"  {clause:<9} {verdict:<12}  {facts:<8}  {told[0]}")
        lines += [f"  {'':<9} {'':<12}  {'':<8}  {fact}" for fact in told[1:]]
    return lines


def _fact(row: Evidence) -> str:
    expected = f"; expected {row.expected}" if _is_open(row) else ""
    return printable(f"{row.fact}: {row.observed}{expected}")


def _is_open(row: Evidence) -> bool:
    return row.verdict in (ClauseVerdict.BREACHED, ClauseVerdict.UNPROVEN)


def _verdict(summary: RunSummary) -> str:
    if summary.verdict is None:
        end = summary.end
        if end is None:
            return "verdict   none; it is still running, or its runner died"
        # The end of a server's log is part of some messages.
        first, *others = [printable(line) for line in (end.message or "").splitlines()] or ["no reason was recorded"]
        return "\n".join([f"verdict   none; {end.status}: {first}", *(f"{_INDENT}{line}" for line in others)])
    return verdict_line(summary, summary.verdict)


def verdict_line(summary: RunSummary, verdict: Verdict) -> str:
    """A verdict on a run, and what it means there."""
    missing = summary.run.planned_episodes - summary.finished
    if verdict is Verdict.UNPROVEN and missing:
        planned = summary.run.planned_episodes
        lost = "the only episode was" if planned == 1 else f"{missing} of {planned} episodes were"
        return f"verdict   {verdict}: {lost} not run; mend the cause, then run again"
    if verdict is Verdict.KEPT and ClauseVerdict.NOT_PROMISED in summary.clauses.values():
        return f"verdict   {verdict}: every clause that promises something was kept"
    return f"verdict   {verdict}: {_MEANING[verdict]}"


def short_text(text: str, characters: int = 40) -> str:
    """The start of a text in quotes, with all that a terminal would act upon spelled out."""
    return repr(text if len(text) <= characters else text[: characters - 1] + "…")


def _divergence_json(item: Divergence) -> dict[str, Any]:
    return {
        "task": item.task,
        "variant": item.variant,
        "sample": item.sample,
        "repeats": [item.repeat_a, item.repeat_b],
        "episodes": [item.episode_a, item.episode_b],
        "level": item.level.value,
        "turn": item.turn,
        "token": item.token,
        "texts": [item.text_a, item.text_b],
        "margins": [item.margin_a, item.margin_b],
        "cause": item.cause,
        "cause_kind": item.cause_kind,
    }


def _evidence_json(row: Evidence) -> dict[str, Any]:
    return {
        "fact": row.fact,
        "verdict": row.verdict.value,
        "expected": row.expected,
        "observed": row.observed,
        "detail": row.detail,
    }
