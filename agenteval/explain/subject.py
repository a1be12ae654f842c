"""From two stored episodes to the turn that can be asked for again."""

from __future__ import annotations

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


def subject_of(a: Trajectory, b: Trajectory) -> Subject:
    """The first turn in which the model answered two equal prompts differently.

    Args:
        a: The one side, whole.
        b: The other.

    Raises:
        InputError: If they agree in every bit, or part for a reason that no server can be asked about.
    """
    found = compare_pair(a, b).divergence
    label = f"{a.episode.plan.label} against {b.episode.plan.label}"
    if found is None:
        raise InputError(f"{label}: they agree in every bit, so there is nothing to explain.")
    if found.token is None:
        reason = _UPSTREAM.get(found.cause_kind or CauseKind.GRADES, found.cause)
        raise InputError(f"{label}: {reason}, so no server can be asked why. The cause: {found.cause}.")
    turns = (a.turns[found.turn], b.turns[found.turn])
    return Subject(
        label=label,
        turn=found.turn,
        token=found.token,
        prompt_ids=full_prompts(a.turns[: found.turn + 1])[-1],
        requests=(_requests(a, found.turn), _requests(b, found.turn)),
        answers=(_answer(turns[0], found.token), _answer(turns[1], found.token)),
        cached_tokens=(turns[0].cached_tokens, turns[1].cached_tokens),
        requests_in_flight=(turns[0].requests_in_flight, turns[1].requests_in_flight),
    )


def tells_tokens_apart(subject: Subject) -> bool:
    """Whether the two recorded answers differ in a token, not in logprobs alone."""
    return subject.answers[0].token_ids != subject.answers[1].token_ids


def _requests(side: Trajectory, last: int) -> tuple[dict[str, Any], ...]:
    messages = full_messages(side.turns[: last + 1])
    return tuple(
        {**turn.request, "messages": list(said)} for turn, said in zip(side.turns[: last + 1], messages, strict=True)
    )


def _answer(turn: Turn, token: int) -> Answer:
    end = token + 1
    return Answer(token_ids=turn.output_ids[:end], tokens=turn.output_tokens[:end], logprobs=turn.logprobs[:end])
