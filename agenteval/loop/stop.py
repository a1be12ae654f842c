"""The user's wish to stop, passed from a signal to every thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from agenteval.errors import AgentevalError


class StoppedError(AgentevalError):
    """The user asked to stop; raised where work would otherwise go on."""


class StopSwitch:
    """Asked once, episodes end before their next request; asked twice, the server is ended at once."""

    def __init__(self) -> None:
        self._asked, self._forced = threading.Event(), threading.Event()
        self._kill: Callable[[], None] | None = None

    def ask(self) -> None:
        """Called from the signal handler."""
        if self._asked.is_set():
            self._forced.set()
            if self._kill is not None:
                self._kill()
        self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether the user wants the run to stop."""
        return self._asked.is_set()

    @property
    def is_forced(self) -> bool:
        """Whether the user has asked twice: nothing is waited for any more."""
        return self._forced.is_set()

    def check(self) -> None:
        """Go on, unless the user wants the run to stop.

        Raises:
            StoppedError: If so.
        """
        if self.is_asked:
            raise StoppedError("the run was stopped")

    def on_second(self, kill: Callable[[], None] | None) -> None:
        """What a second ask does; None for nothing."""
        self._kill = kill
