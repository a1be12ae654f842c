"""The fixed order of a run's episodes, and what is derived for each."""

from __future__ import annotations

from agenteval.contract import Contract
from agenteval.digest import derive_seed, digest_json
from agenteval.errors import InputError
from agenteval.records import EpisodePlan
from agenteval.spec import TaskVariant

MAX_EPISODES = 1_000_000
"""More in one run are taken for a slip of the hand."""


def plan_episodes(
    run_id: str, contract: Contract, variants: tuple[TaskVariant, ...], *, samples: int
) -> tuple[EpisodePlan, ...]:
    """Every episode in the order in which they start: all samples of all variants, then all again for each repeat.

    Passes follow one another, rather than the repeats of one episode, so that a server's state from other episodes
    stands between them, as it does in practice.

    Raises:
        InputError: If there would be more than `MAX_EPISODES`.
    """
    count = contract.repeats.count * samples * len(variants)
    if count > MAX_EPISODES:
        raise InputError(f"{count:,} episodes are more than {MAX_EPISODES:,}. Lower --samples, --repeats or --limit.")
    attempts = [
        (repeat, sample, variant)
        for repeat in range(contract.repeats.count)
        for sample in range(samples)
        for variant in variants
    ]
    return tuple(
        EpisodePlan(
            run_id=run_id,
            position=position,
            task=variant.task,
            variant=variant.variant,
            sample=sample,
            repeat=repeat,
            seed=derive_seed(contract.sampling.seed, variant.task, variant.variant, sample),
            cache_salt=_salt(run_id, position) if contract.cache.mode == "per_episode" else None,
        )
        for position, (repeat, sample, variant) in enumerate(attempts)
    )


def _salt(run_id: str, position: int) -> str:
    """No two episodes of any run share one; the prefix keeps clear of adapter names, which vLLM hashes alike."""
    return "agenteval-" + digest_json([run_id, position]).removeprefix("sha256:")[:32]
