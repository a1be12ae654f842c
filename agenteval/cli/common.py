"""What several commands need."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval import models

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = argparse._SubParsersAction


def cache_dir() -> Path:
    """Where models, engine facts and notes about servers are kept: `AGENTEVAL_CACHE`, else the user's cache."""
    return models.cache_folder()


def say(message: str) -> None:
    """Talk to the person, on stderr."""
    print(message, file=sys.stderr, flush=True)


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
