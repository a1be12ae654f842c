"""Tool mocks and the world they share: (state, call) -> (result, new state), pure and deterministic.

No clock but the episode's own, no randomness, no file and no network: equal state and call give equal bytes
on every machine. So no text of a library reaches a result: the next version may word it otherwise. Must not
know who calls (the default agent, a user's graph, a test).
"""

from __future__ import annotations

import copy
import datetime
import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jsonpatch
import jsonschema

from agenteval import expressions
from agenteval.digest import canonical_json, digest_json
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
    TaskVariant,
    TimeoutFault,
    ToolError,
    ToolMock,
    TruncatedFault,
)

UNANSWERED = "the mock of"
"""How the error of a call begins whose mock is broken, as against one that the mock means to give."""
MAX_ARGUMENT_CHARACTERS = 100_000
"""Longer arguments are refused with a tool error; a model that loops can write megabytes."""
MAX_ARGUMENT_DEPTH = 50
"""Deeper nesting is refused with a tool error, before it can exhaust the stack of one Python sooner than
another's."""
MAX_NUMBER_CHARACTERS = 300
"""Longer numbers are no JSON value here: Python's own limit differs by version and setting."""
MAX_STATE_CHARACTERS = 1_000_000
"""A result or a world that is longer as JSON is an error of the mock: effects could double it with every call."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON_TEXT = re.compile(r'"(?:\\.|[^"\\])*"?', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that a mock may depend on besides its arguments."""

    world: dict[str, Any]
    start: dict[str, Any]
    """The world at the start of the episode."""
    clock: str
    """The instant, ISO 8601 in UTC; only declared latency moves it."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """Tool to how often it has been called, refused calls included."""
    fired: Mapping[int, int] = field(default_factory=dict)
    """Place of a fault among the task's to how often it has fired."""

    @classmethod
    def begin(cls, *, world: dict[str, Any], clock: str) -> State:
        """The state in which an episode starts."""
        return cls(world=world, start=world, clock=_instant_text(datetime.datetime.fromisoformat(clock)))

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
    if complaint is None:
        complaint = _violation(mock, parsed)
    if complaint is not None:
        return _failure(counted, complaint)
    call = _Call(kit=kit, mock=mock, args=parsed, number=number, state=counted)
    try:
        outcome = call.answer()
        if len(outcome.result) > MAX_STATE_CHARACTERS or _is_too_large(outcome.state.world, state.world):
            raise ExpressionError(f"the result or the world is longer than {MAX_STATE_CHARACTERS:,} characters")
        return outcome
    except (
        ExpressionError,
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
    ) as error:
        failure = _failure(counted, f"{UNANSWERED} {name!r} could not answer")
        return replace(failure, error=f"{failure.error}: {error}")


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
        return replace(faulty, fault=fault_label(place, fault), state=replace(faulty.state, fired=fired))

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
        patch = [_operation(effect, scope) for effect in case.effects]
        # jsonpatch copies the world first, so a failing operation leaves it whole.
        world = jsonpatch.JsonPatch(patch).apply(world)
        return Outcome(result=result, error=None, state=replace(self.state, world=world))

    def _function_answer(self, function: SuiteFunction, world: dict[str, Any]) -> Outcome:
        try:
            answer = function.call(copy.deepcopy(self.args), copy.deepcopy(world), self.state.clock)
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


def _later(clock: str, state: State, seconds: float) -> State:
    """The state at `seconds` after an instant; the year 9999 is not left."""
    instant = datetime.datetime.fromisoformat(clock)
    try:
        instant += datetime.timedelta(seconds=seconds)
    except OverflowError as error:
        raise ExpressionError(f"the clock cannot move {seconds:g} s on from {clock}") from error
    return replace(state, clock=_instant_text(instant))


