"""Progress on stderr: one line that is drawn over on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

from typing_extensions import override

from agenteval.cli.common import say
from agenteval.log import printable
from agenteval.loop import Observer
from agenteval.records import CellOutcome, Episode, EpisodePlan, EpisodeStatus
from agenteval.sweep import Cell

_PLAIN_EVERY_S = 5.0
"""How often a step that goes on is said again where lines cannot be drawn over."""


class StatusLine:
    """The current state of long work, drawn over in place on a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._drawn = 0
        self._last_plain = ("", 0.0)

    def update(self, text: str, *, step: str) -> None:
        """Show the state; where it cannot be drawn over, only a new step or a long wait is said."""
        if self._is_terminal:
            # A line that wraps could not be drawn over.
            text = text[: max(1, shutil.get_terminal_size().columns - 1)]
            _draw(f"\r{text:<{self._drawn}}")
            self._drawn = len(text)
            return
        last_step, last_time = self._last_plain
        if step != last_step or time.monotonic() - last_time >= _PLAIN_EVERY_S:
            say(text)
            self._last_plain = (step, time.monotonic())

    def say(self, text: str) -> None:
        """A lasting line above the state."""
        self.clear()
        say(text)

    def clear(self) -> None:
        """Wipe the state."""
        if self._is_terminal and self._drawn:
            _draw("\r" + " " * self._drawn + "\r")
            self._drawn = 0


