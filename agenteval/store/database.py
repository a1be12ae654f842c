"""The database file: opened for a moment, migrated, filled from journals."""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psutil

from agenteval.errors import (
    SchemaVersionError,
    StoreError,
    StoreLockedError,
    StoreUnreadableError,
    StoreUnwritableError,
)
from agenteval.schema import MIGRATIONS, VERSION
from agenteval.store.tables import TABLES, Row, rows_of, with_moments

DEFAULT_PATH = Path("agenteval.duckdb")
LOCK_WAIT_S = 30.0
"""A batch holds the database for well under a second; a shell that stays open holds it for longer."""
_RETRY_S = 0.05
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
        _check_version(connection, path)
        yield connection
    finally:
        connection.close()


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
    connection = _connect(path, read_only=False, wait_s=wait_s)
    try:
        _migrate(connection, path)
        yield connection
    except duckdb.Error as error:
        raise _translated(path, error) from error
    finally:
        _close(connection, path)


def ingest(path: Path, journal: Path) -> int:
    """Move what a journal has gained into the database, all or nothing; returns the lines moved.

    A last line without its end is left for later: its writer is still at it, or died there.
    """
    run_id = journal.stem
    with open_for_writing(path) as connection:
        start = _ingested_bytes(connection, run_id)
        with journal.open("rb") as file:
            file.seek(start)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        lines = [with_moments(json.loads(line)) for line in whole.splitlines()]
        if not lines:
            return 0
        connection.begin()
        try:
            _insert(connection, lines)
            connection.execute("INSERT OR REPLACE INTO journals VALUES (?, ?)", [run_id, start + len(whole)])
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
    return len(lines)


def recover(path: Path) -> list[str]:
    """Load the journals of runs whose runner is gone; returns their run ids."""
    recovered = []
    for journal in sorted(files_folder(path).glob("*.jsonl")):
        if _is_owned(journal):
            continue
        ingest(path, journal)
        with open_for_writing(path) as connection:
            connection.execute(
                "UPDATE runs SET status = 'failed', message = 'the runner ended before the run' "
                "WHERE run_id = ? AND status = 'running'",
                [journal.stem],
            )
        journal.unlink(missing_ok=True)
        recovered.append(journal.stem)
    return recovered


def owner_line() -> Row:
    """A journal's first line: which process writes it."""
    return {"record": "Journal", "pid": os.getpid(), "pid_started": psutil.Process().create_time()}


def _is_owned(journal: Path) -> bool:
    """Whether the process that writes a journal still runs."""
    try:
        with journal.open(encoding="utf-8") as file:
            first = json.loads(file.readline())
        return bool(psutil.Process(first["pid"]).create_time() == first["pid_started"])
    except (OSError, ValueError, KeyError, psutil.Error):
        return False


def _insert(connection: duckdb.DuckDBPyConnection, lines: list[Row]) -> None:
    rows: dict[str, list[Row]] = defaultdict(list)
    for line in lines:
        for name, row in rows_of(line):
            rows[name].append(row)
    for name, table in TABLES.items():
        if rows[name]:
            columns = ", ".join(f'"{column}"' for column in table.columns)
            connection.register("incoming", table.to_arrow(rows[name]))
            connection.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM incoming")
            connection.unregister("incoming")
    for line in lines:
        _end(connection, line)


def _end(connection: duckdb.DuckDBPyConnection, line: Row) -> None:
    if line["record"] == "RunEnd":
        connection.execute(
            "UPDATE runs SET ended_at = ?, status = ?, verdict = ?, message = ? WHERE run_id = ?",
            [line["ended_at"], line["status"], line["verdict"], line["message"], line["run_id"]],
        )
    elif line["record"] == "BootEnd":
        connection.execute(
            "UPDATE boots SET ended_at = ?, reason = ?, metrics = ? WHERE boot_id = ?",
            [line["ended_at"], line["reason"], json.dumps(line["metrics"]), line["boot_id"]],
        )


def _ingested_bytes(connection: duckdb.DuckDBPyConnection, run_id: str) -> int:
    found = connection.execute("SELECT ingested_bytes FROM journals WHERE run_id = ?", [run_id]).fetchone()
    return 0 if found is None else int(found[0])


def _connect(path: Path, *, read_only: bool, wait_s: float) -> duckdb.DuckDBPyConnection:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return duckdb.connect(str(path), read_only=read_only)
        except duckdb.IOException as error:
            if "lock" not in str(error):
                raise _translated(path, error) from error
            if time.monotonic() >= deadline:
                raise StoreLockedError(path=path, waited_s=wait_s, holder=_holder(str(error))) from error
        except duckdb.ConnectionException as error:
            # This very process has it open in the other mode; its other thread closes it in a moment.
            if time.monotonic() >= deadline:
                raise StoreLockedError(path=path, waited_s=wait_s, holder="this process") from error
        except duckdb.Error as error:
            raise _translated(path, error) from error
        time.sleep(_RETRY_S)


def _close(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        connection.close()
    except duckdb.Error as error:
        raise _translated(path, error) from error


def _holder(message: str) -> str:
    found = _HOLDER.search(message)
    return f"by process {found.group(1)}" if found else "by another process"


def _check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """The schema's number; 0 for an empty file."""
    try:
        found: Any = connection.execute("SELECT max(number) FROM agenteval_schema").fetchone()
    except duckdb.CatalogException as error:
        tables = connection.execute("SHOW TABLES").fetchall()
        if tables:
            raise StoreUnreadableError(path=path, reason="it is some other program's database") from error
        return 0
    number = int(found[0] or 0)
    if number > VERSION:
        raise SchemaVersionError(path=path, found=number, known=VERSION)
    return number


def _migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    number = _check_version(connection, path)
    if number == VERSION:
        return
    connection.begin()
    connection.execute("CREATE TABLE IF NOT EXISTS agenteval_schema (number INTEGER PRIMARY KEY)")
    for migration in MIGRATIONS[number:]:
        connection.execute(migration.sql)
        connection.execute("INSERT INTO agenteval_schema VALUES (?)", [migration.number])
    connection.commit()


def _translated(path: Path, error: duckdb.Error) -> StoreError:
    text = str(error)
    if (
        "not a valid DuckDB database" in text
        or "newer version" in text
        or isinstance(error, duckdb.SerializationException)
    ):
        return StoreUnreadableError(path=path, reason=text.splitlines()[0])
    if isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException) or "read-only" in text:
        return StoreUnwritableError(path=path, reason=text.splitlines()[0])
    return StoreUnreadableError(path=path, reason=text.splitlines()[0])
