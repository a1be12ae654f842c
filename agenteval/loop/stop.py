"""The user's wish to stop, passed from a signal to every thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


class StopSwitch:
    """Asked once, episodes end before their next request; asked twice, the server is ended at once."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._kill: Callable[[], None] | None = None

    def ask(self) -> None:
        """Called from the signal handler."""
        if self._asked.is_set() and self._kill is not None:
            self._kill()
        self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether the user wants the run to stop."""
        return self._asked.is_set()

    def on_second(self, kill: Callable[[], None] | None) -> None:
        """What a second ask does; None for nothing."""
        self._kill = kill
