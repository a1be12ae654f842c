"""Who wants to know how a run goes on; the command line draws it, tests listen."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from agenteval.records import Episode, EpisodePlan


class Observer(Protocol):
    """Told of progress; calls may come from any thread, one at a time."""

    def planned(self, run_id: str, episodes: int) -> None:
        """The run has its order of episodes."""

    def locked(self, path: Path) -> None:
        """The run's lock is in this file."""

    def starting(self, phase: str, elapsed_s: float) -> None:
        """The server is in this phase of its start, so many seconds after it began."""

    def probing(self) -> None:
        """The server is healthy and its probes run."""

    def episode_started(self, plan: EpisodePlan) -> None:
        """An episode makes its first request."""

    def episode_ended(self, episode: Episode, passed: bool | None) -> None:
        """An episode has ended, finished or not; passed is None where it was not graded."""

    def judging(self) -> None:
        """All episodes have ended; repeats are compared and clauses audited."""

    def warned(self, message: str) -> None:
        """Something that a person should know and that does not end the run."""
