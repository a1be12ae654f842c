"""The plan of a run: which variants, in which order, with which seeds and salts; all before anything starts."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest
import run_records as made
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.loop import plan_episodes
from agenteval.records import EpisodePlan
from agenteval.spec import TaskVariant


def variant(task: str, name: str = "base", *tags: str) -> TaskVariant:
    return replace(made.VARIANT, task=task, variant=name, tags=tags)


VARIANTS = (variant("pay", "a", "bank"), variant("pay", "b", "bank"), variant("book", "base", "trip", "slow"))


def plans(run_id: str = "run", *, contract: str = "strict", samples: int = 2, repeats: int = 3) -> list[EpisodePlan]:
    of = made.contract(contract, repeats__count=repeats)
    return list(plan_episodes(run_id, of, VARIANTS, samples=samples))


def test_all_samples_of_all_variants_run_before_any_is_repeated() -> None:
    found = [(plan.repeat, plan.sample, plan.task, plan.variant) for plan in plans(samples=2, repeats=2)]
    assert found == [
        (repeat, sample, task, name)
        for repeat in (0, 1)
        for sample in (0, 1)
        for task, name in (("pay", "a"), ("pay", "b"), ("book", "base"))
    ]
    assert [plan.position for plan in plans()] == list(range(18))


def test_seeds_are_equal_across_repeats_and_differ_across_everything_else() -> None:
    seeds: dict[tuple[str, str, int], set[int]] = {}
    for plan in plans(samples=4, repeats=3):
        seeds.setdefault((plan.task, plan.variant, plan.sample), set()).add(plan.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({seed for found in seeds.values() for seed in found}) == len(seeds) == 12


@settings(deadline=None, max_examples=30)
@given(st.text(max_size=10), st.text(max_size=10))
def test_seeds_do_not_depend_on_the_run(left: str, right: str) -> None:
    assert [plan.seed for plan in plans(left)] == [plan.seed for plan in plans(right)]


def test_seeds_depend_on_the_contracts_seed() -> None:
    other = made.contract(sampling__seed=1)
    seeds = {plan.seed for plan in plan_episodes("run", other, VARIANTS, samples=2)}
    assert seeds.isdisjoint({plan.seed for plan in plans()})


def test_more_samples_leave_the_seeds_of_the_first_ones_alone() -> None:
    few = {plan.seed for plan in plans(samples=1)}
    assert few < {plan.seed for plan in plans(samples=3)}


def test_salts_are_unique_in_a_run_and_between_runs() -> None:
    salts = [plan.cache_salt for run_id in ("run-1", "run-2") for plan in plans(run_id, contract="isolated")]
    assert len(set(salts)) == len(salts) == 36
    assert all(salt is not None and salt.startswith("agenteval-") and len(salt) <= 128 for salt in salts)


@pytest.mark.parametrize("contract", ["strict", "default", "invariant"])
def test_no_salt_is_sent_where_the_contract_does_not_isolate(contract: str) -> None:
    assert {plan.cache_salt for plan in plans(contract=contract)} == {None}


def test_episode_ids_sort_in_the_runs_order() -> None:
    ids = [plan.episode_id for plan in plans(samples=9)]
    assert ids == sorted(ids)
    assert all(len(list(group)) == 1 for _, group in groupby(ids))
