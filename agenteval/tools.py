"""Tool mocks and the world they share: (state, call) -> (result, new state), pure and deterministic.

No clock but the episode's own, no randomness, no file and no network: equal state and call give equal bytes
on every machine. So no text of a library reaches a result: the next version may word it otherwise. Must not
know who calls (the default agent, a user's graph, a test).
"""

from __future__ import annotations

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
from agenteval.spec import Case, ToolMock

UNANSWERED = "the mock of"
"""How the error of a call begins whose mock is broken, as against one that the mock means to give."""
MAX_ARGUMENT_CHARACTERS = 100_000
"""Longer arguments are refused with a tool error; a model that loops can write megabytes."""
MAX_ARGUMENT_DEPTH = 50
"""Deeper nesting is refused with a tool error, before it can exhaust the stack of one Python sooner than
another's."""
MAX_NUMBER_CHARACTERS = 300
"""Longer numbers are no JSON value here: Python's own limit differs by version and setting."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON_TEXT = re.compile(r'"(?:\\.|[^"\\])*"?', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that a mock may depend on besides its arguments."""

    world: dict[str, Any]
    clock: str
    """ISO 8601 instant of the episode."""
    calls: dict[str, int] = field(default_factory=dict)
    """Tool to how often it has been called, refused calls included."""

    def digest(self) -> str:
        """Equal digests promise equal answers to equal calls."""
        return digest_json({"world": self.world, "clock": self.clock, "calls": self.calls})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a call gave, and the state after it."""

    result: str
    """Text for the model; the same bytes on every machine."""
    error: str | None
    """Why the call was refused or failed, in full where the mock is at fault; None where it succeeded."""
    state: State


def call_tool(mocks: Mapping[str, ToolMock], name: str, arguments: str, state: State) -> Outcome:
    """Answer one call; whatever the model wrote, the outcome is a text that it can read.

    Args:
        mocks: The tools that the task offers, by name.
        name: The tool that was called, known or not.
        arguments: Raw JSON text, as generated.
        state: The state before the call; it is not changed.
    """
    number = state.calls.get(name, 0) + 1
    counted = replace(state, calls={**state.calls, name: number})
    mock = mocks.get(name)
    if mock is None:
        return _failure(counted, f"there is no tool {name!a}; the tools are: {', '.join(mocks)}")
    parsed, complaint = parse_arguments(arguments)
    if complaint is None:
        complaint = _violation(mock, parsed)
    if complaint is not None:
        return _failure(counted, complaint)
    names = {"args": parsed, "world": state.world, "clock": state.clock, "call": number}
    try:
        return _answer(_select(mock, names), names, counted)
    except (
        expressions.ExpressionError,
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
    ) as error:
        failure = _failure(counted, f"{UNANSWERED} {name!r} could not answer")
        return replace(failure, error=f"{failure.error}: {error}")


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


def _select(mock: ToolMock, names: Mapping[str, Any]) -> Case:
    for case in mock.cases:
        if _matches(case, names["args"]) and (case.when is None or expressions.evaluate_condition(case.when, names)):
            return case
    return mock.default


def _matches(case: Case, arguments: Mapping[str, Any]) -> bool:
    return all(key in arguments and expressions.is_same(arguments[key], value) for key, value in case.match.items())


def _answer(case: Case, names: Mapping[str, Any], state: State) -> Outcome:
    if case.error is not None:
        return _failure(state, expressions.as_text(expressions.render(case.error, names)))
    result = expressions.as_text(expressions.render(case.returns, names))
    if not case.effects:
        return Outcome(result=result, error=None, state=state)
    patch = [
        {
            "op": effect.op,
            "path": expressions.render_pointer(effect.path, names),
            **({} if effect.op == "remove" else {"value": expressions.render(effect.value, names)}),
        }
        for effect in case.effects
    ]
    # jsonpatch copies the world first, so a failing operation leaves it whole.
    world = jsonpatch.JsonPatch(patch).apply(state.world)
    return Outcome(result=result, error=None, state=replace(state, world=world))


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
