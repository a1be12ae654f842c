"""Which fields of `args`, `world` and `vars` an expression reads, and conditions that are settled beforehand."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval import expressions
from agenteval.expressions import ExpressionError

_FIELD = re.compile(r"(?<![\w.])(args|world|vars)\s*\.\s*([A-Za-z_]\w*)\b(?!\s*\()")
"""A name behind a dot that is no function called on the whole."""
_NAME = re.compile(r"(?<![\w.])(args|world|vars)\b")
_HAS = re.compile(r"has\s*\(\s*(args|world|vars)\s*\.\s*([A-Za-z_]\w*)")
_IN = re.compile(r"""["']([A-Za-z_]\w*)["']\s*in\s+(args|world|vars)\b(?!\s*[.\[])""")

Reads = frozenset[tuple[str, str]]
"""(name, field) pairs."""


@functools.lru_cache(maxsize=16_384)
def fields_named(source: str) -> Reads:
    """Every field that stands in an expression, whether it is read or only asked for."""
    plain, variables = expressions.without_texts(source), expressions.compile_expression(source).variables
    return frozenset((name, field) for name, field in _FIELD.findall(plain) if name in variables)


def fields_read(source: str) -> Reads:
    """The same without those that the expression asks for by `has` or `in` somewhere."""
    asked = {(name, field) for field, name in _IN.findall(source)}
    return fields_named(source) - asked - set(_HAS.findall(expressions.without_texts(source)))


def names_read_whole(source: str) -> frozenset[str]:
    """Those of `args`, `world` and `vars` that an expression reads otherwise than field by field."""
    plain, variables = expressions.without_texts(source), expressions.compile_expression(source).variables
    by_field = [name for name, _ in _FIELD.findall(plain)]
    every = _NAME.findall(plain)
    return frozenset(name for name in variables & set(every) if every.count(name) > by_field.count(name))


def sources(template: Any) -> Iterator[str]:
    """Every expression inside the texts of a JSON value."""
    for text in expressions.texts(template):
        if "${" in text:
            yield from (part for part, is_expression in expressions.split_template(text) if is_expression)


def constant_value(source: str | None, names: Mapping[str, Any] | None = None) -> bool | None:
    """The value of a condition that reads nothing but these names; None where it reads more, or has no value."""
    known = names or {}
    if source is None or not expressions.compile_expression(source).variables <= known.keys():
        return None
    try:
        return expressions.evaluate_condition(source, known)
    except ExpressionError:
        return None
