"""One command, and what an error becomes."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from agenteval.cli.common import say
from agenteval.cli.parser import build_parser
from agenteval.errors import AgentevalError, InputError

_DATABASES = ("db", "db_b", "database")
"""Options and arguments that name a database."""
_ZIP = b"PK"
_WRITING = frozenset({"run:run", "sweep:sweep", "db:import_runs"})
"""Commands that write into the database."""
CANNOT_TELL = 2
"""Exit status of every command that could not give its result."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status; errors become one message on stderr, our own mistakes a traceback."""
    _prepare_streams()
    arguments = build_parser().parse_args(argv)
    try:
        # structlog takes a tenth of a second, which --help need not wait for.
        from agenteval import log

        log.configure(level=arguments.log_level, log_format=arguments.log_format)
        # Before any connection is open: closing a database's file gives up every lock that this process has on it.
        _open_archives(arguments)
        code: int = _load(arguments.command)(arguments)
    except AgentevalError as error:
        say(f"agenteval: {error}")
        return CANNOT_TELL
    except KeyboardInterrupt:
        say("agenteval: stopped by Ctrl-C; nothing more was done. Start it again with the same command.")
        return CANNOT_TELL
    except OSError as error:
        # A place outside the store that cannot be read or written: the cache, a full disk.
        say(f"agenteval: {error}. Look at that path, its rights and the free space, then run again.")
        return CANNOT_TELL
    except Exception:
        # A mistake of ours, whatever it is: Python's own exit status 1 would read as breached or diverged.
        say(f"{traceback.format_exc()}agenteval: a mistake in agenteval. Please report it, with the lines above.")
        return CANNOT_TELL
    return code


def _open_archives(arguments: argparse.Namespace) -> None:
    """Where an archive is named in a database's place, put the database that it becomes there.

    Raises:
        InputError: If the command writes, which an archive is not for.
        StoreError: If the archive is damaged or newer.
    """
    named = {name: path for name in _DATABASES if (path := getattr(arguments, name, None)) is not None}
    if not any(_begins_as_zip(path) for path in named.values()):
        return
    from agenteval.models import cache_folder
    from agenteval.store.archive import is_archive, opened_archive

    for name, path in named.items():
        if is_archive(path):
            if arguments.command in _WRITING:
                raise InputError(f"{path} is an archive, which is only read. Name a database with --db.")
            setattr(arguments, name, opened_archive(path, cache_folder() / "archives"))


def _begins_as_zip(path: Path) -> bool:
    """Told without importing what takes time.."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


def _load(name: str) -> Callable[..., int]:
    """The function that a command names as `module:function`."""
    module, _, function = name.partition(":")
    command: Callable[..., int] = getattr(importlib.import_module(f"agenteval.cli.{module}"), function)
    return command


def _prepare_streams() -> None:
    """Make output safe where it was closed by whoever started us, or cannot show every character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # The lowest free descriptor is the closed one, so that no database is opened under its number.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
