"""Fields that may hold `${…}` in place of a value, until a variant's variables are put in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, WrapValidator

from agenteval import expressions

MAX_NAME_CHARACTERS = 64
"""Longest name of a suite, task, tool or variant."""
NAME_PATTERN = rf"^[a-zA-Z][a-zA-Z0-9_-]{{0,{MAX_NAME_CHARACTERS - 1}}}$"
"""Names that every chat template and the OpenAI schema accept."""
CALL_NAMES = ("args", "world", "clock", "call")
"""What the expressions of a mock may read."""
FAULT_NAMES = (*CALL_NAMES, "vars")
"""What the expressions of a fault may read."""
RENDERED: dict[str, bool] = {"rendered": True}
"""Context of a validation after the variables were put in: what looks like a template then is meant as it stands."""
_TEMPLATE_SCHEMA = {"type": "string", "pattern": r"^\$\{"}


def check_template(value: Any, known: tuple[str, ...]) -> Any:
    """The value itself.

    Raises:
        ValueError: If an expression in its texts is wrong, or reads another name than the known ones.
    """
    found = expressions.problems(value, known)
    if found:
        raise ValueError("; ".join(found))
    return value


def check_condition(value: str | None, known: tuple[str, ...]) -> str | None:
    """The condition itself.

    Raises:
        ValueError: If it is no CEL, or reads another name than the known ones.
    """
    problem = None if value is None else expressions.condition_problem(value, known)
    if problem is not None:
        raise ValueError(f"{value!r}: {problem}")
    return value


def _of_vars(value: Any, info: ValidationInfo) -> Any:
    return value if info.context is RENDERED else check_template(value, ("vars",))


def _as_text(value: Any, info: ValidationInfo) -> Any:
    """What an expression that is a whole text has put in is a text there too; null is none."""
    return expressions.as_text(value) if info.context is RENDERED and value is not None else value


def _or_template(value: Any, validate: Callable[[Any], Any], info: ValidationInfo) -> Any:
    """A text that starts as an expression is left for the variant; whatever else is validated now."""
    if isinstance(value, str) and value.startswith("${") and info.context is not RENDERED:
        return check_template(value, ("vars",))
    return validate(value)


VarText = Annotated[str, BeforeValidator(_as_text), AfterValidator(_of_vars)]
"""A text in which `${vars.x}` is put in, as a text whatever its value is."""
VarJson = Annotated[Any, AfterValidator(_of_vars)]
"""A JSON value in whose texts `${vars.x}` is put in."""
Count = Annotated[
    int,
    Field(ge=1),
    WrapValidator(_or_template),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, _TEMPLATE_SCHEMA]}),
]
"""A whole number from 1 or a `${vars.x}`; a number once the variables are put in."""
CountFromZero = Annotated[
    int,
    Field(ge=0),
    WrapValidator(_or_template),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, _TEMPLATE_SCHEMA]}),
]
"""The same, from 0."""
Number = Annotated[
    float,
    WrapValidator(_or_template),
    WithJsonSchema({"anyOf": [{"type": "number"}, _TEMPLATE_SCHEMA]}),
]
"""A number or a `${vars.x}`; a number once the variables are put in."""
Seconds = Annotated[float, Field(ge=0.0, le=31_536_000.0)]
"""A span of the episode's clock, at most a year."""
