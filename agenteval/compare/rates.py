"""How much of what was compared differs, and how sure that is; the formulas are scipy's.

`scipy.stats` takes half a second to import, which commands that count nothing must not pay: it is imported where it is
used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
_RESAMPLES, _SEED = 2_000, 20_260_101
"""Of the bootstrap; the seed makes equal data give equal intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds of a share or a mean share, each in [0, 1]."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Some of a number of things."""

    count: int
    of: int
    interval: Interval | None
    """None where there was nothing to count."""

    @property
    def share(self) -> float | None:
        """In [0, 1]; None where there was nothing to count."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Pairs of which one side passed and the other did not."""

    passed_to_failed: int
    failed_to_passed: int
    pairs: int
    """Pairs of which both sides were graded."""
    p_value: float | None
    """McNemar's exact test, two-sided: how likely such an imbalance is where neither side is better. None where no pair
    flipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean of shares over task variants."""

    value: float
    interval: Interval | None
    """Bootstrap over task variants; None where there are fewer than two."""


def rate(count: int, of: int, *, confidence: float = CONFIDENCE) -> Rate:
    """A share with Wilson's interval, which is honest at 0 of n, where the normal one is empty.

    Args:
        count: Things that differ, 0 <= count <= of.
        of: Things compared.
        confidence: Coverage, in (0, 1).

    Raises:
        ValueError: If count is not from 0 to of.

    Source: E. B. Wilson, JASA 22 (1927) 209, as scipy.stats has it.
    """
    if of == 0 == count:
        return Rate(count=0, of=0, interval=None)
    from scipy.stats import binomtest

    found = binomtest(count, of).proportion_ci(confidence_level=confidence, method="wilson")
    return Rate(count=count, of=of, interval=Interval(low=float(found.low), high=float(found.high)))


def flips(pairs: Iterable[tuple[bool | None, bool | None]]) -> Flips:
    """Verdicts that differ between two sides of pairs.

    Args:
        pairs: Whether each side passed; None where it was not graded, which leaves the pair out.

    Source: Q. McNemar, Psychometrika 12 (1947) 153; exact form: a sign test of the flips.
    """
    counts = Counter((a, b) for a, b in pairs if a is not None and b is not None)
    lost, won = counts[True, False], counts[False, True]
    p_value = None
    if lost + won:
        from scipy.stats import binomtest

        p_value = float(binomtest(lost, lost + won).pvalue)
    return Flips(passed_to_failed=lost, failed_to_passed=won, pairs=counts.total(), p_value=p_value)


def pass_at_k(passed: Mapping[str, Sequence[bool]], k: int) -> Mean:
    """Chance that at least one of k samples of a task variant passes, averaged over variants.

    Unbiased: the share of all choices of k samples that hold one that passed.

    Args:
        passed: Task variant to whether each of its samples passed; each has at least k.
        k: Samples drawn, at least 1.

    Raises:
        ValueError: If a variant has fewer than k samples, or there is none.

    Source: M. Chen et al., arXiv 2107.03374, section 2.1.
    """
    return _mean_over(passed, k, lambda n, right: 1.0 - _all_of(n, n - right, k))


def pass_hat_k(passed: Mapping[str, Sequence[bool]], k: int) -> Mean:
    """Chance that all of k samples of a task variant pass, averaged over variants.

    Args:
        passed: Task variant to whether each of its samples passed; each has at least k.
        k: Samples drawn, at least 1.

    Raises:
        ValueError: If a variant has fewer than k samples, or there is none.

    Source: S. Yao et al., arXiv 2406.12045, section 3.
    """
    return _mean_over(passed, k, lambda n, right: _all_of(n, right, k))


def _all_of(n: int, marked: int, k: int) -> float:
    """Chance that k of n things, drawn without putting back, are all among the marked ones."""
    from scipy.stats import hypergeom

    return float(hypergeom.pmf(k, n, marked, k))


def _mean_over(passed: Mapping[str, Sequence[bool]], k: int, chance: Callable[[int, int], float]) -> Mean:
    if k < 1 or not passed:
        raise ValueError("there is nothing to draw: name a k of at least 1, and at least one task variant")
    short = [variant for variant, samples in passed.items() if len(samples) < k]
    if short:
        raise ValueError(f"{short[0]} has {len(passed[short[0]])} samples, fewer than {k}; run more with --samples")
    values = np.array([chance(len(samples), sum(samples)) for samples in passed.values()])
    return Mean(value=float(values.mean()), interval=_bootstrap(values))


def _bootstrap(values: np.ndarray) -> Interval | None:
    """Interval of a mean; the values are the things that are drawn anew, since samples of one task are no others."""
    if len(values) < 2:
        return None
    if (values == values[0]).all():
        return Interval(low=float(values[0]), high=float(values[0]))
    from scipy.stats import bootstrap

    found = bootstrap(
        (values,),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return Interval(low=float(found.low), high=float(found.high))


def quantiles(values: Sequence[float], at: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0)) -> tuple[float, ...]:
    """Values below which those shares of the others lie; empty where there are none."""
    return tuple(float(found) for found in np.quantile(values, at)) if values else ()
