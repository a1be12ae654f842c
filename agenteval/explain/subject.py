"""From two stored episodes to the turn that can be asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenteval.compare import Trajectory, compare_pair, full_messages, full_prompts
from agenteval.errors import InputError
from agenteval.explain.model import Answer, Subject
from agenteval.records import CauseKind, Turn

_UPSTREAM = {
    CauseKind.PROMPT: "their prompts differ before the model was asked",
    CauseKind.TOOLS: "the tools answered otherwise",
    CauseKind.LENGTH: "one has more turns, and every turn that both have is equal",
    CauseKind.GRADES: "only their grades differ",
}
_NOT_ASKED = frozenset({"cache_salt", "model"})
"""Request fields that say where and under which name, and not what to answer."""


def subject_of(a: Trajectory, b: Trajectory, *, settings: Sequence[str] = ()) -> Subject:
    """The first turn in which the model answered two equal prompts differently.

    Args:
        a: The one side, whole.
        b: The other.
        settings: How the two runs were set otherwise, in words; empty for one run.

    Raises:
        InputError: If they agree in every bit, or part for a reason that no server can be asked about.
    """
    found = compare_pair(a, b, settings=settings)
    place = found.divergence
    label = f"{a.episode.plan.label} against {b.episode.plan.label}"
    if place is None:
        raise InputError(f"{label}: they agree in every bit, so there is nothing to explain. Name two that differ.")
    if place.token is None:
        reason = _UPSTREAM.get(place.cause_kind or CauseKind.GRADES, place.cause)
        raise InputError(
            f"{label}, turn {place.turn}: {reason}, so there is nothing to replay. The cause: {place.cause}. Name two "
            "episodes that part in an answer of the model."
        )
    turns = (a.turns[place.turn], b.turns[place.turn])
    prompts = full_prompts(a.turns[: place.turn + 1])
    return Subject(
        label=label,
        turn=place.turn,
        token=place.token,
        signs=found.signs,
        prompt_ids=prompts[-1],
        first_prompt_ids=prompts[0],
        requests=(_requests(a, place.turn), _requests(b, place.turn)),
        answers=(answer_of(turns[0], place.token), answer_of(turns[1], place.token)),
        cached_tokens=(turns[0].cached_tokens, turns[1].cached_tokens),
        first_cached_tokens=(a.turns[0].cached_tokens, b.turns[0].cached_tokens),
        requests_in_flight=(turns[0].requests_in_flight, turns[1].requests_in_flight),
    )


def answer_of(turn: Turn, token: int) -> Answer:
    """A turn's output up to and including a token."""
    end = token + 1
    return Answer(
        token_ids=turn.output_ids[:end],
        tokens=turn.output_tokens[:end],
        logprobs=turn.logprobs[:end],
        runner_up_tokens=turn.runner_up_tokens[:end],
        runner_up_logprobs=turn.runner_up_logprobs[:end],
    )


def request_differences(subject: Subject) -> tuple[str, ...]:
    """Fields in which the two sides asked for something else, although their prompts are equal: seeds, for instance."""
    a, b = (requests[-1] for requests in subject.requests)
    return tuple(
        field for field in sorted(a.keys() | b.keys()) if field not in _NOT_ASKED and a.get(field) != b.get(field)
    )


def _requests(side: Trajectory, last: int) -> tuple[dict[str, Any], ...]:
    messages = full_messages(side.turns[: last + 1])
    return tuple(
        {**turn.request, "messages": list(said)} for turn, said in zip(side.turns[: last + 1], messages, strict=True)
    )
