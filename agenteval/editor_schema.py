"""JSON Schema of the files that people write, for the editors in which they write them.

A schema says which keys, kinds and words there are; what depends on two places at once, `agenteval check` finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pydantic

from agenteval.contract import Contract, builtin_names
from agenteval.spec import SuiteFile, SuiteHead, Task, ToolMock

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODELS: dict[str, tuple[type[pydantic.BaseModel], str]] = {
    "suite": (SuiteHead, "suite.yaml of agenteval"),
    "file": (SuiteFile, "tools and tasks of agenteval"),
    "task": (Task, "a task of agenteval"),
    "tool": (ToolMock, "a tool of agenteval"),
    "contract": (Contract, "a contract of agenteval"),
}


def json_schema(what: str) -> dict[str, Any]:
    """The schema of `suite`, `file`, `task`, `tool` or `contract`, in JSON Schema 2020-12."""
    model, title = _MODELS[what]
    schema = model.model_json_schema()
    for part in _parts(schema):
        _tidy(part)
    if model is Contract:
        schema = _extended(schema)
    shared = schema.pop("$defs")
    return {"$schema": DIALECT, **schema, "title": title, "$defs": shared}


def _parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and every schema in it."""
    yield schema
    below = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    below += [
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]
    for part in below:
        if isinstance(part, dict):
            yield from _parts(part)


def _tidy(part: dict[str, Any]) -> None:
    """Take out what only a program made of pydantic's models needs, and what an editor would put in for no reason."""
    properties = part.get("properties", {})
    if not properties:
        part.pop("title", None)
    # OpenAPI's word; the `kind` of each alternative is a constant and says the same.
    part.pop("discriminator", None)
    if "description" in part:
        part["description"] = " ".join(part["description"].split())
    if "const" in properties.get("kind", {}):
        properties["kind"].setdefault("description", part["description"])
    default = part.get("default")
    if isinstance(default, dict):
        part["default"] = default = {key: value for key, value in default.items() if value}
    if not default and default is not False:
        part.pop("default", None)


def _extended(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a whole contract as that of a contract's file, which may say only what it changes of another."""
    names = {"enum": list(builtin_names())}
    extends = {
        "description": "The contract that this one changes: a built-in one, or the path of a file; "
        "clauses are merged field by field.",
        "anyOf": [names, {"type": "string"}, {"type": "null"}],
    }
    clauses = {
        key: schema["$defs"][part["$ref"].rpartition("/")[2]]
        for key, part in schema["properties"].items()
        if "$ref" in part
    }
    return {
        **{key: value for key, value in schema.items() if key != "required"},
        "properties": {"extends": extends, **schema["properties"]},
        "if": {"properties": {"extends": {"type": "string"}}, "required": ["extends"]},
        "else": {
            "required": schema["required"],
            "properties": {key: {"required": clause.pop("required")} for key, clause in clauses.items()},
        },
    }
