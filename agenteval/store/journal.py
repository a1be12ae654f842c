"""Journals: one file a run and one line a record, durable at once, moved into the database in batches.

The runner that writes a journal holds a lock on it, which the kernel releases however the runner ends. So a journal
that can be locked belongs to nobody, on whichever machine or in whichever container its runner was.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from agenteval import log
from agenteval.errors import StoreLockedError, StoreUnreadableError, StoreUnwritableError
from agenteval.store.database import LOCK_WAIT_S, files_folder, open_for_writing
from agenteval.store.lines import DAMAGE, Row, parse_line
from agenteval.store.table import insert
from agenteval.store.tables import arrow_tables

READER_WAIT_S = 1.0
"""A reader does without what a dead runner left, rather than wait long for it."""
RUN_AGAIN = "What was whole is in the database; for the rest, start the run again with the same command."
"""What to do about a journal of which some lines are damaged."""
_logger = log.get("store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What one move from a journal into the database came to."""

    lines: int
    """Lines moved."""
    end: int
    """Bytes of the journal that are in the database now."""
    damaged: int
    """Lines among them that are no records; they were left out."""


def create_journal(path: Path) -> io.FileIO:
    """A new journal, locked, with a first line for people that says who writes it.

    Raises:
        OSError: If it cannot be written, or exists.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise FileExistsError(f"{path} exists")
    # Under another name until it is locked: a reader that finds it unlocked takes its runner for dead.
    partial = path.with_suffix(f".{os.getpid()}.partial")
    file = io.FileIO(partial, "xb")
    try:
        # Where locks are not supported, readers cannot take it either, and leave it alone.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write_lines(file, [json.dumps({"record": "Journal", "pid": os.getpid(), "host": socket.gethostname()})])
        partial.rename(path)
        _sync_folder(path.parent)
    except BaseException:
        file.close()
        partial.unlink(missing_ok=True)
        raise
    return file


def write_lines(file: io.FileIO, lines: list[str]) -> None:
    """Append lines and wait until they are on disk.

    Raises:
        OSError: If the disk refuses; the last line may then lack its end.
    """
    content = memoryview("".join(line + "\n" for line in lines).encode("ascii"))
    while content:
        content = content[file.write(content) :]
    os.fsync(file.fileno())


def ingest(path: Path, journal: Path, *, wait_s: float = LOCK_WAIT_S) -> Ingested:
    """Move what a journal has gained into the database, all or nothing.

    A last line without its end is left for later: its writer is still at it, or died there.

    Raises:
        StoreError: If the database cannot be written, or refuses the records.
    """
    run_id = journal.stem
    with open_for_writing(path, wait_s=wait_s) as connection:
        start = _ingested_bytes(connection, run_id)
        whole = _whole_lines(journal, start)
        end = start + len(whole)
        if not whole:
            return Ingested(lines=0, end=end, damaged=0)
        lines, damaged = _records(whole)
        connection.begin()
        try:
            _insert(connection, lines)
            connection.execute("INSERT OR REPLACE INTO journals VALUES (?, ?)", [run_id, end])
            connection.commit()
        except (duckdb.ConstraintException, duckdb.ConversionException) as error:
            raise StoreUnreadableError(
                path=journal,
                reason=str(error).splitlines()[0],
                advice="None of its last records are in the database; start the run again with the same command.",
            ) from error
    return Ingested(lines=len(lines), end=end, damaged=damaged)


def forget_ingested(path: Path, run_id: str) -> None:
    """Start a run's journal anew: what an earlier journal of the same run had moved counts no longer."""
    with open_for_writing(path) as connection:
        connection.execute("DELETE FROM journals WHERE run_id = ?", [run_id])


def recover(path: Path, *, wait_s: float = LOCK_WAIT_S) -> list[str]:
    """Load the journals of runs whose runner is gone; returns their run ids.

    Raises:
        StoreError: If the database cannot be written.
    """
    recovered = []
    for journal in sorted(files_folder(path).glob("*.jsonl")):
        with _owned(journal) as is_ours:
            if is_ours:
                _load(path, journal, wait_s=wait_s)
                recovered.append(journal.stem)
    return recovered


