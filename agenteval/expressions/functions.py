"""Functions that expressions may call beyond CEL's own, and how large values may be."""

from __future__ import annotations

import decimal
import functools
import operator
from collections.abc import Callable
from typing import Any

_EXACT = decimal.Context(prec=700)
"""Digits enough for every float, to as many places as floats have."""
MAX_SIZE = 1_000_000
"""Values and characters in what a macro or a function is given, or a function gives back."""


def size_of(value: Any, limit: int) -> int:
    """Values and characters in a value, counted up to a limit."""
    size, left = 0, [value]
    while left and size <= limit:
        item = left.pop()
        size += 1
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, dict):
            left += item
            left += item.values()
        elif isinstance(item, list | tuple):
            left += item
    return size


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _join(parts: list[str], separator: str = "") -> str:
    # The binding hands a map over in an order that differs from process to process.
    if not isinstance(parts, list):
        raise TypeError("not a list")
    return _text(separator).join(map(_text, parts))


def _split(text: str, separator: str) -> list[str]:
    return list(_text(text)) if separator == "" else _text(text).split(separator)


def _replace(text: str, old: str, new: str) -> str:
    if _text(text).count(old) * len(new) > MAX_SIZE:
        raise ValueError("the replaced text is too large")
    return text.replace(old, new)


def _round(number: float, digits: int = 0) -> float:
    """Half away from zero in decimal, as people round; floats that JSON writes alike round alike."""
    if isinstance(number, bool | str):
        raise TypeError("not a number")
    step = decimal.Decimal(1).scaleb(-digits)
    return float(decimal.Decimal(repr(float(number))).quantize(step, decimal.ROUND_HALF_UP, _EXACT))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lowerAscii": lambda text: "".join(c.lower() if c.isascii() else c for c in _text(text)),
    "upperAscii": lambda text: "".join(c.upper() if c.isascii() else c for c in _text(text)),
    "trim": lambda text: _text(text).strip(),
    "split": _split,
    "join": _join,
    "replace": _replace,
    "substring": lambda text, start, end=None: _text(text)[start:end],
    "sort": lambda values: sorted(values),
    # From left to right; Python's own sum compensates rounding since 3.12, and then gives other floats.
    "sum": lambda values: functools.reduce(operator.add, values, 0),
    "min": lambda values: min(values),
    "max": lambda values: max(values),
    "round": _round,
}
"""Functions beyond CEL's own, named as in its common extensions where these have them."""


OWN_FUNCTIONS = frozenset(
    "size string int uint double bool bytes type dyn timestamp duration contains startsWith endsWith matches has in "
    "getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds "
    "getMilliseconds".split()
)
"""CEL's own functions, as far as the binding has them."""
TYPES = frozenset("int uint double bool string bytes list map null_type".split())
"""What `type` gives, by the names that CEL has for them."""
