"""The fixed order of a run's episodes, and what is derived for each."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.contract import Contract
from agenteval.digest import derive_seed, digest_json
from agenteval.errors import InputError, UnknownNameError
from agenteval.records import EpisodePlan
from agenteval.spec import Suite, TaskVariant
from agenteval.words import nearest

MAX_EPISODES = 1_000_000
"""More in one run are taken for a slip of the hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which of a suite's variants run; all that are given must hold."""

    tasks: tuple[str, ...] = ()
    """Only these tasks, or variants as `task/variant`."""
    tags: tuple[str, ...] = ()
    """Only tasks with one of these tags."""
    limit: int | None = None
    """Only so many variants, the first ones."""


def select_variants(suite: Suite, selection: Selection) -> tuple[TaskVariant, ...]:
    """The variants that run, in the suite's order.

    Raises:
        UnknownNameError: If a task or tag does not exist.
        InputError: If nothing is left.
    """
    tasks = sorted({variant.task for variant in suite.variants})
    labels = [variant.label for variant in suite.variants]
    _check_names("task", selection.tasks, [*tasks, *labels] if any("/" in name for name in selection.tasks) else tasks)
    _check_names("tag", selection.tags, sorted({tag for variant in suite.variants for tag in variant.tags}))
    chosen = [
        variant
        for variant in suite.variants
        if (not selection.tasks or variant.task in selection.tasks or variant.label in selection.tasks)
        and (not selection.tags or set(variant.tags) & set(selection.tags))
    ]
    chosen = chosen[: selection.limit]
    if not chosen:
        raise InputError("No task is left to run. Loosen --task, --tag or --limit.")
    return tuple(chosen)


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


def _check_names(what: str, names: tuple[str, ...], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownNameError(what=what, name=name, known=known, advice=nearest(name, known).strip())
