"""`${…}` inside JSON values.

A text that is one whole `${…}` keeps its value's type; inside other text the value becomes text.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval.digest import canonical_json
from agenteval.expressions.parsing import ExpressionError, compile_expression, unknown_names
from agenteval.expressions.scope import Scope, scope_of


def render(template: Any, names: Mapping[str, Any] | Scope) -> Any:
    """A JSON value with every `${…}` in its texts (keys excepted) replaced by its value.

    Raises:
        ExpressionError: If one of the expressions fails.
    """
    scope = scope_of(names)
    if isinstance(template, str):
        return _render_text(template, scope)
    if isinstance(template, Mapping):
        return {key: render(value, scope) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [render(value, scope) for value in template]
    return template


def render_pointer(template: str, names: Mapping[str, Any] | Scope) -> str:
    """A JSON Pointer whose inserted values are escaped, so that a value can never reach another place.

    Raises:
        ExpressionError: If one of the expressions fails.
    """
    scope = scope_of(names)
    return "".join(
        part if not is_expression else pointer_part(as_text(scope.evaluate(part)))
        for part, is_expression in split_template(template)
    )


def pointer_part(text: str) -> str:
    """A text as one part of a JSON Pointer."""
    return text.replace("~", "~0").replace("/", "~1")


def problems(template: Any, known: Iterable[str]) -> list[str]:
    """What is wrong with the expressions of a template, without evaluating them.

    Args:
        template: A JSON value.
        known: Names that its expressions may read.
    """
    found = []
    for text in texts(template):
        if "${" not in text:
            continue
        try:
            for part, is_expression in split_template(text):
                complaint = unknown_names(compile_expression(part), known) if is_expression else None
                if complaint is not None:
                    found.append(f"{text!r}: {complaint}")
        except ExpressionError as error:
            found.append(f"{text!r}: {error}")
    return found


def texts(value: Any) -> Iterator[str]:
    """Every text of a JSON value at any depth, keys excepted."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            left += reversed(item.values())
        elif isinstance(item, list | tuple):
            left += reversed(item)


def has_template(value: Any) -> bool:
    """Whether a JSON value holds an expression to put in."""
    return any("${" in text for text in texts(value))


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


def _render_text(template: str, scope: Scope) -> Any:
    if "${" not in template:
        return template
    parts = split_template(template)
    if len(parts) == 1 and parts[0][1]:
        return scope.evaluate(parts[0][0])
    return "".join(as_text(scope.evaluate(part)) if is_expression else part for part, is_expression in parts)


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
