"""Shares, intervals and tests, against values worked out elsewhere or by counting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
import run_records as made
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.compare import flips, pass_at_k, pass_hat_k, quantiles, rate, varieties


def wilson(count: int, of: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The textbook's formula."""
    share = count / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return middle - half, middle + half


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 1000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_interval_is_wilsons(counted: tuple[int, int]) -> None:
    found = rate(*counted).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx(wilson(*counted), abs=1e-9)


def test_none_of_eighty_may_still_be_one_in_twenty() -> None:
    found = rate(0, 80).interval
    assert found is not None
    assert found.low == 0.0
    assert found.high == pytest.approx(0.0458, abs=1e-4)


def test_nothing_compared_has_no_interval_and_no_share() -> None:
    nothing = rate(0, 0)
    assert (nothing.interval, nothing.share) == (None, None)


@pytest.mark.parametrize("counted", [(3, 2), (-1, 2), (1, 0)])
def test_an_impossible_count_is_refused(counted: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"."):
        rate(*counted)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_is_the_two_sided_sign_test(lost: int, won: int) -> None:
    pairs = [(True, False)] * lost + [(False, True)] * won + [(True, True)] * 3 + [(None, True)]
    found = flips(pairs)
    assert (found.passed_to_failed, found.failed_to_passed, found.pairs) == (lost, won, lost + won + 3)
    if lost + won == 0:
        assert found.p_value is None
        return
    tail = sum(math.comb(lost + won, n) for n in range(min(lost, won) + 1)) / 2 ** (lost + won)
    assert found.p_value == pytest.approx(min(1.0, 2 * tail))


def drawn(samples: Sequence[bool], k: int, *, of_all: bool) -> float:
    """By counting every choice of k samples."""
    choices = list(itertools.combinations(samples, k))
    return sum((all if of_all else any)(choice) for choice in choices) / len(choices)


SAMPLES = st.dictionaries(st.text(max_size=3), st.lists(st.booleans(), min_size=3, max_size=6), min_size=1, max_size=4)


@settings(deadline=None, max_examples=40)
@given(SAMPLES, st.integers(1, 3))
def test_pass_at_k_counts_choices_with_one_that_passed(passed: dict[str, list[bool]], k: int) -> None:
    expected = sum(drawn(samples, k, of_all=False) for samples in passed.values()) / len(passed)
    assert pass_at_k(passed, k).value == pytest.approx(expected)


@settings(deadline=None, max_examples=40)
@given(SAMPLES, st.integers(1, 3))
def test_pass_hat_k_counts_choices_that_all_passed(passed: dict[str, list[bool]], k: int) -> None:
    found = pass_hat_k(passed, k)
    expected = sum(drawn(samples, k, of_all=True) for samples in passed.values()) / len(passed)
    assert found.value == pytest.approx(expected)
    if found.interval is not None:
        assert found.interval.low <= found.value + 1e-9
        assert found.interval.high >= found.value - 1e-9


def test_equal_data_have_equal_intervals() -> None:
    passed = {str(place): [place % 2 == 0, place % 3 == 0] for place in range(12)}
    assert pass_at_k(passed, 1) == pass_at_k(passed, 1)


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="b has 1 samples, fewer than 2"):
        pass_at_k({"a": [True, False], "b": [True]}, 2)


def test_quantiles_of_nothing_are_none() -> None:
    assert quantiles([]) == ()
    assert quantiles([1.0, 2.0, 3.0]) == (1.0, 1.5, 2.0, 2.5, 3.0)


def test_variety_counts_different_trajectories_of_each_variant() -> None:
    plans = [made.plan(repeat) for repeat in range(3)]
    call = made.call(arguments='{"id":2}')
    same_meaning = made.call(arguments='{"id":2.0}')
    sides = [
        made.trajectory(made.turn(0, plans[0], tool_calls=(call,)), of=plans[0]),
        made.trajectory(made.turn(0, plans[1], tool_calls=(same_meaning,), output_ids=(11, 99, 13)), of=plans[1]),
        made.trajectory(made.turn(0, plans[2], tool_calls=(made.call(),)), of=plans[2]),
    ]
    (found,) = varieties(sides)
    assert (found.episodes, found.by_tokens, found.by_calls) == (3, 2, 2)
