"""YAML files -> frozen models, or every problem at once, each with file, line, key and nearest right word.

Reads YAML 1.2's core words only: `yes`, `on` and dates stay texts, so that a mock's data is what it looks
like. Knows YAML and pydantic; must not know what the models mean.
"""

from __future__ import annotations

import gc
import math
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pydantic
import pydantic_core
import yaml

from agenteval.errors import FileProblemsError, Problem
from agenteval.log import SECRET_NAME
from agenteval.words import nearest

MAX_FILE_BYTES = 1_000_000
"""A larger file is refused unread: no task or contract comes near it."""
MAX_NODES = 200_000
"""More values than this, aliases expanded, are refused: a YAML bomb grows by aliases."""
MAX_DEPTH = 60
"""Deeper nesting is refused before it can exhaust Python's stack."""
MAX_FINDINGS = 100
"""Problems told of one task, tool or other part that is validated by itself; more are counted."""
MAX_INTEGER_CHARACTERS = 32
"""Longer integers are refused: other JSON readers round them."""

KeyPath = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=pydantic.BaseModel)

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NUMBER_STARTS = frozenset("+-.0123456789")
_QUOTED = re.compile(r"[\w.-]+")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MAPPING = "must be a mapping of keys to values"
_WORDING = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a text (in quotes where it looks like something else)",
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _MAPPING),
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "too_short": "needs {min_length} or more items",
    "string_pattern_mismatch": "must match the pattern {pattern}",
}
"""What pydantic finds, by its own word for it, in a person's words; the value that was given is put behind."""
_NO_TAG = ""
"""Tag of a node whose author wrote none."""


