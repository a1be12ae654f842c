"""`${…}` inside JSON values.

A text that is one whole `${…}` keeps its value's type; inside other text the value becomes text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval.digest import canonical_json
from agenteval.expressions.functions import MAX_SIZE, size_of
from agenteval.expressions.macros import TEXT
from agenteval.expressions.parsing import MAX_EXPRESSION_LENGTH, ExpressionError, compile_expression, unknown_names
from agenteval.expressions.scope import Scope, scope_of

_START = re.compile(r"\$?\$\{")
_BRACE_OR_TEXT = re.compile(rf"{TEXT}|[{{}}]", re.DOTALL)


def render(template: Any, names: Mapping[str, Any] | Scope) -> Any:
    """A JSON value with every `${…}` in its texts (keys excepted) replaced by its value.

    Raises:
        ExpressionError: If one of the expressions fails, or all values put in are too large together.
    """
    return _Rendering(scope_of(names)).value(template)


def render_pointer(template: str, names: Mapping[str, Any] | Scope) -> str:
    """A JSON Pointer whose inserted values are escaped, so that a value can never reach another place.

    Raises:
        ExpressionError: If one of the expressions fails, or all values put in are too large together.
    """
    rendering = _Rendering(scope_of(names))
    return "".join(
        part if not is_expression else pointer_part(as_text(rendering.evaluated(part)))
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
    plain: list[str] = []
    position = 0
    while (found := _START.search(template, position)) is not None:
        plain.append(template[position : found.start()])
        position = found.end()
        if found[0] == "$${":
            plain.append("${")
            continue
        end = _closing_brace(template, position)
        parts += [("".join(plain), False), (template[position:end], True)]
        plain, position = [], end + 1
    parts.append(("".join([*plain, template[position:]]), False))
    return tuple((part, is_expression) for part, is_expression in parts if part or is_expression)


def as_text(value: Any) -> str:
    """A value as it stands inside other text: strings bare, everything else as canonical JSON."""
    return value if isinstance(value, str) else canonical_json(value)


class _Rendering:
    """One template with its values put in; their size together is bounded, since one value can stand many times."""

    def __init__(self, scope: Scope) -> None:
        self._scope, self._left = scope, MAX_SIZE

    def evaluated(self, source: str) -> Any:
        value = self._scope.evaluate(source)
        self._left -= size_of(value, self._left)
        if self._left < 0:
            raise ExpressionError(f"what is put in is larger than {MAX_SIZE:,} values and characters")
        return value

    def value(self, template: Any) -> Any:
        if isinstance(template, str):
            return self._text(template)
        if isinstance(template, Mapping):
            return {key: self.value(value) for key, value in template.items()}
        if isinstance(template, list | tuple):
            return [self.value(value) for value in template]
        return template

    def _text(self, template: str) -> Any:
        if "${" not in template:
            return template
        parts = split_template(template)
        if len(parts) == 1 and parts[0][1]:
            return self.evaluated(parts[0][0])
        return "".join(as_text(self.evaluated(part)) if is_expression else part for part, is_expression in parts)


def _closing_brace(template: str, start: int) -> int:
    """Index of the `}` that ends the expression at `start`, past nested braces and quoted texts."""
    depth = 0
    for token in _BRACE_OR_TEXT.finditer(template, start, start + MAX_EXPRESSION_LENGTH + 1):
        depth += (token[0] == "{") - (token[0] == "}")
        if depth < 0:
            return token.start()
    limit = f" within {MAX_EXPRESSION_LENGTH:,} characters" if len(template) - start > MAX_EXPRESSION_LENGTH else ""
    raise ExpressionError(f"a ${{ is not closed by }}{limit}")
