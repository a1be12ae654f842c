"""What several commands need: talk on stderr, data on stdout, tables."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from agenteval.errors import InputError


def say(message: str) -> None:
    """Talk to the person, on stderr; that nobody listens any more is no reason to end a run."""
    try:
        print(message, file=sys.stderr, flush=True)
    except BrokenPipeError:
        _silence(sys.stderr)


def say_from_signal(message: str) -> None:
    """The same from a signal handler, which may have interrupted a print and must not enter it again."""
    with contextlib.suppress(OSError):
        os.write(2, f"{message}\n".encode())


def emit(text: str) -> None:
    """Print data, on stdout. A reader that has gone (`| head`) changes no exit status.

    Raises:
        InputError: If stdout cannot be written, on a full disk for instance.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        _silence(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            raise InputError(
                f"The output cannot be written: {error.strerror}. Free some space, or send it elsewhere; what was "
                "run is stored."
            ) from error


def _silence(stream: TextIO) -> None:
    """Send a stream nowhere: what is left in its buffer would be tried again at exit, and change the exit status."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
