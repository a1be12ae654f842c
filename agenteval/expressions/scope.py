"""Names and their values -> the values of expressions, within bounds."""

from __future__ import annotations

import datetime
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import cel

from agenteval.expressions.functions import FUNCTIONS, MAX_SIZE, size_of
from agenteval.expressions.macros import ADDEND, ORDERED, SIZE
from agenteval.expressions.parsing import Expression, ExpressionError, compile_expression

MAX_STEPS = 2_500
"""Elements that the macros of one evaluation may walk over; nested macros multiply, and the binding's cost of one
macro grows with the square of its length."""
EVALUATION_TIMEOUT_S = 5.0
"""Far above what `MAX_STEPS` take on values of ordinary size, so that no machine's speed decides."""
# The binding logs what a function of ours raises, which is already an error with a message of its own.
logging.getLogger("cel").setLevel(logging.CRITICAL)


class Scope:
    """Names and their values for several evaluations; each value is turned into CEL's form once, where it is read."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._bound: set[str] = set()
        self._context = cel.Context(
            functions={ORDERED: self._in_order, ADDEND: self._addend, SIZE: self._size},
        )
        self._steps, self._deadline = 0, 0.0
        self._problem: str | None = None
        self._scalars: dict[str, Any] = {}
        """Values found before, by expression; lists and maps are made anew, so that no two places share one."""

    def evaluate(self, source: str) -> Any:
        """The JSON value of an expression.

        Raises:
            ExpressionError: If it does not parse, names something absent, takes too much, or gives a value that JSON
                lacks.
        """
        if source in self._scalars:
            return self._scalars[source]
        expression = compile_expression(source)
        self._steps, self._deadline, self._problem = 0, time.monotonic() + EVALUATION_TIMEOUT_S, None
        try:
            self._bind(expression)
            value = expression.program.execute(self._context)
        # The CEL binding raises whichever built-in class fits the failure, with no base class of its own.
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            RuntimeError,
            AttributeError,
            NameError,
        ) as error:
            raise ExpressionError(f"{source!r} failed: {self._problem or _first_sentence(error)}") from error
        if self._problem is not None:
            # `exists` and `all` swallow an error where another element settles them.
            raise ExpressionError(f"{source!r} failed: {self._problem}")
        found = _to_json(value, source)
        if not isinstance(found, dict | list):
            self._scalars[source] = found
        return found

    def _bind(self, expression: Expression) -> None:
        """Put what an expression reads and calls into the context, where it is not there yet."""
        for name in (expression.variables | expression.functions) - self._bound:
            if name in self._names:
                self._context.add_variable(name, self._names[name])
            elif name in FUNCTIONS:
                self._context.add_function(name, self._guarded(FUNCTIONS[name]))
            self._bound.add(name)

    def _in_order(self, value: Any) -> Any:
        """What a macro walks over: a map's keys sorted, anything else as it is, and all of it counted."""
        self._check_size(value)
        self._steps += len(value) if isinstance(value, list | Mapping) else 1
        if self._steps > MAX_STEPS:
            self._fail(f"its macros take more than {MAX_STEPS:,} steps")
        self._check_time()
        return sorted(value, key=lambda key: (type(key).__name__, key)) if isinstance(value, Mapping) else value

    def _addend(self, value: Any) -> Any:
        """What is added, as it is; a map is refused, as CEL does."""
        self._check_time()
        if isinstance(value, Mapping):
            self._fail("a map cannot be added; list its keys with map(k, k)")
        return value

    def _size(self, value: Any) -> int:
        self._check_time()
        if not isinstance(value, str | bytes | list | Mapping):
            self._fail("size counts texts, lists and maps")
        return len(value)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            self._check_time()
            self._check_size(values)
            result = function(*values)
            self._check_size(result)
            return result

        return call

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            self._fail(f"it takes longer than {EVALUATION_TIMEOUT_S:g} s")

    def _check_size(self, value: Any) -> None:
        if size_of(value, MAX_SIZE) > MAX_SIZE:
            self._fail(f"a value in it is larger than {MAX_SIZE:,} values and characters")

    def _fail(self, problem: str) -> None:
        self._problem = problem
        raise ValueError(problem)


def _first_sentence(error: Exception) -> str:
    """What the binding says, without its advice for programmers."""
    if isinstance(error, KeyError):
        return f"there is no key {error.args[0]!r}"
    return str(error).splitlines()[0].split(". ")[0].strip("'\"") if str(error) else type(error).__name__


def evaluate(source: str, names: Mapping[str, Any] | Scope) -> Any:
    """The JSON value of an expression over `names`.

    Raises:
        ExpressionError: If it does not parse, names something absent, takes too much, or gives a value that JSON lacks.
    """
    return scope_of(names).evaluate(source)


def evaluate_condition(source: str, names: Mapping[str, Any] | Scope) -> bool:
    """The truth of a condition.

    Raises:
        ExpressionError: If its value is not true or false.
    """
    value = evaluate(source, names)
    if not isinstance(value, bool):
        raise ExpressionError(f"{source!r} gave {value!r}, not true or false")
    return value


def scope_of(names: Mapping[str, Any] | Scope) -> Scope:
    """The scope itself, or one over a mapping of names."""
    return names if isinstance(names, Scope) else Scope(names)


def _to_json(value: Any, source: str) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionError(f"{source!r} gave {value!r}, which JSON cannot hold")
        return value
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ExpressionError(f"{source!r} gave a map whose keys are not all texts, which JSON cannot hold")
        return {key: _to_json(value[key], source) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_to_json(item, source) for item in value]
    raise ExpressionError(f"{source!r} gave a {type(value).__name__}, which JSON cannot hold")
