"""How two locks differ, field by field."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import LockDifferenceError
from agenteval.lock.sections import Lock
from agenteval.log import printable

TOLD = frozenset(
    {
        "contract.digest",
        "contract.name",
        "model.name",
        "suite.name",
        # The GPUs themselves are compared; which of equal ones they are is the day's.
        "server.inherited.CUDA_VISIBLE_DEVICES",
        "server.inherited.NVIDIA_VISIBLE_DEVICES",
    }
)
"""Fields that a lock tells and no comparison reads, since no number depends on them (DECISIONS 36)."""
_TOLD_VARIABLES = re.compile(
    r"server\.inherited\."
    # The model is a local folder, so nothing is asked of the hub.
    r"(HF_\w+|TOKENIZERS_PARALLELISM|NCCL_DEBUG\w*"
    # What is kept, and what is said. A cache of measurements decides which kernel is taken, and is compared.
    r"|(?!\w*AUTOTUN)\w+_(CACHES?|LOG|LOGS|LOGGING|LOGLEVEL|LOGPATH|VERBOSE|VERBOSITY)(_\w+)?)"
)
"""The server's inherited variables among them."""
_UNKNOWN_WHERE_NULL = ("engine", "machine", "model.digest", "server")
"""Null where someone else runs the server; nothing follows for those that are equal to it."""
_LONGEST_SHOWN = 500
"""Characters of a value in a line; --json has all."""
_OPTION = re.compile(r"--?[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field that differs."""

    field: str
    """Dotted path, such as `engine.torch` or `machine.gpus[0].name`."""
    a: Any
    """As JSON; None where it is null or absent."""
    b: Any

    def __str__(self) -> str:
        return f"{printable(self.field)}: {_shown(self.a)} → {_shown(self.b)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What two locks say of each other."""

    differences: tuple[Difference, ...]
    """In the order of a lock's sections."""
    unknown: tuple[str, ...]
    """Fields and sections that at least one of the two does not know."""


def compare_locks(a: Lock, b: Lock) -> Comparison:
    """Every field that differs, except those that are told only; a server's options are compared by name."""
    left, right = _comparable(a), _comparable(b)
    unknown = tuple(path for path in _UNKNOWN_WHERE_NULL if None in (_at(left, path), _at(right, path)))
    found = (
        difference
        for difference in _differences("", left, right)
        if not _is_told(difference.field) and difference.field not in unknown
    )
    return Comparison(differences=tuple(found), unknown=unknown)


def check_same(path: Path, locked: Lock, here: Lock) -> None:
    """Accept a run that is what a lock says.

    Args:
        path: The lock's file.
        locked: What it holds.
        here: The lock of the run that is about to start.

    Raises:
        LockDifferenceError: With every field that differs, or that the file does not know.
    """
    comparison = compare_locks(locked, here)
    reasons = [
        *map(str, comparison.differences),
        *(f"{name}: the lock does not know it" for name in comparison.unknown),
    ]
    if reasons:
        raise LockDifferenceError(path=path, reasons=reasons)


def flat_fields(lock: Lock) -> list[tuple[str, str]]:
    """Every field with its dotted path, and its value as a person reads it."""
    return [(field, _shown(value)) for field, value in _leaves("", lock.as_json())]


def _is_told(field: str) -> bool:
    return field in TOLD or _TOLD_VARIABLES.fullmatch(field) is not None


def _comparable(lock: Lock) -> dict[str, Any]:
    fields = lock.as_json()
    if fields["server"] is not None:
        fields["server"]["argv"] = _options(fields["server"]["argv"])
    return fields


def _options(argv: list[str]) -> dict[str, str]:
    """Option to its values; the order of options means nothing to the server."""
    options: dict[str, list[str]] = {}
    name = ""
    for word in argv:
        if _OPTION.match(word):
            name = word
            options.setdefault(name, [])
        else:
            options.setdefault(name, []).append(word)
    return {name: " ".join(values) or "given" for name, values in options.items()}


def _differences(path: str, left: Any, right: Any) -> Iterator[Difference]:
    """The innermost fields that differ, in the order of the left side."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            yield from _differences(f"{path}.{key}" if path else key, left.get(key), right.get(key))
    elif _is_mappings(left) and _is_mappings(right):
        for place, (a, b) in enumerate(itertools.zip_longest(left, right)):
            yield from _differences(f"{path}[{place}]", a, b)
    elif left != right:
        yield Difference(field=path, a=left, b=right)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The innermost fields and their values; an empty mapping is one."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else key, inner)
    elif _is_mappings(value) and value:
        for place, inner in enumerate(value):
            yield from _leaves(f"{path}[{place}]", inner)
    else:
        yield path, value


def _is_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _at(fields: Mapping[str, Any], path: str) -> Any:
    value: Any = fields
    for key in path.split("."):
        value = value[key]
    return value


def _shown(value: Any) -> str:
    """A value on one line; `(none)` for what is null or absent."""
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    text = printable(text)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
