"""The database file: opened for a moment, made and migrated as needed."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from agenteval.errors import (
    SchemaVersionError,
    StoreError,
    StoreLockedError,
    StoreUnreadableError,
    StoreUnwritableError,
)
from agenteval.schema import MIGRATIONS, VERSION

LOCK_WAIT_S = 30.0
"""A batch holds the database for well under a second; a shell that stays open holds it for longer."""
_RETRY_S = 0.05
_LOCKED = "Could not set lock on file"
_DISK_WORDS = (
    "read-only",
    "Read-only",
    "No space left",
    "File too large",
    "Disk quota",
    "Permission denied",
    "Could not write",
)
"""What DuckDB's message holds, whatever its class, where the disk refuses."""
_writing = threading.RLock()
"""Held while this process writes; DuckDB would let its threads write at once, and then refuse one's commit."""
_HOLDER = re.compile(r"PID (\d+)")


def files_folder(path: Path) -> Path:
    """Where the journals and server logs of a database's runs stand."""
    return path.with_name(path.name + ".d")


@contextmanager
def open_for_reading(path: Path, *, wait_s: float = LOCK_WAIT_S) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database, read-only, for a moment.

    Raises:
        StoreUnreadableError: If it is missing, damaged or something else.
        StoreLockedError: If another process writes for longer than `wait_s`.
        SchemaVersionError: If a newer agenteval wrote it.
    """
    if not path.is_file():
        raise StoreUnreadableError(path=path, reason="there is no such file")
    connection = _connect(path, read_only=True, wait_s=wait_s)
    try:
        schema_number(connection, path)
        yield connection
    except duckdb.Error as error:
        # Damage is found only where the damaged part is read.
        raise _translated(path, error, read_only=True) from error
    finally:
        _close(connection, path, read_only=True)


@contextmanager
def open_for_writing(path: Path, *, wait_s: float = LOCK_WAIT_S) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database, made and migrated as needed, for a moment.

    Raises:
        StoreUnwritableError: If it cannot be written.
        StoreUnreadableError: If the file is damaged or something else.
        StoreLockedError: If another process holds it for longer than `wait_s`.
        SchemaVersionError: If a newer agenteval wrote it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnwritableError(path=path, reason=str(error)) from error
    if path.exists() and not os.access(path, os.W_OK):
        raise StoreUnwritableError(path=path, reason="the file is read-only")
    with _writing:
        connection = _connect(path, read_only=False, wait_s=wait_s)
        try:
            _migrate(connection, path)
            yield connection
        except duckdb.Error as error:
            raise _translated(path, error) from error
        finally:
            _close(connection, path)


def _connect(path: Path, *, read_only: bool, wait_s: float) -> duckdb.DuckDBPyConnection:
    if path.exists() and not path.is_file():
        raise StoreUnreadableError(path=path, reason="it is no regular file")
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return _opened(path, read_only=read_only)
        except duckdb.IOException as error:
            if _LOCKED not in str(error):
                raise _translated(path, error, read_only=read_only) from error
            if time.monotonic() >= deadline:
                raise StoreLockedError(path=path, waited_s=wait_s, holder=_holder(str(error))) from error
        except duckdb.ConnectionException as error:
            # This very process has it open in the other mode; its other thread closes it in a moment.
            if time.monotonic() >= deadline:
                raise StoreLockedError(path=path, waited_s=wait_s, holder="this process") from error
        except duckdb.Error as error:
            raise _translated(path, error, read_only=read_only) from error
        time.sleep(_RETRY_S)


def _opened(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    # Absolute, since DuckDB takes names such as `:memory:` for something else than a file.
    connection = duckdb.connect(str(path.absolute()), read_only=read_only)
    try:
        # Moments are read back in UTC, not in the zone of whoever reads.
        connection.execute("SET TimeZone = 'UTC'")
        # Drawn on stdout where a query takes seconds, in the midst of data.
        connection.execute("SET enable_progress_bar = false")
    except duckdb.Error:
        connection.close()
        raise
    return connection


def _close(connection: duckdb.DuckDBPyConnection, path: Path, *, read_only: bool = False) -> None:
    try:
        connection.close()
    except duckdb.Error as error:
        raise _translated(path, error, read_only=read_only) from error


def _holder(message: str) -> str:
    found = _HOLDER.search(message)
    return f"by process {found.group(1)}" if found else "by another process"


def schema_number(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """The number of a database's schema; 0 for an empty file.

    Raises:
        StoreUnreadableError: If it is no database of agenteval.
        SchemaVersionError: If a newer agenteval wrote it.
    """
    try:
        # Fetched to its end: DuckDB refuses other work on a connection beside an unfinished result.
        found: Any = connection.execute("SELECT max(number) FROM agenteval_schema").fetchall()[0]
    except duckdb.CatalogException as error:
        tables = connection.execute("SHOW TABLES").fetchall()
        if tables:
            raise StoreUnreadableError(path=path, reason="it is some other program's database") from error
        return 0
    number = int(found[0] or 0)
    if number > VERSION:
        raise SchemaVersionError(path=path, found=number, known=VERSION)
    return number


def has_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether there is a table or view: a database that nothing has been written to since is not migrated."""
    return (name,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()


def quoted(path: Path) -> str:
    """A path as an SQL text, for the statements that take no parameter there."""
    return "'" + str(path).replace("'", "''") + "'"


def _migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    number = schema_number(connection, path)
    if number == VERSION:
        return
    connection.begin()
    connection.execute("CREATE TABLE IF NOT EXISTS agenteval_schema (number INTEGER PRIMARY KEY)")
    for migration in MIGRATIONS[number:]:
        connection.execute(migration.sql)
        connection.execute("INSERT INTO agenteval_schema VALUES (?)", [migration.number])
    connection.commit()


def _translated(path: Path, error: duckdb.Error, *, read_only: bool = False) -> StoreError:
    reason = str(error).splitlines()[0]
    if not read_only and any(words in str(error) for words in _DISK_WORDS):
        return StoreUnwritableError(path=path, reason=reason)
    advice = "Restore the file from a copy, or name another database with --db."
    return StoreUnreadableError(path=path, reason=reason, advice=advice)
