"""What an experiment on a divergence is made of and comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

ChangeKind = Literal["none", "cache", "batching", "boot"]
Match = Literal["a", "b", "both", "neither"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An output up to and including the place where two trajectories part."""

    token_ids: tuple[int, ...]
    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The turn in which two episodes part, with all that it takes to ask for it again."""

    label: str
    turn: int
    token: int
    """Output token at which they part."""
    prompt_ids: tuple[int, ...]
    requests: tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]
    """Requests of each side from the episode's first turn to this one, as they went to the server."""
    answers: tuple[Answer, Answer]
    """What each side recorded."""
    cached_tokens: tuple[int | None, int | None]
    """Prompt tokens that each side read from the cache."""
    requests_in_flight: tuple[int, int]

    @property
    def candidates(self) -> tuple[str, str]:
        """The text of each side's token at the place; empty where its output had ended."""
        first, second = (
            answer.tokens[self.token] if len(answer.tokens) > self.token else "" for answer in self.answers
        )
        return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How the turn is asked for again; against `cold` each changes one thing."""

    name: str
    kind: ChangeKind
    """What it changes."""
    warm_tokens: int = 0
    """Prompt tokens that are put into the cache before."""
    history: Literal["a", "b"] | None = None
    """Side whose earlier turns are sent before, under the same salt."""
    company: int = 0
    """Other requests in flight."""
    boot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One answer under one condition."""

    condition: Condition
    attempt: int
    is_same_prompt: bool
    """Whether the server made the recorded token ids of the request; else the trial shows nothing."""
    cached_tokens: int | None
    is_reached: bool
    """Whether the cache held what the condition asks for."""
    answer: Answer
    match: Match
    """The recorded answer that it equals up to the place: in token ids, or where those tell none apart in logprobs."""
    departs_at: int | None
    """First output token that differs from both recorded answers; None where it equals one."""
    candidate_logprobs: tuple[float | None, float | None]
    """Of each side's token at the place; None where it is not among the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All trials, and what they say."""

    subject: Subject
    changes: tuple[str, ...]
    """Fields in which the contract of the experiment's server differs from the run's, in words."""
    trials: tuple[Trial, ...]
    flips: tuple[ChangeKind, ...]
    """Each kind of change that alone turns the one recorded answer into the other."""
    conclusion: str

    @property
    def could_tell(self) -> bool:
        """Whether the unchanged request was answered as one of the two sides, and the same way each time."""
        return bool(self.flips) or any(
            trial.match in ("a", "b") for trial in self.trials if trial.condition.kind == "none"
        )