class Frozen(pydantic.BaseModel):
    """Base of every model that people write: immutable, and unknown keys are refused."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


ItemT = TypeVar("ItemT")
Many = Annotated[tuple[ItemT, ...], pydantic.Strict(False)]
"""Items in order: a list in a file, a list or a tuple in Python."""


@dataclass(slots=True)
class Document:
    """One file as plain data, and where in it each value stands."""

    path: Path
    data: Any = None
    root: yaml.Node | None = None
    """The file as parsed; None where it is no YAML."""
    problems: list[Problem] = field(default_factory=list)

    def holds(self, key: KeyPath) -> bool:
        """Whether there is a value at `key`."""
        return self.root is not None and len(_lines_down(self.root, key)) == len(key) + 1

    def line(self, key: KeyPath) -> int | None:
        """1-based line of the value at `key`, or of the nearest value that encloses it."""
        return None if self.root is None else _lines_down(self.root, key)[-1]

    def problem(self, key: KeyPath, message: str) -> Problem:
        """A problem at `key` of this file."""
        return Problem(path=self.path, line=self.line(key), key=key_text(key), message=message)


@contextmanager
def collecting_later() -> Iterator[None]:
    """The collector of cycles is off meanwhile: it would walk the many objects of files again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_yaml(path: Path) -> Document:
    """Read one file; what is wrong with it as YAML is in the document's `problems`."""
    document = Document(path=path)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            document.problems.append(document.problem((), f"larger than {MAX_FILE_BYTES:,} bytes"))
            return document
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        document.problems.append(document.problem((), f"cannot be read as text: {error}"))
        return document
    try:
        document.root = yaml.compose(text, Loader=_Composer)
        document.data = None if document.root is None else _Builder(document).build(document.root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        document.problems.append(Problem(path=path, line=line, key="", message=f"not YAML: {error.problem}"))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"not YAML: the character {chr(error.character)!r} is not allowed"
        document.problems.append(Problem(path=path, line=line, key="", message=what))
    except yaml.YAMLError as error:
        document.problems.append(document.problem((), f"not YAML: {error}"))
    except RecursionError:
        document.problems.append(document.problem((), f"nested deeper than {MAX_DEPTH} levels"))
    except _TooLargeError as error:
        document.problems.append(document.problem((), str(error)))
    return document


def validate(document: Document, model: type[ModelT], data: Any = None, at: KeyPath = ()) -> ModelT | None:
    """Validate data of a document against a model; problems go to the document.

    Args:
        document: Where the data comes from.
        model: The model to build.
        data: Data to validate, when it is not the whole document's.
        at: Key path of `data` in the document.

    Returns:
        The model, or None where a problem was added.
    """
    value = document.data if data is None and not at else data
    try:
        # Through JSON mode, so that a YAML list is a tuple and a text an enum member, and nothing else is
        # coerced.
        return model.model_validate_json(pydantic_core.to_json(value))
    except pydantic.ValidationError as error:
        items = error.errors(include_url=False)
        found = [(at + _real_keys(value, item), item) for item in items[:MAX_FINDINGS]]
        for key, item in found:
            if not (item["type"] == "too_short" and _has_deeper(key, (other for other, _ in found))):
                document.problems.append(document.problem(key, _message(item, model)))
        if len(items) > MAX_FINDINGS:
            more = f"and {len(items) - MAX_FINDINGS:,} more problems; correct those above first"
            document.problems.append(document.problem(at, more))
        return None


def raise_if_any(documents: Iterable[Document]) -> None:
    """Raise when any document has a problem.

    Raises:
        FileProblemsError: With every problem of every document, in order of file and line.
    """
    found = [problem for document in documents for problem in document.problems]
    if found:
        raise FileProblemsError(sorted(found, key=lambda problem: (str(problem.path), problem.line or 0)))


def key_text(key: KeyPath) -> str:
    """`("tasks", 2, "prompt")` as `tasks[2].prompt`."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


class _TooLargeError(Exception):
    """The document expands past the bounds above."""


class _Composer(yaml.CSafeLoader):
    """YAML text -> nodes, of which only those that were written with a tag have one."""

    def resolve(self, *_node: Any) -> str:
        """Called for nodes without a tag only; YAML 1.1 would give `yes` and dates types of their own."""
        return _NO_TAG


class _Builder:
    """Nodes -> data, with positions, duplicates and size counted on the way."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._count = 0
        self._key: list[str | int] = []
        """Where the node that is being built stands."""

    def build(self, node: yaml.Node) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            raise _TooLargeError(f"more than {MAX_NODES:,} values; are aliases (*name) nested?")
        if len(self._key) > MAX_DEPTH:
            raise _TooLargeError(f"nested deeper than {MAX_DEPTH} levels")
        if node.tag != _NO_TAG:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            self._report(f"the tag {tag} is not allowed; write the value without it, or in quotes for a text")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._below(index, item) for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.MappingNode)
        return self._mapping(node)

    def _below(self, part: str | int, node: yaml.Node) -> Any:
        self._key.append(part)
        value = self.build(node)
        self._key.pop()
        return value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for name_node, value_node in node.value:
            if not isinstance(name_node, yaml.ScalarNode):
                self._report("a key must be a plain text")
                continue
            name = name_node.value
            if name == "<<" and not name_node.style:
                self._report("merge keys (<<) are not read; write the fields out")
            elif name in mapping:
                first = self._document.line((*self._key, name))
                self._document.problems.append(
                    Problem(
                        path=self._document.path,
                        line=name_node.start_mark.line + 1,
                        key=key_text((*self._key, name)),
                        message=f"the key {name!r} stands twice; first on line {first}",
                    )
                )
            else:
                mapping[name] = self._below(name, value_node)
        return mapping

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        # A plain scalar has no style, or an empty one from the parser in C.
        if node.style:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in _NUMBER_STARTS:
            return text
        if _INTEGER.match(text):
            return self._number(int(text) if len(text) <= MAX_INTEGER_CHARACTERS else math.inf, text)
        if _FLOAT.match(text):
            return self._number(float(text), text)
        return text

    def _number(self, value: float, text: str) -> float:
        if value in (math.inf, -math.inf):
            self._report(f"{text[:40]} is too large for a number; put it in quotes for a text")
        return value

    def _report(self, message: str) -> None:
        self._document.problems.append(self._document.problem(tuple(self._key), message))


