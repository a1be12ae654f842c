"""One call: what the mock answers, and what a declared fault makes of it."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, replace
from typing import Any

import jsonpatch

from agenteval import expressions
from agenteval.digest import canonical_json
from agenteval.expressions import ExpressionError, Scope
from agenteval.spec import (
    ErrorFault,
    Fault,
    LatencyFault,
    MalformedFault,
    StaleFault,
    TimeoutFault,
    ToolMock,
    TruncatedFault,
)
from agenteval.tools.answer import MAX_STATE_CHARACTERS, TOO_LONG, Seen, error_text, mock_answer
from agenteval.tools.arguments import argument_complaint, parse_arguments
from agenteval.tools.state import Outcome, State, ToolKit, instant_text

UNANSWERED = "the mock of"
"""How the error of a call begins whose mock is broken, as against one that the mock means to give."""


def call_tool(kit: ToolKit, name: str, arguments: str, state: State) -> Outcome:
    """Answer one call; whatever the model wrote, the outcome is a text that it can read.

    Args:
        kit: The tools that the task offers.
        name: The tool that was called, known or not.
        arguments: Raw JSON text, as generated.
        state: The state before the call; it is not changed.
    """
    number = state.calls.get(name, 0) + 1
    counted = replace(state, calls={**state.calls, name: number})
    mock = kit.mocks.get(name)
    if mock is None:
        return _failure(counted, f"there is no tool {name!a}; the tools are: {', '.join(kit.mocks)}")
    parsed, complaint = parse_arguments(arguments)
    try:
        complaint = complaint or argument_complaint(mock, parsed)
        if complaint is not None:
            return _failure(counted, complaint)
        outcome = _Call(kit=kit, mock=mock, args=parsed, number=number, state=counted).answer()
        _check_texts(outcome, state)
        return outcome
    except (
        ExpressionError,
        RecursionError,
        UnicodeEncodeError,
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
    ) as error:
        failure = _failure(counted, f"{UNANSWERED} {name!r} could not answer")
        return replace(failure, error=f"{failure.error}: {error}", is_broken=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call with valid arguments."""

    kit: ToolKit
    mock: ToolMock
    args: dict[str, Any]
    number: int
    state: State
    """With this call counted."""

    def answer(self) -> Outcome:
        """What the mock says, and what a fault makes of it."""
        said = mock_answer(self.mock, self.kit.functions, self._seen(), has_effects=True)
        state = self.state if said.world is self.state.world else replace(self.state, world=said.world)
        state = state if said.latency_s == 0 else _later(self.state.clock, state, said.latency_s)
        plain = Outcome(result=said.result, error=said.error, state=state)
        if not self.kit.faults:
            return plain
        fault_scope = Scope({**self._seen().names(), "vars": self.kit.vars})
        faults = enumerate(self.kit.faults)
        place = next((place for place, fault in faults if self._meets(place, fault, fault_scope)), None)
        if place is None:
            return plain
        fault = self.kit.faults[place]
        faulty = self._with_fault(fault, plain, fault_scope)
        # A fault that makes no difference has not fired.
        if (faulty.result, faulty.state.clock) == (plain.result, plain.state.clock):
            return plain
        fired = {**self.state.fired, place: self.state.fired.get(place, 0) + 1}
        return replace(faulty, fault=fault_label(place, fault.kind), state=replace(faulty.state, fired=fired))

    def _seen(self) -> Seen:
        return Seen(args=self.args, world=self.state.world, clock=self.state.clock, call=self.number)

    def _seen_at_start(self) -> Seen:
        return Seen(args=self.args, world=self.state.start, clock=self.state.start_clock, call=self.number)

    def _meets(self, place: int, fault: Fault, scope: Scope) -> bool:
        return (
            fault.tool == self.mock.name
            and (not fault.at or self.number in fault.at)
            and (fault.every is None or self.number % fault.every == 0)
            and (fault.times is None or self.state.fired.get(place, 0) < fault.times)
            and (fault.when is None or expressions.evaluate_condition(fault.when, scope))
        )

    def _with_fault(self, fault: Fault, plain: Outcome, scope: Scope) -> Outcome:
        match fault:
            case ErrorFault():
                return _failure(self.state, expressions.as_text(expressions.render(fault.message, scope)))
            case TimeoutFault():
                state = plain.state if fault.applied else self.state
                failure = _failure(state, f"timed out after {fault.after_s:g} s; no answer came")
                return replace(failure, state=_later(self.state.clock, state, fault.after_s))
            case MalformedFault():
                return replace(plain, result=_broken(plain.result))
            case TruncatedFault():
                return replace(plain, result=plain.result[: fault.keep])
            case StaleFault():
                return self._stale(plain)
            case LatencyFault():
                return replace(plain, state=_later(plain.state.clock, plain.state, fault.latency_s))

    def _stale(self, plain: Outcome) -> Outcome:
        """What the mock would have said at the start; where it had no answer then, the one of now."""
        try:
            stale = mock_answer(self.mock, self.kit.functions, self._seen_at_start(), has_effects=False)
        except ExpressionError:
            return plain
        return replace(plain, result=stale.result, error=stale.error)


def _later(clock: str, state: State, seconds: float) -> State:
    """The state at `seconds` after an instant.

    Raises:
        ExpressionError: If the year 9999 would be left.
    """
    instant = datetime.datetime.fromisoformat(clock)
    try:
        instant += datetime.timedelta(seconds=seconds)
    except OverflowError as error:
        raise ExpressionError(f"the clock cannot move {seconds:g} s on from {clock}") from error
    return replace(state, clock=instant_text(instant))


def _check_texts(outcome: Outcome, before: State) -> None:
    """Refuse a result or a new world that is too long, or that no request and no file could hold.

    Raises:
        ExpressionError: If it is too long.
        UnicodeEncodeError: If it holds half a character.
    """
    is_new = outcome.state.world is not before.world
    for text in (outcome.result, canonical_json(outcome.state.world) if is_new else ""):
        if len(text) > MAX_STATE_CHARACTERS:
            raise ExpressionError(TOO_LONG)
        text.encode()


def _broken(result: str) -> str:
    """A result that no JSON parser reads, and people still see what it was."""
    try:
        json.loads(result)
    except (ValueError, RecursionError):
        return '{"result": ' + json.dumps(result, ensure_ascii=False)[:-1]
    return result[:-1] if result[-1] in ']}"' else '{"result": ' + result


def fault_label(place: int, kind: str) -> str:
    """What a fired fault is recorded as: its kind, and its place among the task's."""
    return f"{kind}#{place}"


def _failure(state: State, reason: str) -> Outcome:
    return Outcome(result=error_text(reason), error=reason, state=state)
