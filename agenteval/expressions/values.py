"""Comparing and searching JSON values and texts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import regex

from agenteval.expressions.parsing import ExpressionError

MAX_REPEATS = 100_000
"""Product of the least counts of a pattern's repeats, which the library writes out in memory before it matches."""
_LEAST_COUNT = re.compile(r"\{0*([0-9]+)")
PATTERN_TIMEOUT_S = 5.0
"""Far above what a pattern needs on an answer, so that no machine's speed decides."""


def is_same(a: Any, b: Any) -> bool:
    """Equal as JSON values, at any depth: 5 and 5.0 are the same number, and true is none."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def has_all(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether an object has these keys with these values, whatever else it has."""
    return all(key in given and is_same(given[key], value) for key, value in wanted.items())


def pattern_problem(pattern: str) -> str | None:
    """Why a text is no regular expression that can be used; None where it is one."""
    if math.prod(max(1, int(count[:9])) for count in _LEAST_COUNT.findall(pattern)) > MAX_REPEATS:
        return f"{pattern[:200]!r} repeats a part more than {MAX_REPEATS:,} times"
    try:
        regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        return f"{pattern[:200]!r} is no regular expression: {error or type(error).__name__}"
    return None


def pattern_matches(pattern: str, text: str) -> bool:
    """Whether a regular expression matches somewhere in a text.

    Raises:
        ExpressionError: If that is not settled within `PATTERN_TIMEOUT_S`, as a pattern that backtracks can need years.
    """
    try:
        return regex.search(pattern, text, timeout=PATTERN_TIMEOUT_S) is not None
    except TimeoutError as error:
        raise ExpressionError(f"the pattern {pattern!r} was not settled within {PATTERN_TIMEOUT_S:g} s") from error