def _lines_down(node: yaml.Node, key: KeyPath) -> list[int]:
    """1-based lines of a node and of what stands below it along a key path, as far as there is something."""
    lines = [node.start_mark.line + 1]
    for part in key:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            lines.append(node.start_mark.line + 1)
        elif isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == part), None)
            if pair is None:
                break
            node = pair[1]
            lines.append(pair[0].start_mark.line + 1)
        else:
            break
    return lines


def _has_deeper(key: KeyPath, others: Iterable[KeyPath]) -> bool:
    """Whether another problem lies below `key`: pydantic counts only the items that are right."""
    return any(len(other) > len(key) and other[: len(key)] == key for other in others)


def _real_keys(data: Any, item: Any) -> KeyPath:
    """Keep of a finding's location what stands in the data, not the tags of unions that pydantic adds."""
    *path, last = item["loc"] or (None,)
    keys: list[str | int] = []
    for part in path:
        if _holds(data, part):
            data = data[part]
            keys.append(part)
    if last is not None and (item["type"] == "missing" or _holds(data, last)):
        keys.append(last)
    return tuple(keys)


def _holds(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, Mapping) and part in data


def _message(item: Any, model: type[pydantic.BaseModel]) -> str:
    """A finding of pydantic's in a person's words, with the value and the nearest right word."""
    kind, location, given = item["type"], item["loc"], item.get("input")
    if kind == "extra_forbidden":
        known = sorted(_fields_at(model, location[:-1]))
        return f"unknown key {location[-1]!r}.{nearest(str(location[-1]), known)} Known: {', '.join(known)}."
    if kind == "missing":
        return f"the key {location[-1]!r} is missing"
    if kind in ("literal_error", "enum"):
        expected = item["ctx"]["expected"]
        return f"{given!r} is not one of {expected}." + nearest(str(given), _QUOTED.findall(expected))
    if kind == "union_tag_invalid":
        context = item["ctx"]
        return f"{context['tag']!r} is not one of {context['expected_tags']}." + nearest(
            str(context["tag"]), _QUOTED.findall(context["expected_tags"])
        )
    if kind == "union_tag_not_found":
        return f"the key {item['ctx']['discriminator']} is missing"
    text = _WORDING[kind].format_map(item.get("ctx", {})) if kind in _WORDING else item["msg"]
    text = text.removeprefix("Value error, ")
    shown = repr(given)
    is_secret = any(SECRET_NAME.search(str(part)) for part in location)
    return text if kind == "value_error" or is_secret or len(shown) > 80 else f"{text}, not {shown}"


def _fields_at(model: type[pydantic.BaseModel], location: Sequence[str | int]) -> set[str]:
    """Names that the model at `location` below `model` knows."""
    models = [model]
    for part in location:
        reached = [
            inner
            for current in models
            if isinstance(part, str) and part in current.model_fields
            for inner in _models_in(current.model_fields[part].annotation)
        ]
        # A part that is no field is an index, or the tag of a union member, which narrows the candidates.
        if reached:
            models = reached
        elif isinstance(part, str):
            tagged = [current for current in models if _has_tag(current, part)]
            models = tagged or models
    return {field.alias or name for current in models for name, field in current.model_fields.items()}


def _has_tag(model: type[pydantic.BaseModel], tag: str) -> bool:
    kind = model.model_fields.get("kind")
    return kind is not None and tag in typing.get_args(kind.annotation)


def _models_in(annotation: Any) -> list[type[pydantic.BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, pydantic.BaseModel) else []
    return [model for argument in typing.get_args(annotation) for model in _models_in(argument)]
