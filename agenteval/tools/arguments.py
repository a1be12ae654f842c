"""The arguments of a call: JSON text -> values that a tool's schema allows, or a complaint that the model can read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import jsonschema

from agenteval.digest import canonical_json
from agenteval.spec import ToolMock
from agenteval.spec.json_schema import validator_of

MAX_ARGUMENT_CHARACTERS = 100_000
"""Longer arguments are refused with a tool error; a model that loops can write megabytes."""
MAX_ARGUMENT_DEPTH = 50
"""Deeper nesting is refused with a tool error, before it can exhaust the stack of one Python sooner than
another's."""
MAX_NUMBER_CHARACTERS = 300
"""Longer numbers are no JSON value here: Python's own limit differs by version and setting."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON_TEXT = re.compile(r'"(?:\\.|[^"\\])*"?', re.DOTALL)


def parse_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """The arguments of a call, or why they are none: (arguments, complaint)."""
    if len(text) > MAX_ARGUMENT_CHARACTERS:
        return {}, f"the arguments are longer than {MAX_ARGUMENT_CHARACTERS} characters"
    if _depth(text) > MAX_ARGUMENT_DEPTH:
        return {}, f"the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels"
    try:
        value = parse_json(text or "{}")
    except json.JSONDecodeError as error:
        return {}, f"the arguments are not JSON, from character {error.pos + 1} on"
    except _NumberError as error:
        return {}, f"the arguments are not JSON: {error}"
    if not isinstance(value, dict):
        return {}, "the arguments are not a JSON object"
    if _LONE_SURROGATE.search(text) or ("\\u" in text and _LONE_SURROGATE.search(canonical_json(value))):
        return {}, "the arguments hold half a character (a lone surrogate)"
    return value, None


def parse_json(text: str) -> Any:
    """The value of JSON text, its numbers as mocks see them.

    Raises:
        ValueError: If it is no JSON, though Python may take it for some (NaN, 1e999).
        RecursionError: If it is nested too deep.
    """
    return json.loads(text, parse_constant=_refuse, parse_int=_integer, parse_float=_float)


def argument_complaint(mock: ToolMock, arguments: dict[str, Any]) -> str | None:
    """What a schema has against the arguments; None where it allows them."""
    found = sorted(
        ("/".join(str(part) for part in error.absolute_path), _complaint(error))
        for error in validator_of(mock.schema_text).iter_errors(arguments)
    )
    if not found:
        return None
    place, complaint = found[0]
    return f"wrong arguments for {mock.name!r}{f' at {place!a}' if place else ''}: {complaint}"


def _complaint(error: jsonschema.ValidationError) -> str:
    """What the schema's keyword asks, in our own words."""
    wanted: Any = error.validator_value
    given: Any = error.instance
    match error.validator:
        case "required":
            return "missing: " + ", ".join(ascii(name) for name in wanted if name not in given)
        case "additionalProperties":
            known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
            unknown = sorted(name for name in given if name not in known)
            return f"unknown: {', '.join(map(ascii, unknown))}; known: {', '.join(map(ascii, sorted(known)))}"
        case "type":
            return f"must be of type {json.dumps(wanted)}"
        case "enum":
            return f"must be one of {json.dumps(wanted)}"
        case None:
            return f"{json.dumps(given, sort_keys=True)} is not allowed"
    return f"must satisfy {error.validator}: {json.dumps(wanted, sort_keys=True)}"


def _depth(text: str) -> int:
    """Deepest nesting of brackets outside quotes, whether or not the text is JSON."""
    depth = deepest = 0
    for character in _JSON_TEXT.sub("", text):
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    return deepest


class _NumberError(ValueError):
    """A number that Python reads and JSON, or CEL, does not."""


def _refuse(name: str) -> None:
    raise _NumberError(f"{name} is no JSON value")


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARACTERS:
        _refuse("a number of that length")
    return int(text)


def _float(text: str) -> float | int:
    value = float(text)
    if math.isinf(value):
        _refuse("a number of that size")
    # 5.0 is an integer to JSON Schema; to CEL it would be another type than 5.
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
