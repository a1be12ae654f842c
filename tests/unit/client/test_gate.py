"""The contract's concurrency at the client, and what was really in flight."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import LONG_S

from agenteval.client import Gate


class Meter:
    """How many threads are inside at once, measured apart from the gate."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: dict[int, int] = {}

    def enter(self, number: int) -> None:
        with self._lock:
            self._inside[number] = 0
            for other in self._inside:
                self._inside[other] = max(self._inside[other], len(self._inside))

    def leave(self, number: int) -> int:
        """Most that were inside while this one was."""
        with self._lock:
            return self._inside.pop(number)


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 4), st.integers(1, 12))
def test_never_more_than_n_are_inside_and_peaks_say_how_many_were(n: int, requests: int) -> None:
    gate, meter = Gate(n), Meter()

    def request(number: int) -> tuple[int, int]:
        with gate.enter() as slot:
            meter.enter(number)
            time.sleep(0.002)
            seen = meter.leave(number)
        return slot.peak, seen

    with ThreadPoolExecutor(requests) as pool:
        found = list(pool.map(request, range(requests)))
    assert all(1 <= seen <= peak <= n for peak, seen in found)


def test_waiting_for_a_place_is_measured() -> None:
    gate, inside, leave = Gate(1), threading.Event(), threading.Event()

    def holder() -> None:
        with gate.enter():
            inside.set()
            leave.wait(LONG_S)

    thread = threading.Thread(target=holder)
    thread.start()
    inside.wait(LONG_S)
    threading.Timer(0.5, leave.set).start()
    with gate.enter() as slot:
        assert slot.queued_s >= 0.04
        assert slot.peak == 1
    thread.join()


def test_a_place_is_given_back_when_the_request_fails() -> None:
    gate = Gate(1)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="lost"), gate.enter():
            raise RuntimeError("lost")
    with gate.enter() as slot:
        assert slot.peak == 1
