"""What several commands need: talk on stderr, data on stdout."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import Protocol, TextIO, TypeVar

from agenteval.errors import InputError


class _Stop(Protocol):
    @property
    def is_asked(self) -> bool: ...

    def ask(self) -> None: ...


StopT = TypeVar("StopT", bound=_Stop)


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


@contextlib.contextmanager
def stop_on_signals(stop: StopT) -> Iterator[StopT]:
    """Turn Ctrl-C and SIGTERM into a stop in good order; a second one ends servers at once."""

    def handle(_number: int, _frame: object) -> None:
        if not stop.is_asked:
            say_from_signal(
                "\nwarning   stopping after the requests in flight; press Ctrl-C again to end the server at once"
            )
        stop.ask()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
