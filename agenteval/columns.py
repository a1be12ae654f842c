"""Text in columns."""

from __future__ import annotations

from collections.abc import Sequence


def table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Columns of text under their names, two blanks apart."""
    widths = [
        max(len(column), *(len(row[index]) for row in rows)) if rows else len(column)
        for index, column in enumerate(columns)
    ]
    lines = [columns, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
