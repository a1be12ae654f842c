"""Which of a suite's variants are meant by the names that people give."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.errors import InputError, UnknownNameError
from agenteval.spec.suite import Suite, TaskVariant
from agenteval.words import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Some of a suite's variants; all that are given must hold."""

    tasks: tuple[str, ...] = ()
    """Only these tasks, or variants as `task/variant`."""
    tags: tuple[str, ...] = ()
    """Only tasks with one of these tags."""
    limit: int | None = None
    """Only so many variants, the first ones."""


def select_variants(suite: Suite, selection: Selection) -> tuple[TaskVariant, ...]:
    """The variants that are selected, in the suite's order.

    Raises:
        UnknownNameError: If a task, variant or tag does not exist.
        InputError: If nothing is left.
    """
    for name in selection.tasks:
        _check_task(suite, name)
    tags = sorted({tag for variant in suite.variants for tag in variant.tags})
    for tag in selection.tags:
        _check_name("tag", tag, tags)
    chosen = [
        variant
        for variant in suite.variants
        if (not selection.tasks or variant.task in selection.tasks or variant.label in selection.tasks)
        and (not selection.tags or set(variant.tags) & set(selection.tags))
    ]
    chosen = chosen[: selection.limit]
    if not chosen:
        raise InputError("No task is left to run. Loosen --task, --tag or --limit.")
    return tuple(chosen)


def _check_task(suite: Suite, name: str) -> None:
    """Make sure that `task` or `task/variant` names something."""
    task, slash, wanted = name.partition("/")
    _check_name("task", task, sorted({variant.task for variant in suite.variants}))
    if slash:
        _check_name(f"variant of {task}", wanted, [item.variant for item in suite.variants if item.task == task])


def _check_name(what: str, name: str, known: list[str]) -> None:
    if name not in known:
        raise UnknownNameError(what=what, name=name, known=known, advice=nearest(name, known).strip())
