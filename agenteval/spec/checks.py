"""Checks: what must be true of an episode's answer, world and calls for it to pass."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from agenteval import expressions
from agenteval.loading import Frozen, Many
from agenteval.spec.functions import FunctionName
from agenteval.spec.templates import RENDERED, Count, CountFromZero, Number, VarJson, VarText, check_condition

WORLD_NAMES = ("world", "start", "answer", "vars")
"""What a world check may read."""
CALL_CHECK_NAMES = ("args", "result", "turn", "vars")
"""What the condition of a check on calls may read."""


class _Check(Frozen):
    weight: float = Field(default=1.0, gt=0.0)
    """Share of the episode's score, relative to the other checks'."""


class AnswerCheck(_Check):
    """The final answer; every condition that is given must hold."""

    kind: Literal["answer"]
    contains: Many[VarText] = ()
    """Texts that must all stand in the answer, upper and lower case alike."""
    excludes: Many[VarText] = ()
    """Texts none of which may stand in the answer, upper and lower case alike."""
    pattern: VarText | None = None
    """A regular expression that must match somewhere in the answer; a variable is put in as a part of it."""
    number: Number | None = None
    """A number that must stand in the answer, within `tolerance`."""
    tolerance: Number = 0.0
    """Largest accepted distance from `number`, 0 or more."""
    unit: Many[VarText] = ()
    """Spellings of a unit, one of which must stand right after the number, or right before it."""
    one_of: Many[VarText] = ()
    """The whole answer must be one of these texts; case, quotes or emphasis around the answer and its final `.`, `!` or
    `?` do not matter."""

    @field_validator("pattern")
    @classmethod
    def _is_pattern(cls, value: str | None, info: ValidationInfo) -> str | None:
        # With variables still to be put in, it is no pattern yet; the variant's own check is validated again.
        if value is not None and (info.context is RENDERED or not expressions.has_template(value)):
            problem = expressions.pattern_problem(value)
            if problem is not None:
                raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _asks_something(self) -> AnswerCheck:
        if not (self.contains or self.excludes or self.one_of) and self.pattern is None and self.number is None:
            raise ValueError("an answer check needs contains, excludes, pattern, number or one_of")
        if self.number is None and (self.unit or self.tolerance):
            raise ValueError("unit and tolerance say how a number is looked for; give number too")
        if isinstance(self.tolerance, float | int) and self.tolerance < 0:
            raise ValueError(f"tolerance must be 0 or more, not {self.tolerance}")
        return self


class WorldCheck(_Check):
    """The world at the end."""

    kind: Literal["world"]
    that: str
    """A CEL condition over `world` at the end, `start` (the world at the start), `answer` (empty where there is none)
    and `vars`."""

    @field_validator("that")
    @classmethod
    def _is_condition(cls, value: str) -> str:
        check_condition(value, WORLD_NAMES)
        return value


class UnchangedCheck(_Check):
    """The world at the end is the world at the start, but for what is excepted."""

    model_config = ConfigDict(serialize_by_alias=True)

    kind: Literal["unchanged"]
    excepted: Many[VarText] = Field(default=(), alias="except")
    """JSON Pointers into the world, such as `/orders/${vars.id}/status`; what is at or below one may differ."""

    @field_validator("excepted")
    @classmethod
    def _are_pointers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pointer in value:
            if not pointer.startswith("/"):
                raise ValueError(f"{pointer!r} is no JSON Pointer: it starts with /")
        return value


class _CallCheck(_Check):
    """Which calls of a tool are meant."""

    tool: str
    """A tool of the task."""
    arguments: dict[str, VarJson] = Field(default_factory=dict)
    """Arguments that must be equal; others may have any value."""
    where: str | None = None
    """A CEL condition over `args`, `result` (of JSON, its value), `turn` (from 0) and `vars`; a call that failed and of
    which it cannot be evaluated is not meant."""

    @field_validator("where")
    @classmethod
    def _is_condition(cls, value: str | None) -> str | None:
        return check_condition(value, CALL_CHECK_NAMES)


class CalledCheck(_CallCheck):
    """A tool was called, with these arguments, this often."""

    kind: Literal["called"]
    outcome: Literal["success", "error", "any"] = "success"
    """Which calls count: those that gave a result, those that gave an error, or both."""
    at_least: CountFromZero = 1
    """Fewest calls that pass."""
    at_most: CountFromZero | None = None
    """Most calls that pass; any number where it is not given."""

    @model_validator(mode="after")
    def _can_fail(self) -> CalledCheck:
        if self.at_least == 0 and self.at_most is None:
            raise ValueError("at_least 0 without at_most cannot fail")
        if isinstance(self.at_most, int) and isinstance(self.at_least, int) and self.at_most < self.at_least:
            raise ValueError(f"at_most {self.at_most} is less than at_least {self.at_least}: it can only fail")
        return self


class NotCalledCheck(_CallCheck):
    """A tool was never called in this way, not even in vain."""

    kind: Literal["not_called"]


class OrderCheck(_Check):
    """These tools were called successfully in this order; other calls may stand between."""

    kind: Literal["order"]
    tools: Many[str] = Field(min_length=2)
    """Tools of the task, in the order that passes."""


class TogetherCheck(_Check):
    """Calls of all these tools succeeded in one turn; a name that stands twice asks for two calls."""

    kind: Literal["together"]
    tools: Many[str] = Field(min_length=2)
    """Tools of the task; one that stands twice is called twice."""


class TurnsCheck(_Check):
    """The episode ended within a number of turns."""

    kind: Literal["turns"]
    at_most: Count
    """Most turns that pass."""


class TokensCheck(_Check):
    """The model wrote at most so many tokens in all turns together; its prompts do not count."""

    kind: Literal["tokens"]
    at_most: Count
    """Most output tokens that pass."""


class FunctionCheck(_Check):
    """A Python function: `(world, answer, calls) -> bool`, or `(bool, reason)`."""

    kind: Literal["function"]
    function: FunctionName
    """A function of a file of the suite, as `checks.py:settled`."""


Check = Annotated[
    AnswerCheck
    | WorldCheck
    | UnchangedCheck
    | CalledCheck
    | NotCalledCheck
    | OrderCheck
    | TogetherCheck
    | TurnsCheck
    | TokensCheck
    | FunctionCheck,
    Field(discriminator="kind"),
]
