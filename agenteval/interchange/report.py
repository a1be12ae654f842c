"""What an import could not keep, by name and reason, as text, JSON and Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVERY = "(all)"
"""Source of what holds for every task or tool of an import."""
_NUMBER = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmapped:
    """One thing of a source that the suite does not have, or has otherwise."""

    source: str
    """Id of the task, name of the tool or file, or `(all)`."""
    field: str
    """Key path in the source, as far as there is one."""
    reason: str
    """Why it is not mapped, and what stands in its place where something does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import made of its source."""

    source_format: str
    source: Path
    folder: Path
    """The suite."""
    suite: str
    """Its name."""
    digest: str
    found: int
    """Tasks in the source."""
    ids: Mapping[str, str]
    """Task of the suite to its id in the source."""
    left_out: Mapping[str, str]
    """Id of a task that could not be imported to the reason."""
    tools: int
    checks: int
    mapped: Sequence[tuple[str, str]]
    """What of the format goes where."""
    unmapped: Sequence[Unmapped]

    def counts(self) -> list[tuple[str, str, int]]:
        """(field, reason, how often), the most frequent first; places in lists are taken together."""
        counted = Counter((_NUMBER.sub("[]", row.field), row.reason) for row in self.unmapped)
        return [(field, reason, number) for (field, reason), number in counted.most_common()]

    def as_json(self) -> dict[str, Any]:
        """All of it, for machines."""
        return {
            "format": self.source_format,
            "source": str(self.source),
            "suite": {"folder": str(self.folder), "name": self.suite, "digest": self.digest},
            "tasks": {"found": self.found, "imported": len(self.ids), "left_out": dict(self.left_out)},
            "tools": self.tools,
            "checks": self.checks,
            "ids": dict(self.ids),
            "unmapped": [{"source": row.source, "field": row.field, "reason": row.reason} for row in self.unmapped],
        }

    def as_markdown(self) -> str:
        """All of it, for people: counts, what maps, what does not, and the names of the tasks."""
        counts = [(f"`{_code(field)}`", reason, str(number)) for field, reason, number in self.counts()]
        rows = [(f"`{_code(row.source)}`", f"`{_code(row.field)}`", row.reason) for row in self.unmapped]
        parts = [
            f"# What was imported\n\n{self._sentence()}",
            "## What maps\n\n" + _table(("source", "suite"), self.mapped),
            "## What does not, counted\n\n" + _table(("field", "reason", "how often"), counts),
        ]
        if self.left_out:
            left_out = [(f"`{_code(name)}`", reason) for name, reason in self.left_out.items()]
            parts.append("## Tasks that were left out\n\n" + _table(("source id", "reason"), left_out))
        parts.append("## What does not, one by one\n\n" + _table(("source id", "field", "reason"), rows))
        names = [(f"`{name}`", f"`{_code(source)}`") for name, source in self.ids.items()]
        parts.append("## Names\n\n" + _table(("task", "source id"), names))
        return "\n\n".join(parts) + "\n"

    def _sentence(self) -> str:
        return (
            f"`agenteval import {self.source_format}` read `{_code(self.source.name)}` and wrote {len(self.ids)} of "
            f"its {self.found} tasks (tools: {self.tools}, checks: {self.checks}). Fields that are not mapped, or not "
            f"as they were: {len(self.unmapped)}; each stands below with its reason. What a benchmark's tools do is "
            "code of the benchmark and is not imported: a mock takes the same arguments and gives a fixed result. "
            "Scores are therefore not comparable with the benchmark's own."
        )


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return _on_one_line(text).replace("|", "\\|")


def _code(text: str) -> str:
    """A text between two backticks, which has none of its own."""
    return _on_one_line(text).replace("`", "'") or " "


def _on_one_line(text: str) -> str:
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
