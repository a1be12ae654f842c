"""Worlds, tools, calls and checks as lines for a person; nothing of a file can steer the terminal."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agenteval.digest import canonical_json
from agenteval.log import printable
from agenteval.records import Grade
from agenteval.spec import ToolMock
from agenteval.tools import State, world_patch

_LABEL_WIDTH = 9
_LINE_WIDTH = 100
_MOST_CHARACTERS = 2_000
"""Of a call, a result or a changed value; the command `messages` shows the first two whole."""
_MOST_ITEMS = 200
"""Longer lists are compared as a whole: finding what was put in takes at least the square of their length."""


def labelled(label: str, text: str, *, indent: int = 0) -> list[str]:
    """A text of any number of lines behind a label, without control characters."""
    labels = itertools.chain([label], itertools.repeat(""))
    lines = [printable(line) for line in text.split("\n")]
    return [f"{'':{indent}}{name:<{_LABEL_WIDTH}} {line}".rstrip() for name, line in zip(labels, lines, strict=False)]


def cut(text: str) -> str:
    """A text without its end, if it is long."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]}… ({len(text):,} characters)"


def pretty(value: Any) -> str:
    """A JSON value for reading: what fits stands on one line."""
    return "\n".join(_pretty(value, "", ""))


def _pretty(value: Any, lead: str, blanks: str) -> Iterator[str]:
    flat = json.dumps(value, ensure_ascii=False)
    if len(lead) + len(flat) <= _LINE_WIDTH or not isinstance(value, dict | list) or not value:
        yield lead + flat
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield lead + opening
    deeper = blanks + "  "
    items: Iterable[tuple[str, Any]] = (
        ((f"{json.dumps(key, ensure_ascii=False)}: ", item) for key, item in value.items())
        if isinstance(value, dict)
        else (("", item) for item in value)
    )
    *most, last = [list(_pretty(item, f"{deeper}{name}", deeper)) for name, item in items]
    for lines in most:
        yield from lines[:-1]
        yield f"{lines[-1]},"
    yield from last
    yield blanks + closing


def world_changes(before: State, after: State) -> list[str]:
    """What a call changed in the world, as `-` and `+` lines by JSON Pointer."""
    lines: list[str] = []
    for operation in world_patch(before, after):
        path = operation["path"]
        old = None if operation["op"] == "add" else _at_pointer(before.world, path)
        new = operation.get("value")
        if isinstance(old, list) and isinstance(new, list) and max(len(old), len(new)) <= _MOST_ITEMS:
            lines += _list_changes(path, old, new)
            continue
        if operation["op"] != "add":
            lines.append(_change("-", path, old))
        if operation["op"] != "remove":
            lines.append(_change("+", path, new))
    return lines


def _list_changes(path: str, old: list[Any], new: list[Any]) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(
        None, [canonical_json(item) for item in old], [canonical_json(item) for item in new], autojunk=False
    )
    for _, old_start, old_end, new_start, new_end in (code for code in matcher.get_opcodes() if code[0] != "equal"):
        yield from (_change("-", f"{path}/{place}", old[place]) for place in range(old_start, old_end))
        yield from (_change("+", f"{path}/{place}", new[place]) for place in range(new_start, new_end))


def _change(sign: str, path: str, value: Any) -> str:
    return f"{sign} {path}: {cut(json.dumps(value, ensure_ascii=False))}"


def _at_pointer(world: Any, path: str) -> Any:
    """The value at a pointer that `world_patch` made: it leads through objects only."""
    for part in path.split("/")[1:]:
        world = world[part.replace("~1", "/").replace("~0", "~")]
    return world


def signature(mock: ToolMock) -> str:
    """A tool with its parameters in one line, such as `ship(item: string, units?: integer)`."""
    required = mock.parameters.get("required", ())
    parts = [
        f"{name}{'' if name in required else '?'}: {_type_text(schema)}"
        for name, schema in mock.parameters.get("properties", {}).items()
    ]
    return f"{mock.name}({', '.join(parts)})"


def _type_text(schema: Any) -> str:
    """A schema in a word or two; `tools NAME` shows it whole."""
    if not isinstance(schema, dict):
        return "any"
    if isinstance(schema.get("enum"), list):
        return " | ".join(json.dumps(word, ensure_ascii=False) for word in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"{_type_text(schema.get('items', {}))}[]"
    return " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def first_sentence(text: str) -> str:
    """The start of a description, on one line."""
    sentence = text.split(". ", maxsplit=1)[0].split("\n", maxsplit=1)[0].rstrip(".")
    return sentence if len(sentence) <= _LINE_WIDTH else f"{sentence[: _LINE_WIDTH - 1]}…"


def check_label(grade: Grade) -> str:
    """A check by its kind and its place among the task's, as faults are named too."""
    return f"{grade.kind}#{grade.check}"


def state_text(passed: bool | None) -> str:
    """What a judgement is called."""
    return "not graded" if passed is None else "passed" if passed else "failed"


def check_lines(grades: Sequence[Grade]) -> Iterator[str]:
    """Every check with its state and reason."""
    width = max((len(check_label(grade)) for grade in grades), default=0)
    for grade in grades:
        weight = "" if grade.weight == 1 else f" (weight {grade.weight:g})"
        yield f"{check_label(grade):<{width}}  {state_text(grade.passed):<10}  {printable(cut(grade.reason))}{weight}"
