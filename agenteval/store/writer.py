"""A run's writer: durable at once in its journal, in the database soon after, never on the request path."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agenteval import log
from agenteval.errors import StoreError, StoreUnwritableError
from agenteval.records import Run
from agenteval.store.database import files_folder, ingest, open_for_writing, owner_line, recover
from agenteval.store.tables import Record, to_line

INGEST_EVERY_S = 2.0
"""How far the database may lag behind the journal while a run writes."""
_logger = log.get("store")


@dataclass(slots=True)
class _Pending:
    record: Record
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
        self._failure: StoreError | None = None
        try:
            self.journal.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.journal.open("xb", buffering=0)
            self._write([json.dumps(owner_line())])
        except OSError as error:
            raise StoreUnwritableError(path=self.journal, reason=str(error)) from error
        self._journaler = threading.Thread(target=self._journal_loop, name="journal", daemon=True)
        self._ingester = threading.Thread(target=self._ingest_loop, name="ingest", daemon=True)
        self._journaler.start()
        self._ingester.start()
        self.append(run)()

    def append(self, record: Record) -> Callable[[], None]:
        """Take a record; the call that is returned waits until it is on disk.

        Raises:
            StoreError: If an earlier record could not be written.
        """
        if self._failure is not None:
            raise self._failure
        pending = _Pending(record)
        self._queue.put(pending)
        return lambda: _wait(pending)

    def extend(self, records: Sequence[Record]) -> Callable[[], None]:
        """Take several records in order; the call that is returned waits until all are on disk.

        Raises:
            StoreError: If an earlier record could not be written.
        """
        waits = [self.append(record) for record in records]
        # One thread writes in order: when the last is on disk, all are.
        return waits[-1] if waits else lambda: None

    def flush(self) -> None:
        """Move everything appended so far into the database.

        Raises:
            StoreError: If that fails; the journal then still holds it.
        """
        barrier = _Pending(record=None)  # type: ignore[arg-type]
        self._queue.put(barrier)
        _wait(barrier)
        ingest(self._path, self.journal)

    def close(self) -> None:
        """Write what is left and move it into the database; the journal goes only when it holds nothing more.

        Raises:
            StoreError: If that fails; the journal is kept, and the next command that opens the database loads it.
        """
        self._queue.put(None)
        self._journaler.join()
        self._file.close()
        self._closing.set()
        self._ingester.join()
        if self._failure is not None:
            raise self._failure
        ingest(self._path, self.journal)
        self.journal.unlink()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def _journal_loop(self) -> None:
        open_for_more = True
        while open_for_more:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            open_for_more = None not in batch
            self._write_batch([pending for pending in batch if pending is not None])

    def _write_batch(self, batch: list[_Pending]) -> None:
        try:
            if self._failure is None:
                self._write([to_line(pending.record) for pending in batch if pending.record is not None])
        except OSError as error:
            self._failure = StoreUnwritableError(path=self.journal, reason=str(error))
        for pending in batch:
            pending.error = self._failure
            pending.done.set()

    def _write(self, lines: list[str]) -> None:
        content = memoryview("".join(line + "\n" for line in lines).encode("ascii"))
        while content:
            content = content[self._file.write(content) :]
        os.fsync(self._file.fileno())

    def _ingest_loop(self) -> None:
        while not self._closing.wait(INGEST_EVERY_S):
            try:
                ingest(self._path, self.journal)
            except StoreError as error:
                # Nothing is lost: the journal holds it, and close() tries again and raises.
                _logger.warning("database_behind", run=self._run_id, reason=str(error))


def _wait(pending: _Pending) -> None:
    pending.done.wait()
    if pending.error is not None:
        raise pending.error
