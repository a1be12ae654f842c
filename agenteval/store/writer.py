"""A run's writer: durable at once in its journal, in the database soon after, never on the request path."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agenteval import log
from agenteval.errors import StoreError, StoreUnreadableError, StoreUnwritableError, sentence
from agenteval.records import Run
from agenteval.store.database import files_folder, open_for_writing
from agenteval.store.journal import (
    RUN_AGAIN,
    create_journal,
    forget_ingested,
    ingest,
    recover,
    set_aside,
    write_lines,
)
from agenteval.store.lines import Record, to_line

INGEST_EVERY_S = 2.0
"""How far the database may lag behind the journal while a run writes."""
_logger = log.get("store")


@dataclass(slots=True)
class _Pending:
    record: Record | None
    """None only marks a place in the queue."""
    done: threading.Event = field(default_factory=threading.Event)
    error: StoreError | None = None


class RunWriter:
    """Takes the records of one run; use it as a context manager.

    One thread writes lines and syncs them, many lines to a sync where they come together; another moves them into the
    database. A caller that needs durability waits for it with what `append` returns.
    """

    def __init__(self, path: Path, run: Run) -> None:
        """Open the database once, so that what keeps it from being written is known before anything runs.

        Raises:
            StoreError: If the database or its folder cannot be written.
        """
        recover(path)
        with open_for_writing(path):
            pass
        self._path, self._run_id = path, run.run_id
        self.journal = files_folder(path) / f"{run.run_id}.jsonl"
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._ingesting = threading.Lock()
        self._ingested_bytes = self._damaged = 0
        self._failure: StoreError | None = None
        self._refused: StoreError | None = None
        try:
            self._file = create_journal(self.journal)
        except OSError as error:
            raise StoreUnwritableError(path=self.journal, reason=str(error)) from error
        try:
            forget_ingested(path, run.run_id)
        except StoreError:
            self._file.close()
            self.journal.unlink(missing_ok=True)
            raise
        self._journaler = threading.Thread(target=self._journal_loop, name="journal", daemon=True)
        self._ingester = threading.Thread(target=self._ingest_loop, name="ingest", daemon=True)
        self._journaler.start()
        self._ingester.start()
        try:
            self.append(run)()
        except StoreError:
            self._end_threads()
            self._file.close()
            raise

    def append(self, record: Record) -> Callable[[], None]:
        """Take a record; the call that is returned waits until it is on disk.

        Raises:
            StoreError: If an earlier record could not be written.
        """
        return self._put(_Pending(record))

    def flush(self) -> None:
        """Move everything appended so far into the database.

        Raises:
            StoreError: If that fails; the journal then still holds it.
        """
        self._put(_Pending(None))()
        self._ingest(always=True)

    def close(self) -> None:
        """Write what is left and move it into the database; the journal goes only when it holds nothing more.

        Raises:
            StoreError: If that fails; the journal is kept, and the next command that opens the database loads it.
                Also where a record had been refused that nobody waited for.
        """
        self._end_threads()
        try:
            if self._failure is not None:
                raise self._failure
            self._ingest(always=True)
            if self._damaged:
                reason = f"{self._damaged} of its lines were changed by something else and are not in the database"
                kept = set_aside(self.journal, reason)
                raise StoreUnreadableError(path=kept, reason=reason, advice=RUN_AGAIN)
            self.journal.unlink()
        finally:
            # Last, for it gives up the lock: a journal that stands there unlocked is another command's to load.
            self._file.close()
        if self._refused is not None:
            raise self._refused

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def _put(self, pending: _Pending) -> Callable[[], None]:
        if self._failure is not None:
            raise self._failure
        if self._closing.is_set():
            raise StoreUnwritableError(path=self.journal, reason="the run has ended")
        self._queue.put(pending)
        return lambda: _wait(pending)

    def _end_threads(self) -> None:
        self._closing.set()
        self._queue.put(None)
        self._journaler.join()
        self._ingester.join()

    def _journal_loop(self) -> None:
        open_for_more = True
        while open_for_more:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            open_for_more = None not in batch
            self._write_batch([pending for pending in batch if pending is not None])

    def _write_batch(self, batch: list[_Pending]) -> None:
        lines = [line for pending in batch if (line := self._line(pending)) is not None]
        try:
            if self._failure is None:
                write_lines(self._file, lines)
        except OSError as error:
            self._failure = StoreUnwritableError(path=self.journal, reason=str(error))
        for pending in batch:
            pending.error = pending.error or self._failure
            pending.done.set()

    def _line(self, pending: _Pending) -> str | None:
        """The record's line; None for a mark, and for a record that has none, whose waiter is told."""
        if pending.record is None:
            return None
        try:
            return to_line(pending.record)
        except (TypeError, ValueError, RecursionError) as error:
            pending.error = StoreError(
                f"A {type(pending.record).__name__} cannot be stored: {sentence(str(error))} Everything before it is "
                "stored; mend the task or the agent that made this value, then run again."
            )
            self._refused = self._refused or pending.error
            return None

    def _ingest_loop(self) -> None:
        while not self._closing.wait(INGEST_EVERY_S):
            try:
                self._ingest(always=False)
            except StoreError as error:
                # Nothing is lost: the journal holds it, and close() tries again and raises.
                _logger.warning("database_behind", run=self._run_id, reason=str(error))

    def _ingest(self, *, always: bool) -> None:
        with self._ingesting:
            # Opening the database shuts readers out, so not where it should have all.
            if not always and self.journal.is_file() and self.journal.stat().st_size == self._ingested_bytes:
                return
            moved = ingest(self._path, self.journal)
            self._ingested_bytes = moved.end
            self._damaged += moved.damaged


def _wait(pending: _Pending) -> None:
    pending.done.wait()
    if pending.error is not None:
        raise pending.error
