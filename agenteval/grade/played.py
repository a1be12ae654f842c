"""What checks look at, and what they find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.records import Episode, StopReason, ToolCall

SHOWN_CHARACTERS = 200
"""Of an answer, a condition or a list that a reason names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A finished episode, as far as checks look at it."""

    run_id: str
    episode_id: str
    stop_reason: StopReason
    answer: str | None
    """The final answer; None where there is none."""
    world: dict[str, Any]
    """The world at the end."""
    turns: int
    calls: Sequence[tuple[int, ToolCall]]
    """All its tool calls with their turns, in order."""
    output_tokens: int
    """Tokens that the model wrote in all turns."""
    explains: bool = True
    """Whether a failing world check looks for the part that is false; the cost of one evaluation a part."""

    @classmethod
    def of(cls, episode: Episode, *, calls: Sequence[tuple[int, ToolCall]], output_tokens: int) -> Played:
        """What checks look at of an episode that was run."""
        return cls(
            run_id=episode.plan.run_id,
            episode_id=episode.plan.episode_id,
            stop_reason=episode.stop_reason,
            answer=episode.answer,
            world=episode.world,
            turns=episode.turns,
            calls=calls,
            output_tokens=output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check that could be evaluated came to."""

    passed: bool
    reason: str


def cut(text: str, length: int = SHOWN_CHARACTERS) -> str:
    """A text without its end, if it is long."""
    return text if len(text) <= length else text[:length] + "…"
