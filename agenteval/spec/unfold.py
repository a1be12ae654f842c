"""A task -> its variants, with their variables put in."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval import expressions
from agenteval.digest import canonical_json
from agenteval.expressions import ExpressionError, Scope
from agenteval.loading import FrozenT
from agenteval.spec.functions import SuiteFunction
from agenteval.spec.suite import VARIANT_NAME_PATTERN, AgentSettings, Message, Task, TaskVariant
from agenteval.spec.templates import MAX_NAME_CHARACTERS, RENDERED
from agenteval.spec.tools import ToolMock

DEFAULT_VARIANT = "base"
"""Name of the only variant of a task that declares none."""
MAX_VARIANTS = 1_000
"""A task that unfolds into more is taken for a slip of the hand."""


MAX_UNFOLDED_SIZE = 20_000_000
"""Values and characters of all variants of a task together."""


class VariantError(ValueError):
    """A task cannot be unfolded; `key` is where in the task."""

    def __init__(self, key: tuple[str | int, ...], message: str) -> None:
        self.key = key
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a task takes from its suite."""

    agent: AgentSettings
    tools: tuple[ToolMock, ...]
    """The task's, in order."""
    tags: tuple[str, ...]
    functions: Mapping[str, SuiteFunction]


def unfold(task: Task, surroundings: Surroundings) -> Iterator[TaskVariant]:
    """The variants of a task: its explicit ones, crossed with its matrix, in the order written.

    Raises:
        VariantError: If a name is none, stands twice, or a template cannot be put in.
        pydantic.ValidationError: If a check or fault is wrong once its variables are put in.
    """
    for name, variables in _combinations(task):
        try:
            yield _with_variables(task, name, variables, surroundings)
        except ExpressionError as error:
            raise VariantError((), f"the variant {name!r} cannot be put in: {error}") from error


def _combinations(task: Task) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, variables) of every variant."""
    for name in task.variants:
        _check_name(name, ("variants", name))
    _check_size(task)
    explicit = list(task.variants.items()) or [("", {})]
    axes = [list(_axis(name, values)) for name, values in task.matrix.items()]
    seen: set[str] = set()
    for (name, variables), *choices in itertools.product(explicit, *axes):
        parts = [part for part in (name, *(choice[0] for choice in choices)) if part]
        full_name = "-".join(parts) or DEFAULT_VARIANT
        both = sorted(variables.keys() & task.matrix.keys())
        if both:
            raise VariantError(("matrix", both[0]), f"{both[0]!r} is a variable of the variant {name!r} too")
        if full_name in seen:
            raise VariantError(("matrix",), f"two combinations are named {full_name!r}")
        seen.add(full_name)
        yield full_name, {**variables, **dict(zip(task.matrix, (choice[1] for choice in choices), strict=True))}


def _check_size(task: Task) -> None:
    """Refuse a task whose variants would be too many, or too much together, before any of them is built."""
    count = math.prod(map(len, task.matrix.values()), start=max(len(task.variants), 1))
    key = ("matrix",) if task.matrix else ("variants",)
    if count > MAX_VARIANTS:
        raise VariantError(key, f"there are {count:,} variants; a task may have {MAX_VARIANTS:,}")
    fields = task.model_dump(mode="json", exclude={"variants", "matrix", "tools"}, warnings=False)
    if count > 1 and expressions.size_of(fields, MAX_UNFOLDED_SIZE // count) > MAX_UNFOLDED_SIZE // count:
        what = f"{count:,} variants of a task of this size are more than {MAX_UNFOLDED_SIZE:,} values and characters"
        raise VariantError(key, f"{what}; give the large part to fewer variants")


def _axis(variable: str, values: list[Any] | dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name, value) of every choice of one variable."""
    key = ("matrix", variable)
    if not values:
        raise VariantError(key, "there are no values")
    named = values if isinstance(values, dict) else {expressions.as_text(value): value for value in values}
    if len(named) < len(values):
        raise VariantError(key, "a value stands twice")
    for name, value in named.items():
        _check_name(name, key)
        yield name, value


def _check_name(name: str, key: tuple[str | int, ...]) -> None:
    if not re.fullmatch(VARIANT_NAME_PATTERN, name):
        what = f"it takes up to {MAX_NAME_CHARACTERS} letters, digits, - and _; write name: value"
        raise VariantError(key, f"{name!r} cannot name a variant: {what}")


def _with_variables(task: Task, variant: str, variables: dict[str, Any], surroundings: Surroundings) -> TaskVariant:
    names = Scope({"vars": variables})
    replaced = {
        field: value
        for field in ("max_turns", "max_tokens", "parallel_tool_calls")
        if (value := getattr(task, field)) is not None
    }
    return TaskVariant(
        task=task.name,
        variant=variant,
        vars=variables,
        messages=tuple(_messages(task, names, surroundings.agent.system_prompt)),
        follow_ups=tuple(_text(text, names) for text in task.follow_ups),
        tools=surroundings.tools,
        world=expressions.render(task.world, names),
        faults=tuple(_rendered(fault, names) for fault in task.faults),
        checks=tuple(_rendered(check, names) for check in task.checks),
        tags=(*surroundings.tags, *task.tags),
        settings=surroundings.agent.model_copy(update=replaced) if replaced else surroundings.agent,
        functions=surroundings.functions,
    )


def _messages(task: Task, names: Scope, system_prompt: str) -> Iterator[Message]:
    own = task.messages or (Message.model_construct(role="user", content=task.prompt),)
    if own[0].role != "system":
        yield Message.model_construct(role="system", content=system_prompt)
    for message in own:
        yield Message.model_construct(role=message.role, content=_text(message.content, names))


def _text(template: str, names: Scope) -> str:
    return expressions.as_text(expressions.render(template, names))


def _rendered(part: FrozenT, names: Scope) -> FrozenT:
    """A check or fault with the variables in its fields; what is evaluated later, a fault's message, is left."""
    fields = part.model_dump(mode="json", warnings=False)
    settled = {"message": fields.pop("message")} if "message" in fields else {}
    if not expressions.has_template(fields):
        return part
    if "except" in fields:
        settled["except"] = [expressions.render_pointer(pointer, names) for pointer in fields.pop("except")]
    rendered = {**expressions.render(fields, names), **settled}
    return type(part).model_validate_json(canonical_json(rendered), context=RENDERED)
