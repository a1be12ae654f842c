"""Which fields of `args`, `world` and `vars` an expression reads."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from agenteval import expressions
from agenteval.expressions import ExpressionError

_TEXTS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_FIELD = re.compile(r"(?<![\w.])(args|world|vars)\s*\.\s*([A-Za-z_]\w*)")
_GUARDED = re.compile(r"has\s*\(\s*(args|world|vars)\s*\.\s*([A-Za-z_]\w*)")


@functools.lru_cache(maxsize=16_384)
def fields_read(source: str) -> frozenset[tuple[str, str]]:
    """(name, field) of every field that an expression reads and does not ask for with `has` first."""
    plain = _TEXTS.sub("''", source)
    return frozenset(_FIELD.findall(plain)) - frozenset(_GUARDED.findall(plain))


def sources(template: Any) -> Iterator[str]:
    """Every expression inside the texts of a JSON value."""
    for text in expressions.texts(template):
        if "${" in text:
            yield from (part for part, is_expression in expressions.split_template(text) if is_expression)


def constant_value(source: str | None) -> bool | None:
    """The value of a condition that reads nothing; None where it reads something, or has no value."""
    if source is None or expressions.compile_expression(source).variables:
        return None
    try:
        return expressions.evaluate_condition(source, {})
    except ExpressionError:
        return None
