"""Checks: what must be true of an episode's answer, world and calls for it to pass."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from agenteval import expressions
from agenteval.loading import Frozen


class _Check(Frozen):
    weight: float = Field(default=1.0, gt=0.0)
    """Share of the episode's score, relative to the other checks'."""


class AnswerCheck(_Check):
    """The final answer; every condition that is given must hold."""

    kind: Literal["answer"]
    contains: tuple[str, ...] = ()
    """Texts that must all stand in the answer, upper and lower case alike."""
    pattern: str | None = None
    """A regular expression that must match somewhere in the answer."""
    number: float | None = None
    """A number that must stand in the answer, within `tolerance`."""
    tolerance: float = Field(default=0.0, ge=0.0)
    """Largest accepted distance from `number`."""

    @field_validator("pattern")
    @classmethod
    def _is_pattern(cls, value: str | None) -> str | None:
        if value is not None:
            problem = expressions.pattern_problem(value)
            if problem is not None:
                raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _asks_something(self) -> AnswerCheck:
        if not self.contains and self.pattern is None and self.number is None:
            raise ValueError("an answer check needs contains, pattern or number; without one it cannot fail")
        return self


class WorldCheck(_Check):
    """The world at the end."""

    kind: Literal["world"]
    that: str
    """A CEL condition over `world` and `answer`; `${vars.x}` is put in as text, so a text needs quotes around
    it."""

    @field_validator("that")
    @classmethod
    def _is_expression(cls, value: str) -> str:
        parts = expressions.split_template(value)
        # With variables still to be put in, only they can be parsed; the variant's own check is validated
        # again.
        for source in [part for part, is_expression in parts if is_expression] or [value]:
            expressions.compile_expression(source)
        return value


class CalledCheck(_Check):
    """A tool was called successfully, with these arguments, this often."""

    kind: Literal["called"]
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments that must be equal; others may have any value."""
    at_least: int = Field(default=1, ge=0)
    at_most: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _can_fail(self) -> CalledCheck:
        if self.at_least == 0 and self.at_most is None:
            raise ValueError("at_least 0 without at_most cannot fail")
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError(f"at_most {self.at_most} is less than at_least {self.at_least}: it can only fail")
        return self


class NotCalledCheck(_Check):
    """A tool was never called, not even in vain."""

    kind: Literal["not_called"]
    tool: str


class OrderCheck(_Check):
    """These tools were called successfully in this order; other calls may stand between."""

    kind: Literal["order"]
    tools: tuple[str, ...] = Field(min_length=2)


class TurnsCheck(_Check):
    """The episode ended within a number of turns."""

    kind: Literal["turns"]
    at_most: int = Field(ge=1)


Check = Annotated[
    AnswerCheck | WorldCheck | CalledCheck | NotCalledCheck | OrderCheck | TurnsCheck,
    Field(discriminator="kind"),
]
