"""CEL expressions and the templates built on them: `${…}` inside JSON values.

A template that is one whole `${…}` keeps the type of its value; inside other text the value becomes text.
Knows CEL and JSON; must not know tasks or tools. CEL has no loops over unbounded data, no clock and no input
or output, so a value depends on its inputs alone; and the one order that the binding leaves to chance, that
of a map's keys in a macro such as `map`, is made theirs by sorting.
"""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections.abc import Mapping
from typing import Any

import cel
import regex

from agenteval.digest import canonical_json

MAX_EXPRESSION_LENGTH = 2_000
"""Longer expressions are refused at load; CEL's cost grows with the expression and its inputs only."""
PATTERN_TIMEOUT_S = 5.0
"""Far above what a pattern needs on an answer, so that no machine's speed decides."""
_ORDERED = "agenteval_ordered"
"""Name of the function that `_in_order` puts around what a macro walks over."""
_OPAQUE = re.compile(
    r"""[rRbB]*(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*""", re.DOTALL
)
"""Texts and comments of CEL, in which nothing is syntax."""
_MACRO = re.compile(r"\s*\.\s*(?:map|filter|all|exists|exists_one)\s*\(")


class ExpressionError(ValueError):
    """An expression could not be parsed or evaluated; the caller says where it stands and what follows."""


@functools.lru_cache(maxsize=4096)
def compile_expression(source: str) -> cel.Program:
    """Parse a CEL expression once.

    Raises:
        ExpressionError: If it is not CEL, or too long.
    """
    if len(source) > MAX_EXPRESSION_LENGTH:
        raise ExpressionError(f"longer than {MAX_EXPRESSION_LENGTH} characters")
    try:
        program = cel.compile(source)
        ordered = _in_order(source)
        return program if ordered == source else cel.compile(ordered)
    except ValueError as error:
        first_line = str(error).splitlines()[0]
        raise ExpressionError(f"not a CEL expression: {first_line}") from error


def evaluate(source: str, names: Mapping[str, Any]) -> Any:
    """The JSON value of an expression over `names`.

    Raises:
        ExpressionError: If it does not parse, names something absent, or gives a value that JSON lacks.
    """
    program = compile_expression(source)
    try:
        value = program.execute(cel.Context(variables=dict(names), functions={_ORDERED: _ordered}))
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
        raise ExpressionError(f"{source!r} failed: {type(error).__name__}: {error}") from error
    return _to_json(value, source)


def evaluate_condition(source: str, names: Mapping[str, Any]) -> bool:
    """The truth of a condition.

    Raises:
        ExpressionError: If its value is not true or false.
    """
    value = evaluate(source, names)
    if not isinstance(value, bool):
        raise ExpressionError(f"{source!r} gave {value!r}, not true or false")
    return value


