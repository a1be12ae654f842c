"""What the trials of an experiment say: per condition, and in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenteval.explain.model import ChangeKind, Condition, Explanation, Outcome, Subject, Trial

_WORDS: dict[ChangeKind, str] = {
    "request": "what b's request asks for",
    "cache": "what the cache holds",
    "batching": "the company of other requests",
    "boot": "another start of the server",
}
_COLD: dict[Outcome, str] = {
    Outcome.A: "Alone and cold the server answers as a",
    Outcome.B: "Alone and cold the server answers as b",
    Outcome.NEITHER: "Alone and cold the server answers as neither side, twice the same",
    Outcome.VARIES: "Alone and cold the server does not answer twice the same",
    Outcome.UNREACHED: "Whether the cache was cold could not be shown: the server counts hits under a salt of its own, "
    "or tells of none",
}


def explanation_of(subject: Subject, changes: tuple[str, ...], trials: Sequence[Trial]) -> Explanation:
    """Put the trials together.

    Args:
        subject: What was asked for again.
        changes: What the server had otherwise than the run's, in words.
        trials: Of every condition.
    """
    conditions = {trial.condition.name: trial.condition for trial in trials}
    outcomes = {name: _outcome([trial for trial in trials if trial.condition.name == name]) for name in conditions}
    flips = _flips(conditions, outcomes)
    return Explanation(
        subject=subject,
        changes=changes,
        trials=tuple(trials),
        outcomes=outcomes,
        flips=flips,
        conclusion=_conclusion(conditions, outcomes, flips),
    )


def _outcome(trials: Sequence[Trial]) -> Outcome:
    """A condition that does not repeat itself, or was not reached each time, explains nothing."""
    if not all(trial.is_same_prompt for trial in trials):
        return Outcome.VOID
    if not all(trial.is_reached for trial in trials):
        return Outcome.UNREACHED
    first, *others = trials
    if any(trial.match != first.match for trial in others):
        return Outcome.VARIES
    if first.match == "neither":
        return Outcome.NEITHER if all(trial.answer == first.answer for trial in others) else Outcome.VARIES
    return Outcome(first.match)


def _flips(conditions: Mapping[str, Condition], outcomes: Mapping[str, Outcome]) -> tuple[ChangeKind, ...]:
    """Kinds of change of which one turns the answer: from cold to it, or from one of its conditions to another."""
    if Outcome.VOID in outcomes.values():
        return ()
    cold = {outcome for name, outcome in outcomes.items() if conditions[name].kind == "none"}
    kinds = dict.fromkeys(condition.kind for condition in conditions.values() if condition.kind != "none")
    both = {Outcome.A, Outcome.B}
    return tuple(
        kind
        for kind in kinds
        if both <= cold | {outcome for name, outcome in outcomes.items() if conditions[name].kind == kind}
    )


def _conclusion(
    conditions: Mapping[str, Condition], outcomes: Mapping[str, Outcome], flips: Sequence[ChangeKind]
) -> str:
    """One sentence."""
    if Outcome.VOID in outcomes.values():
        return (
            "The server made other token ids of the recorded request: the experiment is void, and nothing can be told."
        )
    cold = next(outcome for name, outcome in outcomes.items() if conditions[name].kind == "none")
    found = "; ".join(f"{name}: {outcome.value}" for name, outcome in outcomes.items())
    if flips:
        what = " and ".join(_WORDS[kind] for kind in flips)
        alone = "alone turns" if len(flips) == 1 else "each alone turn"
        return f"{_COLD[cold]}; {what} {alone} the one answer into the other ({found})."
    if cold is Outcome.UNREACHED:
        return f"{_COLD[cold]}, so nothing can be told ({found})."
    if {Outcome.A, Outcome.B} & set(outcomes.values()):
        return f"{_COLD[cold]}; no single change tried here turns the one answer into the other ({found})."
    return f"{_COLD[cold]}, and neither recorded answer came again, so nothing can be told ({found})."
