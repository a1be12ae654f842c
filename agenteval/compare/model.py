"""What a comparison is made of and comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agenteval.records import Divergence, Episode, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """An episode with its turns and whether it passed."""

    episode: Episode
    turns: tuple[Turn, ...]
    passed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of a turn, or the end of the shorter trajectory."""

    turn: int
    part: Literal["prompt", "output", "tools", "end"]
    token: int | None = None
    """Of the output; None for every other part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What became of two trajectories after they had parted."""

    turns_apart: int
    """Turns of the longer side from the one where they parted until they rejoin or end; 0 where every call and result
    stayed the same."""
    rejoins: tuple[int, int] | None
    """Turn of each side from which on both make the same calls and get the same results, to the end; None where they
    never do."""
    outcome_differs: bool
    """Whether one passed and the other did not, or one was not graded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two trajectories beside each other."""

    divergence: Divergence | None
    """None where they agree in every bit."""
    aftermath: Aftermath | None
    signs: tuple[str, ...] = ()
    """Everything recorded that could explain the divergence, the cause first."""
