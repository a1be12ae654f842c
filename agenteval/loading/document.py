"""A file as data: where each value stands, and what is wrong with it."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agenteval.errors import FileProblemsError, Problem

MAX_FINDINGS = 100
"""Problems told of one file as YAML, and of each part that is validated by itself."""

KeyPath = tuple[str | int, ...]
_Pair = tuple[yaml.Node, yaml.Node]


@dataclass(slots=True)
class Document:
    """One file as plain data, and where in it each value stands."""

    path: Path
    data: Any = None
    root: yaml.Node | None = None
    """The file as parsed; None where it is no YAML."""
    problems: list[Problem] = field(default_factory=list)
    _pairs: dict[int, dict[str, _Pair]] = field(default_factory=dict, repr=False, compare=False)
    """Identity of each mapping that was looked into to its first pair of each key: many problems, one search."""

    def holds(self, key: KeyPath) -> bool:
        """Whether there is a value at `key`."""
        return self.root is not None and len(self._lines_down(self.root, key)) == len(key) + 1

    def line(self, key: KeyPath) -> int | None:
        """1-based line of the value at `key`, or of the nearest value that encloses it."""
        return None if self.root is None else self._lines_down(self.root, key)[-1]

    def problem(self, key: KeyPath, message: str) -> Problem:
        """A problem at `key` of this file."""
        return Problem(path=self.path, line=self.line(key), key=key_text(key), message=message)

    def _lines_down(self, node: yaml.Node, key: KeyPath) -> list[int]:
        """1-based lines of a node and of what stands below it along a key path, as far as there is something."""
        lines = [node.start_mark.line + 1]
        for part in key:
            if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                lines.append(node.start_mark.line + 1)
            elif isinstance(node, yaml.MappingNode) and (pair := self._pair(node, part)) is not None:
                node = pair[1]
                lines.append(pair[0].start_mark.line + 1)
            else:
                break
        return lines

    def _pair(self, node: yaml.MappingNode, key: str | int) -> _Pair | None:
        """The first pair of a mapping with this key."""
        if id(node) not in self._pairs:
            pairs = (pair for pair in reversed(node.value) if isinstance(pair[0], yaml.ScalarNode))
            self._pairs[id(node)] = {name.value: (name, value) for name, value in pairs}
        return self._pairs[id(node)].get(key) if isinstance(key, str) else None


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
