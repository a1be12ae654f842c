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
    Case,
    Effect,
    ErrorFault,
    Fault,
    LatencyFault,
    MalformedFault,
    StaleFault,
    SuiteFunction,
    TimeoutFault,
    ToolError,
    ToolMock,
    TruncatedFault,
)
from agenteval.tools.arguments import argument_complaint, parse_arguments
from agenteval.tools.state import Outcome, State, ToolKit, instant_text

UNANSWERED = "the mock of"
"""How the error of a call begins whose mock is broken, as against one that the mock means to give."""
MAX_STATE_CHARACTERS = 1_000_000
"""A result or a world that is longer as JSON is an error of the mock: effects could double it with every call."""


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
        scope = self._scope(self.state.world)
        place = next((place for place, fault in enumerate(self.kit.faults) if self._meets(place, fault)), None)
        if place is None:
            return self._mock_answer(scope, self.state.world)
        fault = self.kit.faults[place]
        plain = self._mock_answer(scope, self.state.world)
        faulty = self._with_fault(fault, plain)
        # A fault that makes no difference has not fired.
        if (faulty.result, faulty.state.clock) == (plain.result, plain.state.clock):
            return plain
        fired = {**self.state.fired, place: self.state.fired.get(place, 0) + 1}
        return replace(faulty, fault=fault_label(place, fault.kind), state=replace(faulty.state, fired=fired))

    def _scope(self, world: dict[str, Any]) -> Scope:
        return Scope({"args": self.args, "world": world, "clock": self.state.clock, "call": self.number})

    def _fault_scope(self) -> Scope:
        names = {"args": self.args, "world": self.state.world, "clock": self.state.clock, "call": self.number}
        return Scope({**names, "vars": self.kit.vars})

    def _meets(self, place: int, fault: Fault) -> bool:
        return (
            fault.tool == self.mock.name
            and (not fault.at or self.number in fault.at)
            and (fault.every is None or self.number % fault.every == 0)
            and (fault.times is None or self.state.fired.get(place, 0) < fault.times)
            and (fault.when is None or expressions.evaluate_condition(fault.when, self._fault_scope()))
        )

    def _with_fault(self, fault: Fault, plain: Outcome) -> Outcome:
        match fault:
            case ErrorFault():
                return _failure(self.state, expressions.as_text(expressions.render(fault.message, self._fault_scope())))
            case TimeoutFault():
                state = plain.state if fault.applied else self.state
                failure = _failure(state, f"timed out after {fault.after_s:g} s; no answer came")
                return replace(failure, state=_later(self.state.clock, state, fault.after_s))
            case MalformedFault():
                return replace(plain, result=_broken(plain.result))
            case TruncatedFault():
                return replace(plain, result=plain.result[: fault.keep])
            case StaleFault():
                stale = self._mock_answer(self._scope(self.state.start), self.state.start)
                return replace(plain, result=stale.result, error=stale.error)
            case LatencyFault():
                return replace(plain, state=_later(plain.state.clock, plain.state, fault.latency_s))

    def _mock_answer(self, scope: Scope, world: dict[str, Any]) -> Outcome:
        case = self._select(scope)
        outcome = self._case_answer(case, scope, world)
        if case.latency_s == 0:
            return outcome
        return replace(outcome, state=_later(self.state.clock, outcome.state, case.latency_s))

    def _select(self, scope: Scope) -> Case:
        for case in self.mock.cases:
            if self._matches(case) and (case.when is None or expressions.evaluate_condition(case.when, scope)):
                return case
        return self.mock.default

    def _matches(self, case: Case) -> bool:
        return all(key in self.args and expressions.is_same(self.args[key], value) for key, value in case.match.items())

    def _case_answer(self, case: Case, scope: Scope, world: dict[str, Any]) -> Outcome:
        if case.error is not None:
            return _failure(self.state, expressions.as_text(expressions.render(case.error, scope)))
        if case.function is not None:
            return self._function_answer(self.kit.functions[case.function], world)
        result = expressions.as_text(expressions.render(case.returns, scope))
        if not case.effects:
            return Outcome(result=result, error=None, state=self.state)
        world = _patched(world, [_operation(effect, scope) for effect in case.effects])
        return Outcome(result=result, error=None, state=replace(self.state, world=world))

    def _function_answer(self, function: SuiteFunction, world: dict[str, Any]) -> Outcome:
        try:
            answer = function.call(_copied(self.args), _copied(world), self.state.clock)
            result, new_world = answer
            # Through JSON, so that nothing of the function's own stays reachable.
            result, new_world = json.loads(canonical_json([result, new_world]))
        except ToolError as error:
            return _failure(self.state, str(error))
        # The function is the suite's own code, which can raise anything; the call then has no answer.
        except Exception as error:
            raise ExpressionError(f"{function.name} failed: {type(error).__name__}: {error}") from error
        if not isinstance(new_world, dict):
            raise ExpressionError(f"{function.name} gave a world that is no object")
        return Outcome(result=expressions.as_text(result), error=None, state=replace(self.state, world=new_world))


def _operation(effect: Effect, scope: Scope) -> dict[str, Any]:
    """An effect as an operation of JSON Patch."""
    operation: dict[str, Any] = {"op": effect.op, "path": expressions.render_pointer(effect.path, scope)}
    if effect.source is not None:
        operation["from"] = expressions.render_pointer(effect.source, scope)
    elif effect.op != "remove":
        operation["value"] = expressions.render(effect.value, scope)
    return operation


def _patched(world: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The world after all operations; a failing one leaves the world before whole."""
    world = _copied(world)
    if all(operation["op"] != "copy" for operation in operations):
        patched: dict[str, Any] = jsonpatch.JsonPatch(operations).apply(world, in_place=True)
        return patched
    for operation in operations:
        world = jsonpatch.JsonPatch([operation]).apply(world, in_place=True)
        # Copies of copies double with every operation: more than memory holds before the last one is made.
        if expressions.size_of(world, MAX_STATE_CHARACTERS) > MAX_STATE_CHARACTERS:
            raise ExpressionError(f"the world is longer than {MAX_STATE_CHARACTERS:,} characters")
    return world


def _copied(value: Any) -> Any:
    """A JSON value anew; several times faster than `copy.deepcopy`, which looks for values that stand twice."""
    if isinstance(value, dict):
        return {key: _copied(item) if isinstance(item, dict | list) else item for key, item in value.items()}
    return [_copied(item) if isinstance(item, dict | list) else item for item in value]


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
            raise ExpressionError(f"the result or the world is longer than {MAX_STATE_CHARACTERS:,} characters")
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
    return Outcome(result=canonical_json({"error": reason}), error=reason, state=state)
