"""Files of other formats -> plain JSON values with their lines, or every problem at once.

Reads a JSON list, one JSON value a line, or one value after the other. Knows JSON and the bounds that keep a hostile
file from exhausting this process; must not know what the values mean.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic

from agenteval.errors import Problem
from agenteval.loading import MAX_INTEGER_CHARACTERS, Document, Frozen, KeyPath, key_text, not_json

MAX_SOURCE_BYTES = 64_000_000
"""A larger file is refused unread; the largest of the published ones has a tenth of it."""
MAX_DEPTH = 40
"""Deeper nesting is refused, so that a task stays within the loader's bound."""
MAX_PROBLEMS = 200
"""After so many problems of one file, the rest is not looked for."""

_BLANK = re.compile(r"[ \t\r\n\ufeff]*")
_BETWEEN = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")


class Known(Frozen):
    """Base of the models of other formats: what a format's next version adds is kept, to be reported."""

    model_config = pydantic.ConfigDict(frozen=True, extra="allow", strict=True, use_attribute_docstrings=True)


@dataclass(slots=True)
class JsonDocument(Document):
    """A file of JSON values; a key path starts with the value's place in the file."""

    lines: list[int] = field(default_factory=list)
    """1-based line on which each value starts."""
    unread: set[int] = field(default_factory=set)
    """Places of values that have problems already."""

    def values(self) -> Iterator[tuple[int, Any]]:
        """Place and value of everything that could be read."""
        return ((place, value) for place, value in enumerate(self.data) if place not in self.unread)

    def line(self, key: KeyPath) -> int | None:
        """The line on which the value that `key` leads into starts."""
        place = key[0] if key else None
        return self.lines[place] if isinstance(place, int) and place < len(self.lines) else None


def read_text(document: Document) -> str | None:
    """The text of a document's file, or None where a problem was added."""
    try:
        if document.path.stat().st_size > MAX_SOURCE_BYTES:
            document.problems.append(document.problem((), f"larger than {MAX_SOURCE_BYTES:,} bytes"))
            return None
        return document.path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        document.problems.append(document.problem((), f"cannot be read as text: {error}"))
        return None


def read_json_values(path: Path) -> JsonDocument:
    """Read a list of values, or values one after the other; what is wrong is in the document's `problems`."""
    document = JsonDocument(path=path, data=[])
    text = read_text(document)
    if text is not None:
        _Reader(document, text).read()
        if not document.data and not document.problems:
            document.problems.append(document.problem((), "there is nothing in it"))
    return document


def unknown_fields(model: Known, place: KeyPath = ()) -> Iterator[str]:
    """Key paths of everything in a model that its format is not known to have."""
    for name in model.model_extra or ():
        yield key_text((*place, name))
    for name in type(model).model_fields:
        yield from _unknown_below(getattr(model, name), (*place, name))


def _unknown_below(value: Any, place: KeyPath) -> Iterator[str]:
    if isinstance(value, Known):
        yield from unknown_fields(value, place)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _unknown_below(item, (*place, number))


class _RefusedError(ValueError):
    """A value that JSON readers disagree about, or that cannot be written to a suite."""


class _Reader:
    """Reads values one by one, so that each has its line and a wrong one hides no other."""

    def __init__(self, document: JsonDocument, text: str) -> None:
        self._document, self._text = document, text
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_float
        )
        self._counted = (0, 1)
        """A position, and its line."""

    def read(self) -> None:
        position = self._after(_BLANK, 0)
        is_list = self._text.startswith("[", position)
        if is_list:
            position = self._after(_BLANK, position + 1)
        while position < len(self._text) and not (is_list and self._text.startswith("]", position)):
            if len(self._document.problems) >= MAX_PROBLEMS:
                self._report(position, "the rest of the file was not looked at: it has too many problems")
                return
            end = self._read_value(position, is_list=is_list)
            if end is None:
                return
            following = self._after(_BETWEEN, end)
            if is_list and "," not in self._text[end:following] and not self._text.startswith("]", following):
                self._report(end, "not JSON: a comma or a ] is missing after this value")
                return
            position = following
        if is_list:
            self._check_end(position)

    def _read_value(self, position: int, *, is_list: bool) -> int | None:
        """Read one value; where to go on, or None where that is not known."""
        self._document.lines.append(self._line(position))
        place = len(self._document.data)
        self._document.data.append(None)
        self._document.unread.add(place)
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except _RefusedError as error:
            self._report(position, str(error))
            return self._end_of_value(position)
        except json.JSONDecodeError as error:
            self._report(error.pos, f"not JSON: {error.msg}")
            return None if is_list else self._next_line(position)
        except RecursionError:
            self._report(position, f"nested deeper than {MAX_DEPTH} levels")
            return None if is_list else self._next_line(position)
        problems = list(unwritable(value))
        for key, message in problems:
            self._document.problems.append(self._document.problem((place, *key), message))
        if not problems:
            self._document.data[place] = value
            self._document.unread.discard(place)
        return end

    def _end_of_value(self, position: int) -> int | None:
        """Where a refused value ends, so that what follows is read too; None where that is not known."""
        try:
            # Integers are measured, not computed: they may be refused for their length.
            return json.JSONDecoder(parse_int=len).raw_decode(self._text, position)[1]
        except (ValueError, RecursionError):
            return None

    def _next_line(self, position: int) -> int:
        end = self._text.find("\n", position)
        return len(self._text) if end < 0 else self._after(_BLANK, end)

    def _check_end(self, position: int) -> None:
        if position >= len(self._text):
            self._report(position, "not JSON: the list has no end")
        elif self._after(_BLANK, position + 1) < len(self._text):
            self._report(position, "not JSON: something stands after the list's end")

    def _after(self, pattern: re.Pattern[str], position: int) -> int:
        found = pattern.match(self._text, position)
        assert found is not None
        return found.end()

    def _report(self, position: int, message: str) -> None:
        place = len(self._document.data) - 1
        key = "" if place < 0 else key_text((place,))
        self._document.problems.append(
            Problem(path=self._document.path, line=self._line(position), key=key, message=message)
        )

    def _line(self, position: int) -> int:
        """1-based line of a position; counted on from the last one, since a file may have a million lines."""
        counted, line = self._counted
        if position < counted:
            return line - self._text.count("\n", position, counted)
        line += self._text.count("\n", counted, position)
        self._counted = (position, line)
        return line


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RefusedError(f"the key {twice!r} stands twice in one object")
    return found


def _constant(word: str) -> Any:
    raise _RefusedError(f"{word} is no JSON number; a suite cannot hold it")


def _integer(text: str) -> int:
    if len(text) > MAX_INTEGER_CHARACTERS:
        raise _RefusedError(f"{text[:40]} has more than {MAX_INTEGER_CHARACTERS} digits; a suite cannot hold it")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _RefusedError(f"{text[:40]} is too large for a number; a suite cannot hold it")
    return value


def unwritable(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """(where, why) for what no suite can hold, nested less deep than a suite may be, since a task stands around it."""
    return not_json(value, max_depth=MAX_DEPTH)
