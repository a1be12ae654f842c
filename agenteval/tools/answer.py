"""What a mock says to a call in one world at one instant, whatever a fault then makes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonpatch

from agenteval import expressions
from agenteval.digest import canonical_json
from agenteval.expressions import ExpressionError, Scope
from agenteval.spec import Case, Effect, SuiteFunction, ToolError, ToolMock

MAX_STATE_CHARACTERS = 1_000_000
"""A result or a world that is longer as JSON is an error of the mock: effects could double it with every call."""
TOO_LONG = f"the result or the world is longer than {MAX_STATE_CHARACTERS:,} characters"
_ADDRESS = re.compile(r"\S* at 0x[0-9a-f]{6,}>")
"""How Python writes an object that has no text of its own: by a place in memory, another one in each process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that a mock reads."""

    args: dict[str, Any]
    world: dict[str, Any]
    clock: str
    call: int

    def names(self) -> dict[str, Any]:
        """As expressions name it."""
        return {"args": self.args, "world": self.world, "clock": self.clock, "call": self.call}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a mock says, and what its call changes."""

    result: str
    error: str | None
    world: dict[str, Any]
    """After the call; the very object from before where it is the same."""
    latency_s: float


def mock_answer(mock: ToolMock, functions: Mapping[str, SuiteFunction], seen: Seen, *, has_effects: bool) -> Answer:
    """The answer of the first case that applies.

    Args:
        mock: Who answers.
        functions: What its cases name.
        seen: What it reads.
        has_effects: Whether the effects are worked out too; without them, one that fails is not noticed.

    Raises:
        ExpressionError: If the mock has no answer.
        JsonPatchException, JsonPointerException: If an effect fails.
    """
    scope = Scope(seen.names())
    case = _select(mock, seen.args, scope)
    if case.error is not None:
        return _error(expressions.as_text(expressions.render(case.error, scope)), case, seen)
    if case.function is not None:
        return _function_answer(functions[case.function], case, seen)
    result = expressions.as_text(expressions.render(case.returns, scope))
    world = patched(seen.world, case.effects, scope) if has_effects and case.effects else seen.world
    return Answer(result=result, error=None, world=world, latency_s=case.latency_s)


def error_text(reason: str) -> str:
    """What the model reads of an error."""
    return canonical_json({"error": reason})


def _select(mock: ToolMock, args: dict[str, Any], scope: Scope) -> Case:
    for case in mock.cases:
        if _matches(case, args) and (case.when is None or expressions.evaluate_condition(case.when, scope)):
            return case
    return mock.default


def _matches(case: Case, args: dict[str, Any]) -> bool:
    return expressions.has_all(args, case.match)


def _error(reason: str, case: Case, seen: Seen) -> Answer:
    return Answer(result=error_text(reason), error=reason, world=seen.world, latency_s=case.latency_s)


def _function_answer(function: SuiteFunction, case: Case, seen: Seen) -> Answer:
    try:
        # Through JSON both ways: it gets copies in one order of keys, and keeps hold of nothing that it gives.
        answer = function.call(*json.loads(canonical_json([seen.args, seen.world])), seen.clock)
        result, world = answer
        if expressions.size_of([result, world], MAX_STATE_CHARACTERS) > MAX_STATE_CHARACTERS:
            raise ExpressionError(TOO_LONG)
        text = canonical_json([result, world])
    except ExpressionError:
        raise
    except ToolError as error:
        return _error(without_address(str(error)), case, seen)
    # The function is the suite's own code, which can raise anything; the call then has no answer.
    except (Exception, SystemExit) as error:
        raise ExpressionError(f"{function.name} failed: {type(error).__name__}: {error}") from error
    result, world = json.loads(without_address(text))
    if not isinstance(world, dict):
        raise ExpressionError(f"{function.name} gave a world that is no object")
    return Answer(result=expressions.as_text(result), error=None, world=world, latency_s=case.latency_s)


def without_address(text: str) -> str:
    """The text of a function of the suite's.

    Raises:
        ExpressionError: If it holds the place of an object in memory, which differs between processes.
    """
    found = _ADDRESS.search(text)
    if found is not None:
        raise ExpressionError(f"{found[0]} is the place of an object in memory, which differs between processes")
    return text


def patched(world: dict[str, Any], effects: tuple[Effect, ...], scope: Scope) -> dict[str, Any]:
    """The world after all effects; a failing one leaves the world before whole."""
    operations, size = [], 0
    for effect in effects:
        operations.append(_operation(effect, scope))
        size += expressions.size_of(operations[-1], MAX_STATE_CHARACTERS)
        if size > MAX_STATE_CHARACTERS:
            raise ExpressionError(f"the effects are longer than {MAX_STATE_CHARACTERS:,} characters")
    world = copied(world)
    for operation in operations:
        # One by one: a patch as a whole would make every operation twice, and the effects are checked already.
        world = jsonpatch.JsonPatch.operations[operation["op"]](operation).apply(world)
        # Copies of copies double with every operation: more than memory holds before the last one is made.
        is_copy = operation["op"] == "copy"
        if is_copy and expressions.size_of(world, MAX_STATE_CHARACTERS) > MAX_STATE_CHARACTERS:
            raise ExpressionError(TOO_LONG)
    return world


def _operation(effect: Effect, scope: Scope) -> dict[str, Any]:
    """An effect as an operation of JSON Patch."""
    operation: dict[str, Any] = {"op": effect.op, "path": expressions.render_pointer(effect.path, scope)}
    if effect.source is not None:
        operation["from"] = expressions.render_pointer(effect.source, scope)
    elif effect.op != "remove":
        operation["value"] = expressions.render(effect.value, scope)
    return operation


def copied(value: Any) -> Any:
    """A JSON value anew; several times faster than `copy.deepcopy`, which looks for values that stand twice."""
    if isinstance(value, dict):
        return {key: copied(item) if isinstance(item, dict | list) else item for key, item in value.items()}
    return [copied(item) if isinstance(item, dict | list) else item for item in value]
