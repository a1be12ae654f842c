"""What an experiment on a divergence came to, as text for a terminal and as JSON for a machine."""

from __future__ import annotations

import dataclasses
from typing import Any

from agenteval.columns import table
from agenteval.explain import Explanation, Trial
from agenteval.report.text import short_text

_TOKEN = 16
"""Characters of a token that the table shows."""


def explanation_text(found: Explanation) -> str:
    """Every trial and the conclusion, for people."""
    subject = found.subject
    first, second = (short_text(text, _TOKEN) for text in subject.candidates)
    lines = [
        f"{subject.label}: turn {subject.turn} token {subject.token}, {first} in a against {second} in b",
        f"recorded  cached tokens {_count(subject.cached_tokens[0])} against {_count(subject.cached_tokens[1])}, in "
        f"flight {subject.requests_in_flight[0]} against {subject.requests_in_flight[1]}",
        *(f"{'server' if not place else '':<10}{change}" for place, change in enumerate(found.changes)),
        table(
            ("condition", "try", "cached", "token", f"logprob {first}", f"logprob {second}", "margin", "equals"),
            [_row(trial, found) for trial in found.trials],
        ),
        found.conclusion,
    ]
    return "\n".join(lines)


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Every trial and the conclusion, for machines."""
    return {**dataclasses.asdict(found), "exit_code": explanation_exit_code(found)}


def explanation_exit_code(found: Explanation) -> int:
    """0 where one kind of change alone flips the answer, 1 where none or several do, 2 where nothing can be told."""
    if not found.could_tell:
        return 2
    return 0 if len(found.flips) == 1 else 1


def _row(trial: Trial, found: Explanation) -> tuple[str, ...]:
    first, second = trial.candidate_logprobs
    place = found.subject.token
    is_there = trial.departs_at is None or trial.departs_at >= place
    token = trial.answer.tokens[place] if is_there and len(trial.answer.tokens) > place else None
    return (
        trial.condition.name,
        str(trial.attempt),
        _count(trial.cached_tokens) + ("" if trial.is_reached else " (not reached)"),
        "-" if token is None else short_text(token, _TOKEN),
        _logprob(first if is_there else None),
        _logprob(second if is_there else None),
        "-" if first is None or second is None or not is_there else f"{first - second:.3g}",
        _equals(trial),
    )


def _equals(trial: Trial) -> str:
    if not trial.is_same_prompt:
        return "void: another prompt"
    if trial.departs_at is not None:
        return f"neither, from token {trial.departs_at} on"
    return trial.match


def _logprob(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}"


def _count(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"
