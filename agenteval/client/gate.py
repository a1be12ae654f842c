"""The contract's concurrency, held at the client, and how many requests were really in flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Slot:
    """One request's place at the server."""

    queued_s: float
    """Waited for the place."""
    peak: int = 1
    """Most requests in flight while this one was, itself included."""


class Gate:
    """Admits at most `concurrency` requests to one server at once; shared by all its episodes."""

    def __init__(self, concurrency: int) -> None:
        self._places = threading.BoundedSemaphore(concurrency)
        self._lock = threading.Lock()
        self._open: dict[int, Slot] = {}

    @contextmanager
    def enter(self) -> Iterator[Slot]:
        """Hold a place for the length of one request."""
        waited_from = time.monotonic()
        with self._places:
            slot = Slot(queued_s=time.monotonic() - waited_from)
            with self._lock:
                self._open[id(slot)] = slot
                for other in self._open.values():
                    other.peak = max(other.peak, len(self._open))
            try:
                yield slot
            finally:
                with self._lock:
                    del self._open[id(slot)]