def _instant_text(instant: datetime.datetime) -> str:
    precision = "microseconds" if instant.microsecond else "seconds"
    return instant.astimezone(datetime.UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def _is_too_large(world: dict[str, Any], before: dict[str, Any]) -> bool:
    return world is not before and len(canonical_json(world)) > MAX_STATE_CHARACTERS


def _broken(result: str) -> str:
    """A result that no JSON parser reads, and people still see what it was."""
    try:
        json.loads(result)
    except ValueError:
        return '{"result": "' + result
    return result[:-1] if result[-1] in ']}"' else '{"result": ' + result


def fault_label(place: int, fault: Fault) -> str:
    """What a fired fault is recorded as."""
    return f"{fault.kind}#{place}"


def parse_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """The arguments of a call, or why they are none: (arguments, complaint)."""
    if len(text) > MAX_ARGUMENT_CHARACTERS:
        return {}, f"the arguments are longer than {MAX_ARGUMENT_CHARACTERS} characters"
    if _depth(text) > MAX_ARGUMENT_DEPTH:
        return {}, f"the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels"
    try:
        value = json.loads(text or "{}", parse_constant=_refuse, parse_int=_integer, parse_float=_float)
    except json.JSONDecodeError as error:
        return {}, f"the arguments are not JSON, from character {error.pos + 1} on"
    except _NumberError as error:
        return {}, f"the arguments are not JSON: {error}"
    if not isinstance(value, dict):
        return {}, "the arguments are not a JSON object"
    if "\\u" in text and _LONE_SURROGATE.search(canonical_json(value)):
        return {}, "the arguments hold half a character (a lone surrogate)"
    return value, None


def world_patch(before: State, after: State) -> tuple[dict[str, Any], ...]:
    """JSON Patch from one world to another, in order of key, with lists replaced whole."""
    return () if before.world is after.world else tuple(_patch(before.world, after.world, ""))


def openai_schema(mock: ToolMock) -> dict[str, Any]:
    """The tool as the chat completions API declares it."""
    return {
        "type": "function",
        "function": {"name": mock.name, "description": mock.description, "parameters": mock.parameters},
    }


def _failure(state: State, reason: str) -> Outcome:
    return Outcome(result=canonical_json({"error": reason}), error=reason, state=state)


def _violation(mock: ToolMock, arguments: dict[str, Any]) -> str | None:
    found = sorted(
        ("/".join(str(part) for part in error.absolute_path), _complaint(error))
        for error in _validator(canonical_json(mock.parameters)).iter_errors(arguments)
    )
    if not found:
        return None
    place, complaint = found[0]
    return f"wrong arguments for {mock.name!r}{f' at {place!a}' if place else ''}: {complaint}"


def _complaint(error: jsonschema.ValidationError) -> str:
    """What the schema's keyword asks, in our own words."""
    wanted: Any = error.validator_value
    given: Any = error.instance
    match error.validator:
        case "required":
            return "missing: " + ", ".join(ascii(name) for name in wanted if name not in given)
        case "additionalProperties":
            known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
            unknown = sorted(name for name in given if name not in known)
            return f"unknown: {', '.join(map(ascii, unknown))}; known: {', '.join(map(ascii, sorted(known)))}"
        case "type":
            return f"must be of type {json.dumps(wanted)}"
        case "enum":
            return f"must be one of {json.dumps(wanted)}"
    return f"must satisfy {error.validator}: {json.dumps(wanted, sort_keys=True)}"


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


def _depth(text: str) -> int:
    """Deepest nesting of brackets outside quotes, whether or not the text is JSON."""
    depth = deepest = 0
    for character in _JSON_TEXT.sub("", text):
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    return deepest


@functools.lru_cache(maxsize=1024)
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    validator: jsonschema.Draft202012Validator = _BoundedValidator(json.loads(schema))
    return validator


def _bounded_pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    """JSON Schema's `pattern`, bounded in time; jsonschema's own can be made to run for years."""
    if isinstance(value, str) and not expressions.pattern_matches(pattern, value):
        yield jsonschema.ValidationError("does not match")


# jsonschema's types leave this function out.
_BoundedValidator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {"pattern": _bounded_pattern}
)


class _NumberError(ValueError):
    """A number that Python reads and JSON, or CEL, does not."""


def _refuse(name: str) -> None:
    raise _NumberError(f"{name} is no JSON value")


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARACTERS:
        _refuse("a number of that length")
    return int(text)


def _float(text: str) -> float | int:
    value = float(text)
    if math.isinf(value):
        _refuse("a number of that size")
    # 5.0 is an integer to JSON Schema; to CEL it would be another type than 5.
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
