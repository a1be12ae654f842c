"""Faults that cannot happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.lint.oddity import Oddity
from agenteval.lint.references import constant_value
from agenteval.lint.tools import can_change_world, unknown_arguments
from agenteval.spec import Fault, StaleFault, TaskVariant


def fault_warnings(variants: Sequence[TaskVariant]) -> Iterator[Oddity]:
    """What is odd about a task's faults, in any of its variants."""
    for variant in variants:
        for place, fault in enumerate(variant.faults):
            reason = _why_silent(place, fault, variant)
            if reason is not None:
                yield ("faults", place), f"this fault cannot fire: {reason}"


def _why_silent(place: int, fault: Fault, variant: TaskVariant) -> str | None:
    """Why a fault fires in no episode of a variant; None where it may."""
    if constant_value(fault.when) is False:
        return f"{fault.when!r} is never true"
    if fault.when is not None:
        tool = next(tool for tool in variant.tools if tool.name == fault.tool)
        unknown = next(unknown_arguments(tool, fault.when), None)
        if unknown is not None:
            return unknown
    if isinstance(fault, StaleFault) and not any(map(can_change_world, variant.tools)):
        return "no tool of the task changes the world, so nothing is ever stale"
    numbers = [number for number in fault.at if fault.every is None or number % fault.every == 0]
    if fault.at and not numbers:
        return f"none of {list(fault.at)} is a multiple of {fault.every}"
    earliest, turns = min(numbers, default=fault.every or 1), variant.settings.max_turns
    if earliest > turns and not variant.settings.parallel_tool_calls:
        return f"the episode ends after {turns} turns, before call {earliest} of {fault.tool!r}"
    for earlier_place, earlier in enumerate(variant.faults[:place]):
        if _covers(earlier, fault):
            return f"fault {earlier_place} meets the same calls before"
    return None


def _covers(earlier: Fault, fault: Fault) -> bool:
    """Whether the earlier fault takes every call that this one would meet."""
    if earlier.tool != fault.tool or earlier.times is not None or earlier.when not in (None, fault.when):
        return False
    if earlier.every is not None and earlier.every != fault.every and earlier.every != 1:
        return False
    return not earlier.at or (bool(fault.at) and set(fault.at) <= set(earlier.at))
