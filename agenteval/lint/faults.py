"""Faults that cannot happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.lint.references import constant, fields_read
from agenteval.lint.tools import can_change_world
from agenteval.loading import KeyPath
from agenteval.spec import Fault, StaleFault, TaskVariant
from agenteval.words import nearest


def fault_warnings(variants: Sequence[TaskVariant]) -> Iterator[tuple[KeyPath, str]]:
    """What is odd about a task's faults, in any of its variants."""
    for variant in variants:
        for place, fault in enumerate(variant.faults):
            reason = _why_silent(place, fault, variant)
            if reason is not None:
                yield ("faults", place), f"this fault cannot fire: {reason}"


def _why_silent(place: int, fault: Fault, variant: TaskVariant) -> str | None:
    if constant(fault.when) is False:
        return f"{fault.when!r} is never true"
    unknown = _unknown_argument(fault, variant)
    if unknown is not None:
        return unknown
    if isinstance(fault, StaleFault) and not any(map(can_change_world, variant.tools)):
        return "no tool of the task changes the world, so nothing is ever stale"
    most_calls = variant.settings.max_turns
    if not variant.settings.parallel_tool_calls:
        first = min((number for number in fault.at if fault.every is None or number % fault.every == 0), default=None)
        if fault.at and first is None:
            return f"none of {list(fault.at)} is a multiple of {fault.every}"
        earliest = first or fault.every or 1
        if earliest > most_calls:
            return f"the episode ends after {most_calls} turns, before call {earliest} of {fault.tool!r}"
    for earlier_place, earlier in enumerate(variant.faults[:place]):
        if _covers(earlier, fault):
            return f"fault {earlier_place} meets the same calls before"
    return None


def _unknown_argument(fault: Fault, variant: TaskVariant) -> str | None:
    tool = next(tool for tool in variant.tools if tool.name == fault.tool)
    properties = tool.parameters.get("properties", {})
    if fault.when is None or tool.parameters.get("additionalProperties") is not False:
        return None
    for name, field in sorted(fields_read(fault.when)):
        if name == "args" and field not in properties:
            return f"{fault.when!r} reads args.{field}, which no call can have.{nearest(field, properties)}"
    return None


def _covers(earlier: Fault, fault: Fault) -> bool:
    """Whether the earlier fault takes every call that this one would meet."""
    if earlier.tool != fault.tool or earlier.times is not None or earlier.when not in (None, fault.when):
        return False
    if earlier.every is not None and earlier.every != fault.every and earlier.every != 1:
        return False
    return not earlier.at or (bool(fault.at) and set(fault.at) <= set(earlier.at))
