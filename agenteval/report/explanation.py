"""What an experiment on a divergence came to, as text for a terminal and as JSON for a machine."""

from __future__ import annotations

import dataclasses
from typing import Any

from agenteval.columns import table
from agenteval.explain import Explanation, Subject, Trial
from agenteval.log import printable
from agenteval.report.text import short_text

_TOKEN = 16
"""Characters of a token that the table shows."""
_LABEL = 10
"""Width of what a line is about."""


def explanation_text(found: Explanation) -> str:
    """Every trial and the conclusion, for people."""
    subject = found.subject
    first, second = _candidates(subject)
    lines = [
        printable(f"{subject.label}: turn {subject.turn} token {subject.token}, {first} in a against {second} in b"),
        f"{'recorded':<{_LABEL}}cached tokens {_count(subject.cached_tokens[0])} against "
        f"{_count(subject.cached_tokens[1])}, in flight {subject.requests_in_flight[0]} against "
        f"{subject.requests_in_flight[1]}",
        *_labelled("signs", subject.signs),
        *_labelled("server", found.changes),
        "",
        table(
            ("condition", "try", "cached", "in flight", "token", *_logprob_columns(subject), "margin", "equals"),
            [_row(trial, subject) for trial in found.trials],
        ),
        "",
        found.conclusion,
    ]
    return "\n".join(lines)


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Every trial and the conclusion, for machines."""
    return {
        **dataclasses.asdict(found),
        "candidates": list(found.subject.candidates),
        "exit_code": explanation_exit_code(found),
    }


def explanation_exit_code(found: Explanation) -> int:
    """0 where one kind of change alone flips the answer, 1 where none or several do, 2 where nothing can be told."""
    if not found.could_tell:
        return 2
    return 0 if len(found.flips) == 1 else 1


def trial_result(trial: Trial) -> str:
    """The recorded answer that a trial equals, and how far, in words."""
    if not trial.is_same_prompt:
        return "void: another prompt"
    if trial.departs_at is not None:
        return f"neither, from token {trial.departs_at} on"
    return f"{trial.match}, every bit" if trial.is_exact else trial.match


def _candidates(subject: Subject) -> tuple[str, str]:
    """Each side's token at the place, or what stands for it; in logprobs where no token tells them apart."""
    texts = []
    for text, answer in zip(subject.candidates, subject.answers, strict=True):
        if len(answer.tokens) <= subject.token:
            texts.append("the end")
        elif subject.tells_tokens_apart:
            texts.append(short_text(text, _TOKEN))
        else:
            texts.append(f"{short_text(text, _TOKEN)} at {answer.logprobs[subject.token]:.9g}")
    return texts[0], texts[1]


def _logprob_columns(subject: Subject) -> tuple[str, str]:
    """The two candidates by their tokens, which are one where only logprobs differ."""
    first, second = (short_text(text, _TOKEN) for text in subject.candidates)
    return (f"logprob {first}", f"logprob {second}") if first != second else ("logprob a's", "logprob b's")


def _labelled(label: str, texts: tuple[str, ...]) -> list[str]:
    """Lines of one kind, the first of which is named."""
    return [printable(f"{label if not place else '':<{_LABEL}}{text}") for place, text in enumerate(texts)]


def _row(trial: Trial, subject: Subject) -> tuple[str, ...]:
    first, second = trial.candidate_logprobs
    place = subject.token
    # Behind another beginning, the logprobs at the place are of another text.
    is_there = trial.departs_at is None or trial.departs_at >= place
    token = trial.answer.tokens[place] if is_there and len(trial.answer.tokens) > place else None
    margin = _margin(trial, subject) if is_there else None
    return (
        trial.condition.name + ("" if trial.is_reached else " (not reached)"),
        str(trial.attempt),
        _count(trial.cached_tokens),
        str(trial.requests_in_flight),
        "-" if token is None else short_text(token, _TOKEN),
        _logprob(first if is_there else None, subject),
        _logprob(second if is_there else None, subject),
        "-" if margin is None else f"{margin:.3g}",
        trial_result(trial),
    )


def _margin(trial: Trial, subject: Subject) -> float | None:
    """Logprob of a's token less that of b's; where both are one token, of it less its best rival's."""
    first, second = trial.candidate_logprobs
    if not subject.tells_tokens_apart:
        rivals = trial.answer.runner_up_logprobs
        second = rivals[subject.token] if subject.token < len(rivals) else None
    return None if first is None or second is None else first - second


def _logprob(value: float | None, subject: Subject) -> str:
    """With every digit that a single-precision number has where only these tell the answers apart."""
    if value is None:
        return "-"
    return f"{value:.6f}" if subject.tells_tokens_apart else f"{value:.9g}"


def _count(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"
