"""Which single change turns the one recorded answer into the other: the conditions, and what their trials say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from agenteval.contract import Contract, differences
from agenteval.digest import canonical_json
from agenteval.explain.model import ChangeKind, Condition, Explanation, Subject, Trial
from agenteval.explain.replay import Replayer

ATTEMPTS = 2
"""Trials of each condition: one that does not repeat itself explains nothing."""
LEAST_COMPANY = 7
"""Others in flight in the crowded condition where the episodes themselves had fewer."""
_WORDS: dict[ChangeKind, str] = {
    "cache": "what the cache holds",
    "batching": "the company of other requests",
    "boot": "another start of the server",
}


def experiment_contract(contract: Contract, company: int) -> Contract:
    """The contract under which the experiment's server is started: the run's, with room for every condition.

    Salts keep trials apart, so the cache can be on; how many requests may be computed together is opened as far as the
    crowded condition needs. Nothing that changes a kernel is touched.

    Args:
        contract: The run's.
        company: Other requests in the crowded condition.
    """
    fields = contract.fields()
    fields["name"] = "explain"
    fields["cache"]["mode"] = "per_episode"
    if contract.batching.mode != "invariant":
        fields["batching"]["mode"] = "free"
    fields["batching"]["concurrency"] = max(contract.batching.concurrency, company + 1)
    return Contract.model_validate_json(canonical_json(fields))


def contract_changes(run: Contract, experiment: Contract) -> tuple[str, ...]:
    """What the experiment's contract has otherwise, in words."""
    return tuple(
        f"{field}: {before} in the run, {after} here" for field, (before, after) in differences(run, experiment).items()
    )


def company_of(subject: Subject) -> int:
    """Other requests in the crowded condition."""
    return max(*subject.requests_in_flight, LEAST_COMPANY + 1) - 1


def conditions_of(subject: Subject, *, boots: int) -> list[Condition]:
    """What is tried, each against `cold`: the request alone, with nothing of it in the cache.

    Args:
        subject: What is asked for again.
        boots: Starts of the server; a second one is a condition of its own.
    """
    found = [Condition(name="cold", kind="none")]
    for tokens in dict.fromkeys(count for count in subject.cached_tokens if count):
        found.append(Condition(name=f"warm, {tokens} tokens", kind="cache", warm_tokens=tokens))
    if subject.turn:
        found.append(Condition(name="after a's turns", kind="cache", history="a"))
    company = company_of(subject)
    found.append(Condition(name=f"with {company} others", kind="batching", company=company))
    return found + [Condition(name="cold, other boot", kind="boot", boot=boot) for boot in range(1, boots)]


def explain(
    subject: Subject,
    open_server: Callable[[int], AbstractContextManager[Replayer]],
    *,
    boots: int,
    changes: tuple[str, ...],
    on_trial: Callable[[Trial], None],
) -> Explanation:
    """Try every condition, boot by boot.

    Args:
        subject: What is asked for again.
        open_server: Number of a boot to a replayer on a server of that boot, for as long as the context lasts.
        boots: Starts of the server.
        changes: How its contract differs from the run's, in words.
        on_trial: Told of each trial.

    Raises:
        ServerError: If a server cannot be started, refuses or fails.
    """
    conditions = conditions_of(subject, boots=boots)
    trials: list[Trial] = []
    for boot in range(boots):
        with open_server(boot) as replayer:
            for condition in conditions:
                if condition.boot == boot:
                    for attempt in range(1, ATTEMPTS + 1):
                        trials.append(replayer.try_once(condition, attempt))
                        on_trial(trials[-1])
    flips = tuple(dict.fromkeys(_flips(trials)))
    return Explanation(
        subject=subject,
        changes=changes,
        trials=tuple(trials),
        flips=flips,
        conclusion=_conclusion(trials, flips),
    )


def _sound(trials: Sequence[Trial]) -> dict[str, str | None]:
    """Condition to the side that all its trials equal; None where they do not agree, or show nothing."""
    sides: dict[str, str | None] = {}
    for trial in trials:
        is_sound = trial.is_same_prompt and trial.is_reached and trial.match in ("a", "b")
        side = trial.match if is_sound else None
        name = trial.condition.name
        sides[name] = side if sides.get(name, side) == side else None
    return sides


def _flips(trials: Sequence[Trial]) -> Iterator[ChangeKind]:
    """Kinds of change of which one turns the answer: from cold to it, or from one of its conditions to another."""
    sides = _sound(trials)
    kinds = {trial.condition.name: trial.condition.kind for trial in trials}
    for kind in dict.fromkeys(kinds.values()):
        own = {side for name, side in sides.items() if kinds[name] == kind}
        if kind != "none" and {"a", "b"} <= own | {sides.get("cold")} and own & {"a", "b"}:
            yield kind


def _conclusion(trials: Sequence[Trial], flips: Sequence[ChangeKind]) -> str:
    """One sentence."""
    if not all(trial.is_same_prompt for trial in trials):
        return "The server made other token ids of the recorded request, so nothing can be told."
    sides = _sound(trials)
    cold = sides.get("cold")
    start = f"Alone and cold the server answers as {cold or 'neither side, or not twice the same'}"
    if not flips:
        told = "no change can be told" if cold is None else "no single change tried here makes it answer as the other"
        return f"{start}: {told}."
    what = " and ".join(_WORDS[kind] for kind in flips)
    alone = "alone turns" if len(flips) == 1 else ", each alone, turn"
    found = "; ".join(f"{name}: {side}" for name, side in sides.items() if side is not None)
    return f"{start}; {what} {alone} the one answer into the other ({found})."
