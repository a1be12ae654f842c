"""Oddities of tasks: what an agent that does nothing gets, variables that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.grade import Played, grade_episode
from agenteval.lint.checks import check_warnings
from agenteval.lint.oddity import Oddity
from agenteval.lint.references import fields_named, names_read_whole, sources
from agenteval.loading import KeyPath
from agenteval.records import StopReason
from agenteval.spec import CalledCheck, NotCalledCheck, Task, TaskVariant, WorldCheck

_IDLE_ANSWER = "done"


def task_warnings(task: Task, variants: Sequence[TaskVariant]) -> Iterator[Oddity]:
    """What is odd about a task, in any of its variants."""
    yield from _unread_variables(task)
    for variant in variants:
        yield from check_warnings(variant)
        yield from _of_an_idle_agent(variant)


def _unread_variables(task: Task) -> Iterator[Oddity]:
    unread = {name for variables in task.variants.values() for name in variables} | task.matrix.keys()
    for source in _expressions(task) if unread else ():
        if "vars" in names_read_whole(source):
            return
        unread -= {field for name, field in fields_named(source) if name == "vars"}
    for name in sorted(unread):
        key: KeyPath = ("matrix", name) if name in task.matrix else ("variants",)
        yield key, f"nothing reads the variable {name!r}"


def _expressions(task: Task) -> Iterator[str]:
    """Every expression of a task that may read its variables."""
    yield from sources(task.model_dump(mode="json", exclude={"variants", "matrix", "tools"}, warnings=False))
    for check in task.checks:
        if isinstance(check, WorldCheck):
            yield check.that
        elif isinstance(check, CalledCheck | NotCalledCheck) and check.where is not None:
            yield check.where
    yield from (fault.when for fault in task.faults if fault.when is not None)


def _of_an_idle_agent(variant: TaskVariant) -> Iterator[Oddity]:
    """An agent that calls nothing and says `done` should fail; if it is not even graded, a real one may not be."""
    grades = grade_episode(variant, _idle_episode(variant))
    for grade in grades:
        if grade.passed is None:
            why = grade.reason.removeprefix("not graded: ")
            yield ("checks", grade.check), f"an agent that does nothing is not graded, instead of failed: {why}"
    if all(grade.passed for grade in grades):
        yield ("checks",), f"an agent that does nothing passes (variant {variant.variant!r})"


def _idle_episode(variant: TaskVariant) -> Played:
    return Played(
        run_id="",
        episode_id="",
        stop_reason=StopReason.ANSWER,
        answer=_IDLE_ANSWER,
        world=variant.world,
        turns=1,
        calls=(),
        output_tokens=1,
        explains=False,
    )
