"""Lines of Python that are one call with literal arguments -> its name and arguments, without running anything."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import Any

from agenteval.interchange.source import unwritable

MAX_CALL_CHARACTERS = 20_000
"""A longer call is refused unread."""


class CallError(ValueError):
    """A line is no call that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A call as written."""

    function: str
    positional: tuple[Any, ...]
    named: dict[str, Any]


def read_call(line: str) -> WrittenCall:
    """Read a line such as `mv('a.txt', destination='b')`.

    Raises:
        CallError: If it is no call, or an argument is no value of JSON.
    """
    if len(line) > MAX_CALL_CHARACTERS:
        raise CallError(f"a call of more than {MAX_CALL_CHARACTERS:,} characters")
    try:
        with warnings.catch_warnings():
            # Escapes that Python warns of, such as \d, are meant as they stand.
            warnings.simplefilter("ignore")
            node = ast.parse(line.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CallError(f"{_shown(line)} is no Python expression: {type(error).__name__}") from error
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        raise CallError(f"{_shown(line)} is no call of a function")
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in named:
            raise CallError(f"{_shown(line)} gives an argument twice, or by **")
        named[keyword.arg] = _value(keyword.value, line)
    return WrittenCall(
        function=node.func.id if isinstance(node.func, ast.Name) else node.func.attr,
        positional=tuple(_value(argument, line) for argument in node.args),
        named=named,
    )


def _value(node: ast.expr, line: str) -> Any:
    try:
        value = _as_json(ast.literal_eval(node))
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise CallError(f"{_shown(line)} has an argument that is no literal value") from error
    problem = next((message for _, message in unwritable(value)), None)
    if problem is not None:
        raise CallError(f"{_shown(line)}: {problem}")
    return value


def _as_json(value: Any) -> Any:
    """Tuples as lists; what JSON has no form for is left, to be refused."""
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return {key: _as_json(item) for key, item in value.items()} if isinstance(value, dict) else value


def _shown(line: str) -> str:
    return ascii(line if len(line) <= 80 else f"{line[:80]}…")
