"""Slips in the JSON Schema of a tool's arguments, which JSON Schema itself allows: it ignores words that it lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema

from agenteval.lint.oddity import Oddity
from agenteval.spec import ToolMock
from agenteval.spec.json_schema import subschemas
from agenteval.words import nearest

_ANNOTATIONS = (
    "$anchor $comment $defs $id $schema $vocabulary contentEncoding contentMediaType contentSchema default definitions "
    "deprecated description else examples readOnly then title writeOnly"
).split()
KEYWORDS = frozenset(jsonschema.Draft202012Validator.VALIDATORS) | frozenset(_ANNOTATIONS)
"""Words that JSON Schema knows."""


def schema_warnings(tool: ToolMock) -> Iterator[Oddity]:
    """What is odd about the schema of a tool's arguments."""
    parts = {id(part) for schema in subschemas(tool.parameters) for part in _parts(schema)}
    for schema in subschemas(tool.parameters):
        if not isinstance(schema, dict):
            continue
        for word in schema.keys() - KEYWORDS:
            meant = nearest(word, sorted(KEYWORDS))
            if meant:
                yield ("parameters",), f"JSON Schema has no {word!r} and ignores it.{meant}"
        known = schema.get("properties", {})
        # A part may require what the whole declares, and the whole what its parts do.
        if id(schema) in parts or any(_parts(schema)) or ("properties" not in schema and schema is not tool.parameters):
            continue
        for name in schema.get("required", ()):
            if name not in known:
                what = f"the argument {name!r}" if schema is tool.parameters else json.dumps(name, ensure_ascii=False)
                yield ("parameters",), f"{what} is required and stands not among the properties.{nearest(name, known)}"


def _parts(schema: Any) -> Iterator[Any]:
    """The schemas that speak of the same value as a schema does."""
    if isinstance(schema, dict):
        for word in ("allOf", "anyOf", "oneOf"):
            yield from schema.get(word, ())
        yield from (schema[word] for word in ("if", "then", "else", "not") if word in schema)
        yield from schema.get("dependentSchemas", {}).values()
