"""YAML text -> plain values.

Reads YAML 1.2's core words only: `yes`, `on` and dates stay texts, so that a mock's data is what it looks like.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml

from agenteval.errors import Problem
from agenteval.loading.document import MAX_FINDINGS, Document, key_text

MAX_FILE_BYTES = 1_000_000
"""A larger file is refused unread: no task or contract comes near it."""
MAX_NODES = 200_000
"""More values than this, aliases expanded, are refused: a YAML bomb grows by aliases."""
MAX_DEPTH = 60
"""Deeper nesting is refused before it can exhaust Python's stack."""
MAX_INTEGER_CHARACTERS = 32
"""Longer integers are refused: other JSON readers round them."""

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NUMBER_STARTS = frozenset("+-.0123456789")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NO_TAG = ""
"""Tag of a node whose author wrote none."""


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
    except _RefusedError as error:
        document.problems.append(document.problem((), str(error)))
    return document


class _RefusedError(Exception):
    """The document expands past the bounds above, or has more problems than anyone reads."""


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
            raise _RefusedError(f"more than {MAX_NODES:,} values; are aliases (*name) nested?")
        if len(self._key) > MAX_DEPTH:
            raise _RefusedError(f"nested deeper than {MAX_DEPTH} levels")
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
                self._report_twice(name, name_node.start_mark.line + 1)
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

    def _report_twice(self, name: str, line: int) -> None:
        first = self._document.line((*self._key, name))
        message = f"the key {name!r} stands twice; first on line {first}"
        self._add(Problem(path=self._document.path, line=line, key=key_text((*self._key, name)), message=message))

    def _report(self, message: str) -> None:
        self._add(self._document.problem(tuple(self._key), message))

    def _add(self, problem: Problem) -> None:
        if len(self._document.problems) >= MAX_FINDINGS:
            raise _RefusedError(f"more than {MAX_FINDINGS} problems; the rest of the file was not read")
        self._document.problems.append(problem)
