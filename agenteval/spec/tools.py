"""Tool mocks: what a tool takes, and what it answers in which case."""

from __future__ import annotations

import functools
import json
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from agenteval.digest import canonical_json, digest_json
from agenteval.loading import Frozen, Many
from agenteval.spec.functions import FunctionName
from agenteval.spec.json_schema import schema_problem
from agenteval.spec.templates import CALL_NAMES, NAME_PATTERN, Seconds, check_condition, check_template


class Effect(Frozen):
    """One change of the world: a JSON Patch operation whose path and value are templates."""

    model_config = ConfigDict(serialize_by_alias=True)

    op: Literal["add", "replace", "remove", "move", "copy", "test"]
    """What is done: as in JSON Patch; `test` changes nothing, and fails where the value differs."""
    path: str
    """JSON Pointer into the world, such as `/orders/${args.id}/status`; `/-` at its end appends to a list."""
    value: Any = None
    """A JSON value in whose texts `${…}` is evaluated; for `add`, `replace` and `test`."""
    source: str | None = Field(default=None, alias="from")
    """JSON Pointer of what `move` and `copy` take."""

    @field_validator("path", "source")
    @classmethod
    def _is_pointer(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("/"):
            raise ValueError(f"{value!r} is no JSON Pointer: it starts with /")
        check_template(value, CALL_NAMES)
        return value

    @field_validator("value")
    @classmethod
    def _is_template(cls, value: Any) -> Any:
        return check_template(value, CALL_NAMES)

    @model_validator(mode="after")
    def _has_its_fields(self) -> Effect:
        takes = self.op in ("move", "copy")
        if takes is (self.source is None):
            raise ValueError(f"{self.op} needs from" if takes else f"{self.op} has no from")
        if self.op in ("move", "copy", "remove") and "value" in self.model_fields_set:
            raise ValueError(f"{self.op} has no value")
        if self.op in ("add", "replace", "test") and "value" not in self.model_fields_set:
            raise ValueError(f"{self.op} needs a value")
        return self


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
    function: FunctionName | None = None
    """Answers in place of `returns` and `effects`: `(args, world, clock) -> (result, world)`."""
    effects: Many[Effect] = ()
    """Changes of the world, applied in order; all or none."""
    latency_s: Seconds = 0.0
    """How far the call moves the episode's clock."""

    @field_validator("when")
    @classmethod
    def _is_condition(cls, value: str | None) -> str | None:
        return check_condition(value, CALL_NAMES)

    @field_validator("returns", "error")
    @classmethod
    def _is_template(cls, value: Any) -> Any:
        return check_template(value, CALL_NAMES)

    @model_validator(mode="after")
    def _answers_in_one_way(self) -> Case:
        answers = self.effects or self.returns is not None
        if self.error is not None and (answers or self.function is not None):
            raise ValueError("a case with an error can have no returns, effects or function")
        if self.function is not None and answers:
            raise ValueError("a case with a function can have neither returns nor effects; the function gives both")
        return self


class ToolMock(Frozen):
    """A tool that the agent can call, answered from its cases and the episode's world."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique in the suite; what the model calls."""
    description: str
    """What the model reads."""
    parameters: dict[str, Any]
    """JSON Schema (2020-12) of the arguments; arguments that violate it get an error that the model sees."""
    cases: Many[Case] = ()
    """Tried in order; the first that applies answers."""
    default: Case = Case(error="no result for these arguments")
    """Answers where no case applies."""

    @field_validator("parameters")
    @classmethod
    def _is_schema(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("type") != "object":
            raise ValueError("parameters must be a JSON Schema with `type: object`")
        problem = schema_problem(canonical_json(value))
        if problem is not None:
            raise ValueError(problem)
        return value

    @field_validator("default")
    @classmethod
    def _is_unconditional(cls, value: Case) -> Case:
        if value.match or value.when is not None:
            raise ValueError("default answers where no case applies; it has neither match nor when")
        return value

    @functools.cached_property
    def schema_text(self) -> str:
        """The parameters as canonical JSON."""
        return canonical_json(self.parameters)

    @functools.cached_property
    def digest(self) -> str:
        """Hash of all that the tool is, its functions' code excepted."""
        # The model reads the parameters in the order in which they are written.
        return digest_json({**self.model_dump(mode="json"), "parameters": json.dumps(self.parameters)})

    @functools.cached_property
    def functions(self) -> tuple[str, ...]:
        """The functions that its cases name."""
        return tuple(case.function for case in (*self.cases, self.default) if case.function is not None)
