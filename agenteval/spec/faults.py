"""Faults: what goes wrong in a task's world, at which calls."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from agenteval.loading import Frozen, Many
from agenteval.spec.templates import FAULT_NAMES, Count, CountFromZero, Seconds, check_condition, check_template


class _Fault(Frozen):
    """When it happens: at calls of `tool` with valid arguments for which all that is given holds."""

    tool: str
    """A tool of the task."""
    at: Many[Count] = ()
    """Numbers of that tool's calls in the episode, from 1, refused ones included."""
    every: Count | None = None
    """Each n-th call of that tool."""
    when: str | None = None
    """A CEL condition over `args`, `world`, `clock`, `call` and `vars`."""
    times: Count | None = None
    """At most so often in an episode."""

    @field_validator("when")
    @classmethod
    def _is_condition(cls, value: str | None) -> str | None:
        return check_condition(value, FAULT_NAMES)

    @model_validator(mode="after")
    def _has_a_time(self) -> _Fault:
        if not self.at and self.every is None and self.when is None:
            raise ValueError("a fault needs at, every or when, which say at which calls it happens")
        return self


class ErrorFault(_Fault):
    """The call fails and changes nothing."""

    kind: Literal["error"]
    message: str
    """A template over `args`, `world`, `clock`, `call` and `vars`."""

    @field_validator("message")
    @classmethod
    def _is_template(cls, value: str) -> str:
        check_template(value, FAULT_NAMES)
        return value


class TimeoutFault(_Fault):
    """The call gives an error after a while; whether it had its effects, the model is not told."""

    kind: Literal["timeout"]
    after_s: Seconds = 30.0
    """How far the episode's clock moves."""
    applied: bool = False
    """Whether the call changed the world all the same."""


class MalformedFault(_Fault):
    """The result arrives as broken JSON."""

    kind: Literal["malformed"]


class TruncatedFault(_Fault):
    """The result breaks off."""

    kind: Literal["truncated"]
    keep: CountFromZero
    """Characters of the result that arrive."""


class StaleFault(_Fault):
    """The result is what the tool would have said at the start of the episode."""

    kind: Literal["stale"]


class LatencyFault(_Fault):
    """The result takes its time."""

    kind: Literal["latency"]
    latency_s: Seconds
    """How far the episode's clock moves, besides the case's own latency."""


Fault = Annotated[
    ErrorFault | TimeoutFault | MalformedFault | TruncatedFault | StaleFault | LatencyFault,
    Field(discriminator="kind"),
]
