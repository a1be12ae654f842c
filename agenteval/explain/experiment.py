"""Which single change turns the one recorded answer into the other: the conditions, and the server that they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from agenteval.contract import Contract, differences
from agenteval.digest import canonical_json
from agenteval.explain.conclusion import explanation_of
from agenteval.explain.model import Condition, Explanation, Side, Subject, Trial
from agenteval.explain.replay import Replayer
from agenteval.explain.subject import request_differences

ATTEMPTS = 2
"""Trials of each condition: one that does not repeat itself explains nothing."""
LEAST_COMPANY = 7
"""Others in flight in the crowded condition where the episodes themselves had none."""
_SIDES: tuple[Side, Side] = ("a", "b")
_REASONS = {
    "cache.mode": "so that a part of the prompt can be warm; salts keep every trial apart",
    "batching.mode": "so that there can be company",
    "batching.concurrency": "so that there can be company",
}
"""Field of a contract to why the experiment needs it otherwise."""


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
    """What the experiment's contract has otherwise, and why, in words."""
    return tuple(
        f"{field}: {before} in the run, {after} here, {_REASONS[field]}"
        for field, (before, after) in differences(run, experiment).items()
    )


def company_of(subject: Subject) -> int:
    """Most other requests in a crowded condition."""
    return max(_companies(subject))


def _companies(subject: Subject) -> list[int]:
    """Other requests in each crowded condition: as many as each side had."""
    recorded = dict.fromkeys(count - 1 for count in subject.requests_in_flight if count > 1)
    return list(recorded) or [LEAST_COMPANY]


def conditions_of(subject: Subject, *, boots: int) -> list[Condition]:
    """What is tried, each against `cold`: the request of a, alone, with nothing of it in the cache.

    Args:
        subject: What is asked for again.
        boots: Starts of the server; each beyond the first is a condition of its own.
    """
    found = [Condition(name="cold", kind="none")]
    if request_differences(subject):
        found.append(Condition(name="b's request", kind="request", request_of="b"))
    for tokens in dict.fromkeys(count for count in subject.cached_tokens if count):
        found.append(Condition(name=f"warm, {tokens} tokens", kind="cache", warm_tokens=tokens))
    found += _histories(subject)
    for company in _companies(subject):
        found.append(Condition(name=f"with {company} others", kind="batching", company=company))
    return found + [Condition(name="other boot", kind="boot", boot=boot) for boot in range(1, boots)]


def _histories(subject: Subject) -> Iterator[Condition]:
    """After each side's own turns, whose first may have found a part of its prompt in the cache.

    What a turn reads from the cache was computed when an earlier turn was, so its bits depend on what that one found.
    """
    if not subject.turn:
        return
    heads = [count or 0 for count in subject.first_cached_tokens]
    for side, head in list(zip(_SIDES, heads, strict=True))[: len(set(heads))]:
        warm = f" (begun warm, {head} tokens)" if head else ""
        yield Condition(name=f"after {side}'s turns{warm}", kind="cache", history=side, head_tokens=head)


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
        changes: What it has otherwise than the run's, in words.
        on_trial: Told of each trial.

    Raises:
        ServerError: If a server cannot be started, refuses or fails.
        StoppedError: If the user asks for a stop.
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
    return explanation_of(subject, changes, trials)
