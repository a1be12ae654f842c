"""What an experiment on a divergence is made of and comes to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from agenteval.compare import first_difference

ChangeKind = Literal["none", "request", "cache", "batching", "boot"]
Side = Literal["a", "b"]
Match = Literal["a", "b", "neither"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An output up to and including the place where two trajectories part."""

    token_ids: tuple[int, ...]
    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]
    runner_up_tokens: tuple[str | None, ...]
    runner_up_logprobs: tuple[float | None, ...]

    @property
    def rows(self) -> list[tuple[int, float, str | None, float | None]]:
        """What stands at each token: equal for answers that agree in every bit."""
        return list(
            zip(self.token_ids, self.logprobs, self.runner_up_tokens, self.runner_up_logprobs, strict=True),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The turn in which two episodes part, with all that it takes to ask for it again."""

    label: str
    turn: int
    token: int
    """Output token at which they part."""
    signs: tuple[str, ...]
    """Everything recorded that could explain why, the cause by elimination first."""
    prompt_ids: tuple[int, ...]
    first_prompt_ids: tuple[int, ...]
    """Prompt of the episodes' first turn."""
    requests: tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]
    """Requests of each side from the episode's first turn to this one, as they went to the server."""
    answers: tuple[Answer, Answer]
    """What each side recorded."""
    cached_tokens: tuple[int | None, int | None]
    """Prompt tokens that each side read from the cache."""
    first_cached_tokens: tuple[int | None, int | None]
    """The same in the episodes' first turn."""
    requests_in_flight: tuple[int, int]

    @property
    def tells_tokens_apart(self) -> bool:
        """Whether the two recorded answers differ in a token, not in logprobs alone."""
        return self.answers[0].token_ids != self.answers[1].token_ids

    @property
    def candidates(self) -> tuple[str, str]:
        """The text of each side's token at the place; empty where its output had ended."""
        first, second = (
            answer.tokens[self.token] if len(answer.tokens) > self.token else "" for answer in self.answers
        )
        return first, second

    def difference(self, answer: Answer, side: Side) -> int | None:
        """First token in which an answer differs from a recorded one, as far as told apart; None where in none."""
        recorded = self.answers[side == "b"]
        if self.tells_tokens_apart:
            return first_difference(answer.token_ids, recorded.token_ids)
        return first_difference(answer.rows, recorded.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How the turn is asked for again; against `cold` each changes one thing."""

    name: str
    kind: ChangeKind
    """What it changes."""
    request_of: Side = "a"
    warm_tokens: int = 0
    """Prompt tokens that are put into the cache before."""
    history: Side | None = None
    """Side whose earlier turns are sent before, under the same salt."""
    head_tokens: int = 0
    """Tokens of the first turn's prompt that are put into the cache before the history."""
    company: int = 0
    """Other requests in flight."""
    boot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One answer under one condition."""

    condition: Condition
    attempt: int
    request_id: str
    """The server's name of the request, as its log has it."""
    cache_salt: str
    is_same_prompt: bool
    """Whether the server made the recorded token ids of the request; else the trial is void."""
    cached_tokens: int | None
    requests_in_flight: int
    """Most requests at the server during this one, itself included, as far as they were sent from here."""
    is_reached: bool
    """Whether cache and company were what the condition asks for."""
    answer: Answer
    match: Match
    """The recorded answer that it equals up to the place: in token ids, or where those tell none apart in every bit."""
    is_exact: bool
    """Whether it equals that answer in every bit of its logprobs too."""
    departs_at: int | None
    """First output token in which it differs from the recorded answer that it follows longest; None where it equals
    one."""
    candidate_logprobs: tuple[float | None, float | None]
    """Of each side's token at the place; None where it is not among the best."""


class Outcome(StrEnum):
    """What the trials of one condition say together."""

    A = "a"
    B = "b"
    NEITHER = "neither"
    VARIES = "varies"
    UNREACHED = "unreached"
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All trials, and what they say."""

    subject: Subject
    changes: tuple[str, ...]
    """What the experiment's server has otherwise than the run's, each with the reason, in words."""
    trials: tuple[Trial, ...]
    outcomes: dict[str, Outcome]
    """By a condition's name."""
    flips: tuple[ChangeKind, ...]
    """Each kind of change that alone turns the one recorded answer into the other."""
    conclusion: str

    @property
    def could_tell(self) -> bool:
        """Whether the turn could be asked for again: the control was in order, and one of the two answers came."""
        if self.flips:
            return True
        controls = [self.outcomes[trial.condition.name] for trial in self.trials if trial.condition.kind == "none"]
        is_in_order = Outcome.VOID not in self.outcomes.values() and Outcome.UNREACHED not in controls
        return is_in_order and any(found in (Outcome.A, Outcome.B) for found in self.outcomes.values())
