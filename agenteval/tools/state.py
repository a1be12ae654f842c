"""What a call starts from and what it gives."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenteval import expressions
from agenteval.digest import canonical_json, digest_json
from agenteval.spec import Case, Fault, SuiteFunction, TaskVariant, ToolMock
from agenteval.spec.suite import FINISH_ARGUMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that a mock may depend on besides its arguments."""

    world: dict[str, Any]
    start: dict[str, Any]
    """The world at the start of the episode."""
    clock: str
    """The instant, ISO 8601 in UTC; only declared latency moves it."""
    start_clock: str
    """The instant at which the episode started."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """Tool to how often it has been called, refused calls included."""
    fired: Mapping[int, int] = field(default_factory=dict)
    """Place of a fault among the task's to how often it has fired."""

    @classmethod
    def begin(cls, *, world: dict[str, Any], clock: str) -> State:
        """The state in which an episode starts."""
        instant = instant_text(datetime.datetime.fromisoformat(clock))
        return cls(world=world, start=world, clock=instant, start_clock=instant)

    def digest(self) -> str:
        """Equal digests promise equal answers to equal calls of one task variant's tools."""
        return digest_json(
            {
                "world": self.world,
                "clock": self.clock,
                "calls": self.calls,
                "fired": {str(place): count for place, count in self.fired.items()},
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolKit:
    """The tools of an episode, and what goes wrong with them."""

    mocks: Mapping[str, ToolMock]
    faults: tuple[Fault, ...] = ()
    vars: Mapping[str, Any] = field(default_factory=dict)
    """The variant's variables, which faults may read."""
    functions: Mapping[str, SuiteFunction] = field(default_factory=dict)
    """What cases name, by that name."""

    @classmethod
    def of(cls, variant: TaskVariant, *extra: ToolMock) -> ToolKit:
        """The tools of a task variant, after the given ones."""
        return cls(
            mocks={mock.name: mock for mock in (*extra, *variant.tools)},
            faults=variant.faults,
            vars=variant.vars,
            functions=variant.functions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a call gave, and the state after it."""

    result: str
    """Text for the model; the same bytes on every machine."""
    error: str | None
    """Why the call was refused or failed, in full where the mock is at fault; None where it succeeded."""
    state: State
    fault: str | None = None
    """The fault that fired, as `kind#place` among the task's; None where none did."""
    is_broken: bool = False
    """Whether the mock itself could not answer, which is the suite's fault and not the model's."""


def instant_text(instant: datetime.datetime) -> str:
    """An instant in ISO 8601, in UTC; fractions of a second only where there are any."""
    precision = "microseconds" if instant.microsecond else "seconds"
    return instant.astimezone(datetime.UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def world_patch(before: State, after: State) -> tuple[dict[str, Any], ...]:
    """JSON Patch from one world to another, in order of key, with lists replaced whole."""
    return () if before.world is after.world else patch_between(before.world, after.world)


def patch_between(before: dict[str, Any], after: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """JSON Patch from one JSON object to another, in order of key, with lists replaced whole."""
    return tuple(_patch(before, after, ""))


def finish_mock(name: str) -> ToolMock:
    """The tool that ends an episode, under the name that the suite gives it."""
    return ToolMock(
        name=name,
        description="Give the final answer to the user. Call this as soon as you know it.",
        parameters={
            "type": "object",
            "properties": {FINISH_ARGUMENT: {"type": "string"}},
            "required": [FINISH_ARGUMENT],
            "additionalProperties": False,
        },
        default=Case(returns="done"),
    )


def openai_schema(mock: ToolMock) -> dict[str, Any]:
    """The tool as the chat completions API declares it."""
    return {
        "type": "function",
        "function": {"name": mock.name, "description": mock.description, "parameters": mock.parameters},
    }


def _patch(before: Any, after: Any, path: str) -> Iterator[dict[str, Any]]:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if canonical_json(before) != canonical_json(after):
            yield {"op": "replace", "path": path, "value": after}
        return
    for key in sorted({*before, *after}):
        place = f"{path}/{expressions.pointer_part(key)}"
        if key not in after:
            yield {"op": "remove", "path": place}
        elif key not in before:
            yield {"op": "add", "path": place, "value": after[key]}
        else:
            yield from _patch(before[key], after[key], place)
