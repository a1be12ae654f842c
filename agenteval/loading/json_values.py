"""What is no JSON value that a suite can hold, and where in a value it stands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from agenteval.loading.document import KeyPath
from agenteval.loading.yaml_values import MAX_INTEGER_CHARACTERS


def not_json(value: Any, *, max_depth: int) -> Iterator[tuple[KeyPath, str]]:
    """(where, why) for what no suite can hold: too deep, half a character, or what has no form in JSON."""
    left: list[tuple[KeyPath, Any]] = [((), value)]
    while left:
        key, item = left.pop()
        if len(key) > max_depth:
            yield key[:3], f"nested deeper than {max_depth} levels"
            return
        if isinstance(item, dict):
            for name, inner in item.items():
                if not isinstance(name, str) or _has_half_character(name):
                    yield key, f"the key {name!a} is no text that a file can store"
                else:
                    left.append(((*key, name), inner))
        elif isinstance(item, list):
            left += [((*key, number), inner) for number, inner in enumerate(item)]
        elif (problem := _scalar_problem(item)) is not None:
            yield key, problem


def _scalar_problem(value: Any) -> str | None:
    if isinstance(value, str) and _has_half_character(value):
        return f"{value[:80]!a} holds half a character (a lone surrogate), which no file can store"
    if isinstance(value, int) and abs(value) >= 10**MAX_INTEGER_CHARACTERS:
        return f"a number has more than {MAX_INTEGER_CHARACTERS} digits; a suite cannot hold it"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is no JSON number; a suite cannot hold it"
    if value is not None and not isinstance(value, str | int | float):
        return f"a value of the type {type(value).__name__} is none of JSON's; a suite cannot hold it"
    return None


def _has_half_character(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
