"""`agenteval play`: a task's tools by hand, at a prompt or from a file of lines."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from datetime import datetime

from agenteval.cli.common import emit
from agenteval.contract import load_contract
from agenteval.errors import InputError
from agenteval.play import PlaySession
from agenteval.spec import Selection, load_suite, select_variants

_PROMPT = "> "
_WORD_ENDS = " \t\n;"


def play(arguments: argparse.Namespace) -> int:
    """Play one task variant; the exit status is what its checks come to."""
    clock = _instant(arguments.clock or load_contract("strict").contract.tools.clock)
    (variant,) = select_variants(load_suite(arguments.suite), Selection(tasks=(arguments.task,), limit=1))
    session = PlaySession(variant, clock=clock, is_blind=arguments.blind)
    emit(session.opening())
    for line in _lines(session.completions):
        text = session.take(line)
        if text:
            emit(text)
        if session.is_over:
            break
    emit(session.closing())
    return session.exit_status


def _instant(text: str) -> str:
    """The text, if it is an instant.

    Raises:
        InputError: If it is none, or has no zone.
    """
    try:
        instant = datetime.fromisoformat(text)
        instant.utctimetuple()
    except (ValueError, OverflowError) as error:
        raise InputError(f"{text!r} is no ISO 8601 instant. Write one such as 2026-01-15T09:00:00Z.") from error
    if instant.tzinfo is None:
        raise InputError(f"{text!r} has no time zone. Append Z for UTC.")
    return text


def _lines(completions: Callable[[str], list[str]]) -> Iterator[str]:
    """The lines that are given: at a prompt to a person, else as they come."""
    if sys.stdin is None:
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        yield from _prompted(completions)
        return
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="backslashreplace")
    yield from sys.stdin


def _prompted(completions: Callable[[str], list[str]]) -> Iterator[str]:
    # Some Pythons are built without it; one can type all the same.
    with contextlib.suppress(ImportError):
        import readline

        def complete(word: str, place: int) -> str | None:
            found = completions(readline.get_line_buffer()[: readline.get_begidx()])
            # The value of a key follows at once, whatever else is completed after a blank.
            matching = [name if name.endswith("=") else f"{name} " for name in found if name.startswith(word)]
            return matching[place] if place < len(matching) else None

        readline.set_completer(complete)
        readline.set_completer_delims(_WORD_ENDS)
        readline.parse_and_bind("tab: complete")
    while True:
        try:
            yield input(_PROMPT)
        except EOFError:
            print()
            return
