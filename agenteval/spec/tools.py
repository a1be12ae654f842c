"""Tool mocks: what a tool takes, and what it answers in which case."""

from __future__ import annotations

from typing import Any, Literal

import jsonschema
from pydantic import Field, field_validator, model_validator

from agenteval import expressions
from agenteval.loading import Frozen

NAME_PATTERN = r"^[a-zA-Z][a-zA-Z0-9_-]{0,63}$"
"""Names that every chat template and the OpenAI schema accept."""


def _has_reference(schema: Any) -> bool:
    """Whether a schema refers to another, which could be on the network, absent or itself."""
    if isinstance(schema, dict):
        references = (schema.get("$ref"), schema.get("$dynamicRef"))
        return any(isinstance(name, str) for name in references) or any(map(_has_reference, schema.values()))
    return isinstance(schema, list) and any(map(_has_reference, schema))


def _template(value: Any) -> Any:
    found = expressions.problems(value)
    if found:
        raise ValueError("; ".join(found))
    return value


class Effect(Frozen):
    """One change of the world: a JSON Patch operation whose path and value are templates."""

    op: Literal["add", "replace", "remove"]
    path: str
    """JSON Pointer into the world, such as `/orders/${args.id}/status`; `/-` at its end appends to a list."""
    value: Any = None
    """A JSON value in whose texts `${…}` is evaluated; not read by `remove`."""

    @field_validator("path")
    @classmethod
    def _is_pointer(cls, value: str) -> str:
        if not value.startswith("/"):
            raise ValueError(f"{value!r} is no JSON Pointer: it starts with /")
        _template(value)
        return value

    @field_validator("value")
    @classmethod
    def _is_template(cls, value: Any) -> Any:
        return _template(value)


class Case(Frozen):
    """One answer of a mock, and when it is given; cases are tried in order."""

    match: dict[str, Any] = Field(default_factory=dict)
    """Arguments that must be equal for the case to apply; empty applies always."""
    when: str | None = None
    """A CEL condition over `args`, `world`, `clock` and `call`, checked after `match`."""
    returns: Any = None
    """A JSON value in whose texts `${…}` is evaluated, over the same names; seen before the effects."""
    error: str | None = None
    """A template; the call then fails with this text, and the world stays as it is."""
    effects: tuple[Effect, ...] = ()
    """Changes of the world, applied in order; all or none."""

    @field_validator("when")
    @classmethod
    def _is_expression(cls, value: str | None) -> str | None:
        if value is not None:
            expressions.compile_expression(value)
        return value

    @field_validator("returns", "error")
    @classmethod
    def _is_template(cls, value: Any) -> Any:
        return _template(value)

    @model_validator(mode="after")
    def _error_changes_nothing(self) -> Case:
        if self.error is not None and (self.effects or self.returns is not None):
            raise ValueError("a case with an error can have neither returns nor effects")
        return self


class ToolMock(Frozen):
    """A tool that the agent can call, answered from its cases and the episode's world."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique in the suite; what the model calls."""
    description: str
    """What the model reads."""
    parameters: dict[str, Any]
    """JSON Schema (2020-12) of the arguments; arguments that violate it get an error that the model sees."""
    cases: tuple[Case, ...] = ()
    """Tried in order; the first that applies answers."""
    default: Case = Case(error="no result for these arguments")
    """Answers where no case applies; its own `match` and `when` are not read."""

    @field_validator("parameters")
    @classmethod
    def _is_schema(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("type") != "object":
            raise ValueError("parameters must be a JSON Schema with `type: object`")
        try:
            jsonschema.Draft202012Validator.check_schema(value)
        except jsonschema.SchemaError as error:
            raise ValueError(f"parameters are no JSON Schema: {error.message}") from error
        if _has_reference(value):
            raise ValueError("parameters may not use $ref; write the schema out where it is used")
        return value
