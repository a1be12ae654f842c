"""The user's wish to stop: once is a request, twice is an order."""

from __future__ import annotations

import pytest

from agenteval.loop import StopSwitch
from agenteval.loop.stop import StoppedError


def test_at_first_nothing_is_asked() -> None:
    stop = StopSwitch()
    stop.check()
    assert (stop.is_asked, stop.is_forced) == (False, False)


def test_asked_once_nothing_is_killed() -> None:
    stop, killed = StopSwitch(), []
    stop.on_second(lambda: killed.append(1))
    stop.ask()
    assert (stop.is_asked, stop.is_forced, killed) == (True, False, [])
    with pytest.raises(StoppedError):
        stop.check()


def test_asked_twice_the_server_is_ended_at_once() -> None:
    stop, killed = StopSwitch(), []
    stop.on_second(lambda: killed.append(1))
    stop.ask()
    stop.ask()
    assert (stop.is_forced, killed) == (True, [1])


def test_asked_twice_without_a_server_is_remembered() -> None:
    stop = StopSwitch()
    stop.ask()
    stop.ask()
    assert stop.is_forced


def test_what_a_second_ask_does_can_be_taken_back() -> None:
    stop, killed = StopSwitch(), []
    stop.on_second(lambda: killed.append(1))
    stop.on_second(None)
    stop.ask()
    stop.ask()
    assert killed == []
