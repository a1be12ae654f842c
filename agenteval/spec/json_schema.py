"""JSON Schema as tools use it: which schemas a suite may have, and the one validator that everything asks.

It differs from jsonschema's own where that one's cost has no bound, or where its answer rests on binary fractions.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import jsonschema
from referencing.jsonschema import DRAFT202012

from agenteval import expressions
from agenteval.digest import canonical_json

_REFUSED_KEYWORDS = {
    "$ref": "parameters may not use $ref; write the schema out where it is used",
    "$dynamicRef": "parameters may not use $dynamicRef; write the schema out where it is used",
    "unevaluatedItems": "parameters may not use unevaluatedItems, whose cost nothing bounds; use additionalItems",
    "unevaluatedProperties": (
        "parameters may not use unevaluatedProperties, whose cost nothing bounds; use additionalProperties"
    ),
    "patternProperties": "parameters may not use patternProperties, whose patterns nothing bounds; name the properties",
}
# What is a pattern is settled by the library that matches it, whose syntax is not that of Python's own.
_NO_FORMATS = jsonschema.FormatChecker(())


@functools.lru_cache(maxsize=1024)
def schema_problem(text: str) -> str | None:
    """Why a JSON text is no schema that a tool can use; None where it is one. Suites share many."""
    schema = json.loads(text)
    try:
        jsonschema.Draft202012Validator.check_schema(schema, format_checker=_NO_FORMATS)
    except jsonschema.SchemaError as error:
        return f"parameters are no JSON Schema: {error.message}"
    return next(filter(None, map(_keyword_problem, subschemas(schema))), None)


def is_allowed(schema: Mapping[str, Any] | bool, value: Any) -> bool:
    """Whether a schema allows a JSON value.

    Raises:
        ExpressionError: If a pattern is not settled in time.
    """
    return validator_of(canonical_json(schema)).is_valid(value)


@functools.lru_cache(maxsize=1024)
def validator_of(text: str) -> jsonschema.Draft202012Validator:
    """The validator of a schema that is given as JSON text; it raises ExpressionError for an unsettled pattern."""
    validator: jsonschema.Draft202012Validator = _Validator(json.loads(text))
    return validator


def subschemas(schema: Any) -> Iterator[Any]:
    """A schema and all that stand in it; what only looks like one, as in an enum, is none."""
    left = [schema]
    while left:
        found = left.pop()
        yield found
        left += DRAFT202012.subresources_of(found)


def _keyword_problem(schema: Any) -> str | None:
    if not isinstance(schema, dict):
        return None
    refused = next((keyword for keyword in _REFUSED_KEYWORDS if keyword in schema), None)
    if refused is not None:
        return _REFUSED_KEYWORDS[refused]
    return expressions.pattern_problem(schema["pattern"]) if "pattern" in schema else None


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Bounded in time; jsonschema's own can be made to run for years."""
    if isinstance(value, str) and not expressions.pattern_matches(pattern, value):
        yield jsonschema.ValidationError("does not match")


def _multiple_of(validator: Any, step: float, value: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Of the numbers as they are written: 19.99 is a multiple of 0.01, though their binary fractions disagree."""
    if validator.is_type(value, "number") and Fraction(repr(value)) % Fraction(repr(step)):
        yield jsonschema.ValidationError("is no multiple")


def _unique_items(validator: Any, is_unique: bool, value: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    """In one pass; jsonschema's own compares every item with every other."""
    if not is_unique or not validator.is_type(value, "array"):
        return
    if len({canonical_json(_with_whole_numbers(item)) for item in value}) < len(value):
        yield jsonschema.ValidationError("has equal items")


def _with_whole_numbers(value: Any) -> Any:
    """The same JSON value with 5 for 5.0, which are one number to JSON Schema and two texts."""
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# jsonschema's types leave this function out.
_Validator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {"pattern": _pattern, "multipleOf": _multiple_of, "uniqueItems": _unique_items},
)
