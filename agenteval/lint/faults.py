"""Faults that cannot happen, or would make no difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.lint.oddity import Oddity
from agenteval.lint.references import constant_value
from agenteval.lint.tools import can_change_world, can_move_clock, may_read, unknown_arguments
from agenteval.spec import Fault, LatencyFault, StaleFault, TaskVariant, TimeoutFault, ToolMock

MAX_COMPARED = 100
"""Of a task's faults, the first so many are compared with those behind them."""


def fault_warnings(variants: Sequence[TaskVariant]) -> Iterator[Oddity]:
    """What is odd about a task's faults, in any of its variants."""
    for variant in variants:
        tools = {tool.name: tool for tool in variant.tools}
        for place, fault in enumerate(variant.faults):
            reason = _why_silent(place, fault, variant) or _why_harmless(fault, tools[fault.tool], variant)
            if reason is not None:
                yield ("faults", place), f"this fault cannot fire: {reason}"
            if fault.when is not None:
                yield from ((("faults", place), text) for text in unknown_arguments(tools[fault.tool], fault.when))


def _why_silent(place: int, fault: Fault, variant: TaskVariant) -> str | None:
    """Why a fault meets a call in no episode of a variant; None where it may."""
    if constant_value(fault.when, {"vars": variant.vars}) is False:
        return f"{fault.when!r} is never true"
    numbers = [number for number in fault.at if fault.every is None or number % fault.every == 0]
    if fault.at and not numbers:
        return f"none of {list(fault.at)} is a multiple of {fault.every}"
    earliest, turns = min(numbers, default=fault.every or 1), variant.settings.max_turns
    if earliest > turns and not variant.settings.parallel_tool_calls:
        return f"the episode ends after {turns} turns, before call {earliest} of {fault.tool!r}"
    for earlier_place, earlier in enumerate(variant.faults[: min(place, MAX_COMPARED)]):
        if _covers(earlier, fault):
            return f"fault {earlier_place} meets the same calls before"
    return None


def _why_harmless(fault: Fault, tool: ToolMock, variant: TaskVariant) -> str | None:
    """Why a fault changes neither an answer nor the clock, whichever call it meets; None where it may."""
    if isinstance(fault, LatencyFault) and fault.latency_s == 0:
        return "0 seconds later is at once"
    if not isinstance(fault, StaleFault):
        return None
    if not may_read(tool, "world") and not may_read(tool, "clock"):
        return f"{tool.name!r} reads neither world nor clock, so that nothing it says is ever stale"
    if may_read(tool, "world") and any(map(can_change_world, variant.tools)):
        return None
    if may_read(tool, "clock") and _is_moved(variant):
        return None
    return f"nothing that {tool.name!r} reads ever changes, so that nothing it says is ever stale"


def _is_moved(variant: TaskVariant) -> bool:
    """Whether a call or a fault of a variant may move the clock."""
    takes_time = (fault for fault in variant.faults if isinstance(fault, LatencyFault | TimeoutFault))
    return any(map(can_move_clock, variant.tools)) or next(takes_time, None) is not None


def _covers(earlier: Fault, fault: Fault) -> bool:
    """Whether the earlier fault takes every call that this one would meet."""
    if earlier.tool != fault.tool or earlier.times is not None or earlier.when not in (None, fault.when):
        return False
    if earlier.every is not None and earlier.every != fault.every and earlier.every != 1:
        return False
    return not earlier.at or (bool(fault.at) and set(fault.at) <= set(earlier.at))
