"""What happened in a matrix of runs, and what a run cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agenteval.levels import Level
from agenteval.records.runs import CauseKind

CellStatus = Literal["run", "reused", "refused", "failed", "stopped", "left"]
"""`reused`: an equal run was in the database; `refused`: the contract cannot be kept here, which is a result; `left`:
for another time, on the user's wish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """What became of one cell of a sweep."""

    cell: str
    values: dict[str, str]
    """Axis to value."""
    reference: str
    """Name of the cell that it is compared with; its own where others are compared with it."""
    status: CellStatus
    run_id: str | None
    """None where no run came to an end."""
    message: str | None
    """Why there is no run."""
    elapsed_s: float
    """From the start of its server to its verdict; 0 where nothing was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord:
    """A matrix of runs."""

    sweep_id: str
    name: str
    description: str
    definition: dict[str, Any]
    """The sweep's file, as validated."""
    started_at: datetime
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPair:
    """An episode of a cell beside the one it was compared with: of its reference, or its own first repeat."""

    cell: str
    against: Literal["reference", "repeats"]
    task: str
    variant: str
    sample: int
    repeat_a: int
    repeat_b: int
    episode_a: str
    episode_b: str
    passed_a: bool | None
    passed_b: bool | None
    level: Level | None
    """The loosest level at which they differ; None where they are equal in every bit."""
    turn: int | None
    token: int | None
    margin_a: float | None
    margin_b: float | None
    cause_kind: CauseKind | None
    cause: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCosts:
    """What the episodes of a run took; its probes are not counted."""

    turns: int
    prompt_tokens: int
    cached_tokens: int | None
    """Of the prompt tokens, those read from the cache; None where a turn's are unknown."""
    output_tokens: int
    episode_s: float | None
    """Mean of an episode, in seconds; None where none has ended."""

    @property
    def cached_share(self) -> float | None:
        """Of the prompt tokens; None where it is unknown or there are none."""
        if self.cached_tokens is None or not self.prompt_tokens:
            return None
        return self.cached_tokens / self.prompt_tokens