def dead_journals(path: Path) -> list[Path]:
    """The journals of runs whose runner is gone, left where they are: the next command that reads runs loads them."""
    return [journal for journal in sorted(files_folder(path).glob("*.jsonl")) if _is_dead(journal)]


def recover_for_reading(path: Path) -> None:
    """Load what dead runners left, or say that it is missing: a database that cannot be written can still be read."""
    try:
        recover(path, wait_s=READER_WAIT_S)
    except (StoreUnwritableError, StoreLockedError) as error:
        _logger.warning("unloaded_turns", folder=str(files_folder(path)), reason=str(error))


def set_aside(journal: Path, reason: str) -> Path:
    """Keep a journal that could not be loaded whole, under a name that no command reads again; returns its path."""
    kept = journal.with_suffix(".jsonl.damaged")
    journal.rename(kept)
    _logger.warning("damaged_journal", kept=str(kept), reason=reason)
    return kept


def _load(path: Path, journal: Path, *, wait_s: float) -> None:
    try:
        damaged = ingest(path, journal, wait_s=wait_s).damaged
        problem = f"{damaged} of its lines are damaged and were left out. {RUN_AGAIN}" if damaged else None
    except StoreUnreadableError as error:
        if error.path != journal:
            raise
        problem = str(error)
    with open_for_writing(path, wait_s=wait_s) as connection:
        connection.execute(
            "UPDATE runs SET status = 'failed', message = 'the runner ended before the run' "
            "WHERE run_id = ? AND status = 'running'",
            [journal.stem],
        )
    if problem is None:
        journal.unlink(missing_ok=True)
    else:
        set_aside(journal, problem)


@contextmanager
def _owned(journal: Path) -> Iterator[bool]:
    """Whether nobody else writes or loads a journal; nobody else can, meanwhile."""
    try:
        file = journal.open("r+b")
    except FileNotFoundError:
        yield False
        return
    except OSError as error:
        raise StoreUnwritableError(path=journal, reason=str(error)) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another command may have loaded and removed it between the opening and the lock.
            is_there = os.path.samestat(os.fstat(file.fileno()), journal.stat())
        except OSError:
            is_there = False
        yield is_there


def _is_dead(journal: Path) -> bool:
    """Whether nobody holds a journal's lock; a shared one tells that too, and needs no right to write."""
    try:
        with journal.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _whole_lines(journal: Path, start: int) -> bytes:
    try:
        with journal.open("rb") as file:
            file.seek(start)
            content = file.read()
    except OSError as error:
        raise StoreUnreadableError(
            path=journal, reason=str(error), advice="Look at the file and its rights, then give the command again."
        ) from error
    return content[: content.rfind(b"\n") + 1]


def _records(content: bytes) -> tuple[list[Row], int]:
    """The records of whole lines, and how many lines are none."""
    texts = content.split(b"\n")[:-1]
    lines = [line for line in map(_record, texts) if line is not None]
    if not _fits(lines):
        lines = [line for line in lines if _fits([line])]
    return lines, len(texts) - len(lines)


def _fits(lines: list[Row]) -> bool:
    try:
        arrow_tables(lines)
    except DAMAGE:
        return False
    return True


def _record(text: bytes) -> Row | None:
    try:
        return parse_line(text)
    except DAMAGE:
        return None


def _insert(connection: duckdb.DuckDBPyConnection, lines: list[Row]) -> None:
    for name, rows in arrow_tables(lines).items():
        insert(connection, name, rows)
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
            "UPDATE boots SET ended_at = ?, reason = ?, metrics = ?, model_digest = ? WHERE boot_id = ?",
            [line["ended_at"], line["reason"], json.dumps(line["metrics"]), line["model_digest"], line["boot_id"]],
        )


def _ingested_bytes(connection: duckdb.DuckDBPyConnection, run_id: str) -> int:
    found = connection.execute("SELECT ingested_bytes FROM journals WHERE run_id = ?", [run_id]).fetchone()
    return 0 if found is None else int(found[0])


def _sync_folder(folder: Path) -> None:
    """Make the file's name as durable as its content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