def render(template: Any, names: Mapping[str, Any]) -> Any:
    """A JSON value with every `${…}` in its texts (keys excepted) replaced by its value.

    Raises:
        ExpressionError: If one of the expressions fails.
    """
    if isinstance(template, str):
        return _render_text(template, names)
    if isinstance(template, Mapping):
        return {key: render(value, names) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [render(value, names) for value in template]
    return template


def render_pointer(template: str, names: Mapping[str, Any]) -> str:
    """A JSON Pointer whose inserted values are escaped, so that a value can never reach another place.

    Raises:
        ExpressionError: If one of the expressions fails.
    """
    return "".join(
        part if not is_expression else pointer_part(as_text(evaluate(part, names)))
        for part, is_expression in split_template(template)
    )


def pointer_part(text: str) -> str:
    """A text as one part of a JSON Pointer."""
    return text.replace("~", "~0").replace("/", "~1")


def is_same(a: Any, b: Any) -> bool:
    """Equal as JSON values, at any depth: 5 and 5.0 are the same number, and true is none."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def pattern_problem(pattern: str) -> str | None:
    """Why a text is no regular expression; None where it is one."""
    try:
        regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        return f"{pattern[:200]!r} is no regular expression: {error or type(error).__name__}"
    return None


def pattern_matches(pattern: str, text: str) -> bool:
    """Whether a regular expression matches somewhere in a text.

    Raises:
        ExpressionError: If that is not settled within `PATTERN_TIMEOUT_S`, as a pattern that backtracks can need years.
    """
    try:
        return regex.search(pattern, text, timeout=PATTERN_TIMEOUT_S) is not None
    except TimeoutError as error:
        raise ExpressionError(f"the pattern {pattern!r} was not settled within {PATTERN_TIMEOUT_S:g} s") from error


def problems(template: Any) -> list[str]:
    """What is wrong with the expressions of a template, without evaluating them."""
    found = []
    if isinstance(template, str):
        try:
            for part, is_expression in split_template(template):
                if is_expression:
                    compile_expression(part)
        except ExpressionError as error:
            found.append(f"{template!r}: {error}")
    elif isinstance(template, Mapping):
        found += [problem for value in template.values() for problem in problems(value)]
    elif isinstance(template, list | tuple):
        found += [problem for value in template for problem in problems(value)]
    return found


@functools.lru_cache(maxsize=4096)
def split_template(template: str) -> tuple[tuple[str, bool], ...]:
    """Cut a text into (part, is an expression); `$${` stands for a plain `${`.

    Raises:
        ExpressionError: If a `${` is not closed.
    """
    parts: list[tuple[str, bool]] = []
    text, position = "", 0
    while position < len(template):
        if template.startswith("$${", position):
            text, position = text + "${", position + 3
        elif template.startswith("${", position):
            end = _closing_brace(template, position + 2)
            if text:
                parts.append((text, False))
            parts.append((template[position + 2 : end], True))
            text, position = "", end + 1
        else:
            text, position = text + template[position], position + 1
    if text:
        parts.append((text, False))
    return tuple(parts)


def as_text(value: Any) -> str:
    """A value as it stands inside other text: strings bare, everything else as canonical JSON."""
    return value if isinstance(value, str) else canonical_json(value)


def _render_text(template: str, names: Mapping[str, Any]) -> Any:
    if "${" not in template:
        return template
    parts = split_template(template)
    if len(parts) == 1 and parts[0][1]:
        return evaluate(parts[0][0], names)
    return "".join(as_text(evaluate(part, names)) if is_expression else part for part, is_expression in parts)


def _closing_brace(template: str, start: int) -> int:
    """Index of the `}` that ends the expression at `start`, past nested braces and quoted texts."""
    depth, quote, position = 0, "", start
    while position < len(template):
        character = template[position]
        if quote:
            if character == "\\":
                position += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character == "{":
            depth += 1
        elif character == "}":
            if depth == 0:
                return position
            depth -= 1
        position += 1
    raise ExpressionError("a ${ is not closed by }")


def _ordered(value: Any) -> Any:
    """A map's keys, sorted; anything else as it is. A macro over a map walks its keys."""
    return sorted(value, key=lambda key: (type(key).__name__, key)) if isinstance(value, Mapping) else value


def _in_order(source: str) -> str:
    """The expression with `_ordered` around what each macro walks over: the binding's own order is random."""
    masked = _OPAQUE.sub(lambda found: ("_" if found[0][0] != "/" else " ") * len(found[0]), source)
    inserts: dict[int, str] = {}
    for macro in _MACRO.finditer(masked):
        start = _operand_start(masked, macro.start())
        inserts[start] = inserts.get(start, "") + f"{_ORDERED}("
        inserts[macro.start()] = ")" + inserts.get(macro.start(), "")
    cuts = sorted({0, *inserts})
    pieces = zip(cuts, [*cuts[1:], len(source)], strict=True)
    return "".join(inserts.get(start, "") + source[start:end] for start, end in pieces)


def _operand_start(masked: str, end: int) -> int:
    """Where the operand that ends before `end` starts: names, calls, indices and brackets joined by dots."""
    position = end
    while True:
        position = len(masked[:position].rstrip())
        while position and masked[position - 1] in ")]}":
            position = _opening(masked, position - 1)
            before = len(masked[:position].rstrip())
            if before == 0 or not (masked[before - 1] in ")]}" or _is_name(masked, before)):
                return position
            position = before
        while position and (masked[position - 1].isalnum() or masked[position - 1] == "_"):
            position -= 1
        before = len(masked[:position].rstrip())
        if not before or masked[before - 1] != ".":
            return position
        position = before - 1


def _is_name(masked: str, end: int) -> bool:
    """Whether a name, and not the operator `in`, ends at `end`."""
    word = re.search(r"\w+\Z", masked[:end])
    return word is not None and word[0] != "in"


def _opening(masked: str, closing: int) -> int:
    depth = 0
    for position in range(closing, -1, -1):
        depth += (masked[position] in ")]}") - (masked[position] in "([{")
        if depth == 0:
            return position
    return 0


def _to_json(value: Any, source: str) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionError(f"{source!r} gave {value!r}, which JSON cannot hold")
        return value
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ExpressionError(f"{source!r} gave a map whose keys are not all texts, which JSON cannot hold")
        return {key: _to_json(value[key], source) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_to_json(item, source) for item in value]
    raise ExpressionError(f"{source!r} gave a {type(value).__name__}, which JSON cannot hold")
