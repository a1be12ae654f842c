"""How long steps tell a caller how far they are; knows no screen, file or log."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called at the start of each step, along the way, and once with done equal to total."""

    def __call__(self, step: str, done: int, total: int, /) -> None:
        """Take one report.

        Args:
            step: What is being done, as a short phrase for a person.
            done: How much of the step is finished, 0 <= done <= total.
            total: Size of the step in the step's own unit (bytes, files); at least 1.
        """


def no_progress(step: str, done: int, total: int, /) -> None:
    """Drop the report: what a caller gets who asked for none."""