def _draw(text: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(text)
        sys.stderr.flush()


class StepLine:
    """Progress of a pull, as `agenteval.models` reports it; use it as a context manager."""

    def __init__(self) -> None:
        self._line = StatusLine()

    def __call__(self, step: str, done: int, total: int, /) -> None:
        """Take one report."""
        self._line.update(f"model     {step}: {done / max(total, 1):.0%}", step=step)

    def __enter__(self) -> StepLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.clear()


class RunProgress:
    """Draws a run: the server's start, then episodes with what is left and how long that may take."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_quiet, self._line = is_quiet, StatusLine()
        self._planned = self._ended = self._passed = self._graded = 0
        self._started = 0.0

    def planned(self, run_id: str, episodes: int) -> None:
        """The run has its order of episodes."""
        self._planned = episodes
        self._say(f"run       {run_id}: {episodes} episodes")

    def locked(self, path: Path) -> None:
        """The run's lock is in this file."""
        self._say(f"lock      {printable(str(path))}")

    def starting(self, phase: str, elapsed_s: float) -> None:
        """The server is in this phase of its start."""
        if phase == "ready":
            self._say(f"server    ready after {elapsed_s:.0f} s")
        else:
            self._update(f"server    {phase}, {elapsed_s:.0f} s", step=phase)

    def probing(self) -> None:
        """The server is healthy and its probes run."""
        self._update("server    probing what it does", step="probe")

    def episode_started(self, plan: EpisodePlan) -> None:
        """An episode makes its first request."""
        if not self._started:
            self._started = time.monotonic()
        self._update(f"episode   {self._count()} {plan.label}{self._left()}", step=plan.episode_id)

    def episode_ended(self, episode: Episode, passed: bool | None) -> None:
        """An episode has ended."""
        self._ended += 1
        self._passed += passed is True
        self._graded += passed is not None
        if episode.status is EpisodeStatus.NOT_RUN:
            outcome = printable(f"not run: {episode.message}")
        else:
            outcome = {True: "passed", False: "failed", None: "not graded"}[passed]
        self._say(
            f"episode   {self._count()} {episode.plan.label}: {outcome}, {episode.turns} turns, "
            f"{episode.elapsed_s:.1f} s{self._left()}"
        )

    def judging(self) -> None:
        """Repeats are compared and clauses audited."""
        self._update("judging   comparing repeats and auditing the clauses", step="judge")

    def warned(self, message: str) -> None:
        """Something that a person should know."""
        self._line.say(f"warning   {message}")

    def close(self) -> None:
        """Wipe the state."""
        self._line.clear()

    def _count(self) -> str:
        return f"{self._ended}/{self._planned}"

    def _left(self) -> str:
        """An estimate of the time left, from the episodes that have ended."""
        if not self._ended or self._ended >= self._planned:
            return ""
        elapsed_s = time.monotonic() - self._started
        left_s = elapsed_s / self._ended * (self._planned - self._ended)
        return f"; about {_duration(left_s)} left"

    def _say(self, text: str) -> None:
        if not self._is_quiet:
            self._line.say(text)

    def _update(self, text: str, *, step: str) -> None:
        if not self._is_quiet:
            self._line.update(text, step=step)


class SweepProgress:
    """Draws a sweep: a lasting line where a cell starts, is ready, warns or ends, and one state of all that run."""

    def __init__(self, *, cells: int, is_quiet: bool) -> None:
        self._cells, self._ended = cells, 0
        self._is_quiet, self._line = is_quiet, StatusLine()
        self._lock = threading.Lock()
        self._states: dict[str, str] = {}

    def watch(self, cell: Cell) -> CellProgress:
        """Follow one more cell."""
        return CellProgress(cell.name, self)

    def cell_ended(self, outcome: CellOutcome) -> None:
        """A cell has an outcome."""
        self._ended += 1
        reason = f": {printable(outcome.message.splitlines()[0])}" if outcome.message else ""
        took = f" after {_duration(outcome.elapsed_s)}" if outcome.elapsed_s else ""
        self.say(outcome.cell, f"{outcome.status}{took}{reason}; {self._ended} of {self._cells} cells")
        with self._lock:
            self._states.pop(outcome.cell, None)

    def say(self, cell: str, text: str) -> None:
        """A lasting line about a cell."""
        if not self._is_quiet:
            with self._lock:
                self._line.say(f"{cell:<20}  {text}")

    def state(self, cell: str, text: str) -> None:
        """What a cell does now."""
        if not self._is_quiet:
            with self._lock:
                self._states[cell] = text
                shown = "; ".join(f"{name} {state}" for name, state in sorted(self._states.items()))
                self._line.update(f"{self._ended}/{self._cells} cells  {shown}", step="")

    def close(self) -> None:
        """Wipe the state."""
        self._line.clear()


class CellProgress(Observer):
    """What one cell's run tells, passed on to the sweep's lines."""

    def __init__(self, cell: str, sweep: SweepProgress) -> None:
        self._cell, self._sweep = cell, sweep
        self._planned = self._ended = 0

    def planned(self, run_id: str, episodes: int) -> None:
        """The run has its order of episodes."""
        self._planned = episodes
        self._sweep.say(self._cell, f"run {run_id}: {episodes} episodes")

    def locked(self, path: Path) -> None:
        """The run's lock stands beside the database, as every run's."""

    def starting(self, phase: str, elapsed_s: float) -> None:
        """The server is in this phase of its start."""
        if phase == "ready":
            self._sweep.say(self._cell, f"server ready after {elapsed_s:.0f} s")
        self._sweep.state(self._cell, phase)

    def probing(self) -> None:
        """The server is healthy and its probes run."""
        self._sweep.state(self._cell, "probing")

    @override
    def episode_started(self, plan: EpisodePlan) -> None:
        """An episode makes its first request."""
        self._sweep.state(self._cell, f"{self._ended}/{self._planned}")

    @override
    def episode_ended(self, episode: Episode, passed: bool | None) -> None:
        """An episode has ended."""
        self._ended += 1
        if episode.status is EpisodeStatus.NOT_RUN:
            self._sweep.say(self._cell, printable(f"{episode.plan.label}: not run: {episode.message}"))

    def judging(self) -> None:
        """Repeats are compared and clauses audited."""
        self._sweep.state(self._cell, "judging")

    def warned(self, message: str) -> None:
        """Something that a person should know."""
        self._sweep.say(self._cell, f"warning: {message}")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
