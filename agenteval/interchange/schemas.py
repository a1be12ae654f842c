"""Observed arguments, and the types of other formats -> JSON Schema.

A schema here may refuse only what no observed call does: the calls that a benchmark expects must pass its own mocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agenteval.spec import is_allowed

MAX_INFERRED_DEPTH = 5
"""Deeper inside observed values, any value is allowed."""
Lose = Callable[[str, str], None]
"""Takes the key path of what is lost, and why."""

_TYPES: dict[str, str | None] = {
    **dict.fromkeys(("string", "str", "char"), "string"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple", "arraylist", "queue", "stack", "set"), "array"),
    **dict.fromkeys(("object", "dict", "map", "hashmap", "hashtable"), "object"),
    **dict.fromkeys(("null", "none"), "null"),
    "any": None,
}
"""Types of the Berkeley function docs, in small letters, to those of JSON Schema; None allows every value."""


def inferred_parameters(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The schema of a tool of which only calls are known: the types seen; required is what every call gives.

    Args:
        calls: The arguments of each observed call.
    """
    names = list(dict.fromkeys(name for call in calls for name in call))
    return closed_object(
        {name: inferred([call[name] for call in calls if name in call]) for name in names},
        required=[name for name in names if all(name in call for call in calls)],
    )


def closed_object(properties: Mapping[str, Any], *, required: Sequence[str]) -> dict[str, Any]:
    """Parameters that allow no others; a function of a benchmark takes no unknown argument either."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    return {**schema, "additionalProperties": False}


def inferred(values: Sequence[Any], depth: int = 0) -> dict[str, Any]:
    """The types of all values together, with what is inside of lists and objects."""
    kinds = list(dict.fromkeys(map(_kind, values)))
    if "number" in kinds:
        kinds = [kind for kind in kinds if kind != "integer"]
    if not kinds or depth > MAX_INFERRED_DEPTH:
        return {}
    schema: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else sorted(kinds)}
    items = [item for value in values if isinstance(value, list) for item in value]
    if items:
        schema["items"] = inferred(items, depth + 1)
    objects = [value for value in values if isinstance(value, dict)]
    names = dict.fromkeys(name for value in objects for name in value)
    if names:
        schema["properties"] = {
            name: inferred([value[name] for value in objects if name in value], depth + 1) for name in names
        }
    return schema


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def widened(parameters: dict[str, Any], calls: Iterable[Mapping[str, Any]], lose: Lose) -> dict[str, Any]:
    """Parameters that allow every expected call, and as little else as that needs.

    Args:
        parameters: Of a tool, from its documentation.
        calls: The arguments of each expected call.
        lose: Is told what had to be widened.
    """
    properties = dict(parameters.get("properties", {}))
    required = list(parameters.get("required", ()))
    observed = list(calls)
    for name in dict.fromkeys(name for call in observed for name in call):
        values = [call[name] for call in observed if name in call]
        if name not in properties:
            properties[name] = inferred(values)
            lose(f"parameters.{name}", "not documented, but an expected call gives it; its type is inferred from calls")
        elif not all(is_allowed(properties[name], value) for value in values):
            description = properties[name].get("description")
            properties[name] = {} if description is None else {"description": description}
            lose(
                f"parameters.{name}", "an expected call gives a value that the documented type refuses; any is allowed"
            )
    for name in required[:]:
        if any(name not in call for call in observed):
            required.remove(name)
            lose(f"parameters.{name}", "documented as required, but an expected call leaves it out; it is optional")
    return closed_object(properties, required=required)


def converted(schema: Any, place: str, lose: Lose) -> dict[str, Any]:
    """A schema in the words of the Berkeley function docs as JSON Schema.

    Args:
        schema: What stands in the file.
        place: Where, for the report.
        lose: Is told what has no place in JSON Schema.
    """
    if not isinstance(schema, dict):
        lose(place, "no schema but another value; every value is allowed")
        return {}
    found: dict[str, Any] = {}
    for word, value in schema.items():
        convert = _WORDS.get(word)
        if convert is None:
            lose(f"{place}.{word}", "a word that is not known here; the schema does without it")
        else:
            convert(found, value, f"{place}.{word}", lose)
    return found


def _convert_type(found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    word = value.lower() if isinstance(value, str) else ""
    if word not in _TYPES:
        lose(place, "a type that is not known here; every value is allowed")
    elif _TYPES[word] is not None:
        found["type"] = _TYPES[word]


def _convert_properties(found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    if isinstance(value, dict):
        found["properties"] = {name: converted(inner, f"{place}.{name}", lose) for name, inner in value.items()}
    else:
        lose(place, "no object; the schema does without it")


def _convert_items(found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    found["items"] = converted(value, place, lose)


def _convert_required(found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        found["required"] = list(dict.fromkeys(value))
    else:
        lose(place, "no list of names; the schema does without it")


def _convert_text(found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    _keep_if(isinstance(value, str), found, value, place, lose)


def _convert_list(found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    _keep_if(isinstance(value, list), found, value, place, lose)


def _convert_bound(found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    _keep_if(isinstance(value, int | float) and not isinstance(value, bool), found, value, place, lose)


def _convert_any(found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    # A mock's schema may not refer to others, and is searched for the word alone.
    _keep_if("$ref" not in json.dumps(value) and "$dynamicRef" not in json.dumps(value), found, value, place, lose)


def _keep_if(is_usable: bool, found: dict[str, Any], value: Any, place: str, lose: Lose) -> None:
    if is_usable:
        found[place.rpartition(".")[2]] = value
    else:
        lose(place, "a value that JSON Schema does not allow there; the schema does without it")


_WORDS: dict[str, Callable[[dict[str, Any], Any, str, Lose], None]] = {
    "type": _convert_type,
    "properties": _convert_properties,
    "items": _convert_items,
    "required": _convert_required,
    "description": _convert_text,
    "title": _convert_text,
    "format": _convert_text,
    "enum": _convert_list,
    "minimum": _convert_bound,
    "maximum": _convert_bound,
    "default": _convert_any,
}
