"""Probes that show a sampling field at work: a field that must change the output changes it.

Each is the short canary's prompt with other fields. What a field must do follows from what it means, given the greedy
answer: a nucleus of next to nothing leaves only the greedy token, a forbidden first token cannot come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.audit.probes import CANARIES
from agenteval.contract import Sampling
from agenteval.records import Turn

Turns = Mapping[str, Turn]
"""Name to turn of one boot's probes."""
NEUTRAL = Sampling(
    temperature=0.0,
    seed=0,
    top_p=1.0,
    top_k=0,
    min_p=0.0,
    presence_penalty=0.0,
    frequency_penalty=0.0,
    repetition_penalty=1.0,
    min_tokens=0,
    ignore_eos=False,
    stop=(),
    stop_token_ids=(),
    bad_words=(),
    logit_bias=None,
    allowed_token_ids=None,
)
"""Greedy, with nothing else at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingProbe:
    """One request, and what its answer must be like."""

    name: str
    field: str
    """The contract's field that it is about; its own name where it only serves other probes."""
    fields: Callable[[Turns], dict[str, Any]]
    """The request's sampling fields beside the neutral ones; read when the greedy answer has come."""
    holds: Callable[[Turns], bool | None]
    """Whether the field was obeyed; None where the answers do not decide it. Read when all answers have come."""
    expected: str
    prompt: str | None = None
    """Another prompt than the short canary's."""


def fields_at_work(sampling: Sampling) -> set[str]:
    """Fields with a value at which they do something."""
    neutral = {**NEUTRAL.model_dump(), "seed": sampling.seed}
    given = sampling.model_dump()
    if given["top_k"] == -1:
        given["top_k"] = neutral["top_k"]
    return {field for field, value in given.items() if value != neutral[field]}


def sampling_probes(sampling: Sampling) -> tuple[SamplingProbe, ...]:
    """The probes that a contract's sampling calls for, in the order in which they are sent.

    Temperature, seed and top_p are always shown, since a server that ignores them is not what it says it is.
    """
    wanted = fields_at_work(sampling) | {"temperature", "seed", "top_p"}
    if wanted & _PENALTIES.keys():
        wanted.add(_REPETITION)
    return tuple(probe for probe in _PROBES if probe.field in wanted)


def _ids(turns: Turns, name: str) -> tuple[int, ...]:
    return turns[name].output_ids


def _greedy(turns: Turns) -> tuple[int, ...]:
    return _ids(turns, CANARIES[0])


def _is_certain(turns: Turns) -> bool:
    """Whether the model is so sure of the greedy answer that a draw may well be the same."""
    return min(turns[CANARIES[0]].logprobs, default=0.0) > _CERTAIN


def _differ(turns: Turns, a: str, b: str) -> bool | None:
    """Whether two draws differ; None where they need not."""
    length = min(len(_ids(turns, a)), len(_ids(turns, b)))
    return _ids(turns, a)[:length] != _ids(turns, b)[:length] or (None if _is_certain(turns) else False)


def _name(field: str) -> str:
    return f"sampling-{field.replace('_', '-')}"


def _narrowing(field: str, value: float) -> SamplingProbe:
    """A field that leaves only the likeliest token: even the flattest draw is then the greedy answer."""
    name = _name(field)

    def holds(turns: Turns) -> bool | None:
        ids = _ids(turns, name)
        return ids == _greedy(turns)[: len(ids)] if ids else None

    return SamplingProbe(
        name=name,
        field=field,
        fields=lambda _: {**_HOT, field: value},
        holds=holds,
        expected=f"at {field} {value:g} a draw is the greedy answer",
    )


def _penalty(field: str) -> SamplingProbe:
    """A penalty at its strongest; it need not outweigh the model's mind, so an unchanged answer decides nothing."""
    name, value = _name(field), _PENALTIES[field]
    return SamplingProbe(
        name=name,
        field=field,
        fields=lambda _: {field: value},
        holds=lambda turns: True if _ids(turns, name) != _ids(turns, _REPETITION) else None,
        expected=f"{field} {value:g} changes an answer that repeats a word",
        prompt=_REPEATING,
    )


def _forbidding(field: str, fields: Callable[[Turns], dict[str, Any]]) -> SamplingProbe:
    """A field that keeps the greedy first token away."""
    name = _name(field)
    return SamplingProbe(
        name=name,
        field=field,
        fields=fields,
        holds=lambda turns: _ids(turns, name)[:1] != _greedy(turns)[:1] if _ids(turns, name) else None,
        expected="the greedy first token, forbidden, does not come first",
    )


def _stop_text(turns: Turns) -> str:
    """A text that the greedy answer has; any other where it has none."""
    return (turns[CANARIES[0]].content or "").strip()[:1] or "e"


_HOT = {"temperature": 2.0, "seed": 1}
"""The flattest distribution that a request may ask for: a draw from it is hardly ever the greedy answer."""
_CERTAIN = -0.02
"""Natural log of a probability of 0.98; where the greedy answer falls below it, a draw from all tokens differs."""
_DRAW, _DRAW_AGAIN, _OTHER_SEED = "sampling-draw", "sampling-draw-again", "sampling-other-seed"
_REPETITION = "sampling-repetition"
_REPEATING = "Repeat this word: go go go go go go go go go go go go"
_PENALTIES = {"presence_penalty": 2.0, "frequency_penalty": 2.0, "repetition_penalty": 2.0}
"""The strongest that a contract may ask for."""
_PROBES: tuple[SamplingProbe, ...] = (
    SamplingProbe(
        name=_DRAW,
        field="temperature",
        fields=lambda _: _HOT,
        holds=lambda turns: _differ(turns, _DRAW, CANARIES[0]),
        expected="temperature 2 gives another answer than temperature 0",
    ),
    SamplingProbe(
        name=_DRAW_AGAIN,
        field="seed",
        fields=lambda _: _HOT,
        holds=lambda turns: _ids(turns, _DRAW_AGAIN) == _ids(turns, _DRAW),
        expected="the same seed gives the same draw",
    ),
    SamplingProbe(
        name=_OTHER_SEED,
        field="seed",
        fields=lambda _: {**_HOT, "seed": 2},
        holds=lambda turns: _differ(turns, _OTHER_SEED, _DRAW),
        expected="another seed gives another draw",
    ),
    _narrowing("top_p", 0.001),
    _narrowing("top_k", 1),
    _narrowing("min_p", 1.0),
    SamplingProbe(
        name=_REPETITION,
        field=_REPETITION,
        fields=lambda _: {},
        holds=lambda turns: True if _ids(turns, _REPETITION) else None,
        expected="an answer to compare the penalties with",
        prompt=_REPEATING,
    ),
    *(_penalty(field) for field in _PENALTIES),
    _forbidding("logit_bias", lambda turns: {"logit_bias": {str(_greedy(turns)[0]): -100.0}}),
    _forbidding("bad_words", lambda turns: {"bad_words": (turns[CANARIES[0]].output_tokens[0].strip(),)}),
    SamplingProbe(
        name=_name("allowed_token_ids"),
        field="allowed_token_ids",
        fields=lambda turns: {"allowed_token_ids": (_greedy(turns)[-1],)},
        holds=lambda turns: set(_ids(turns, _name("allowed_token_ids"))) == {_greedy(turns)[-1]},
        expected="nothing but the only allowed token comes",
    ),
    SamplingProbe(
        name=_name("stop_token_ids"),
        field="stop_token_ids",
        fields=lambda turns: {"stop_token_ids": (_greedy(turns)[0],)},
        holds=lambda turns: len(_ids(turns, _name("stop_token_ids"))) == 1,
        expected="the answer ends with the greedy first token",
    ),
    SamplingProbe(
        name=_name("min_tokens"),
        field="min_tokens",
        fields=lambda turns: {"stop_token_ids": (_greedy(turns)[0],), "min_tokens": 2},
        holds=lambda turns: len(_ids(turns, _name("min_tokens"))) >= 2,
        expected="where two tokens are asked for, a stop token does not end the answer before",
    ),
    SamplingProbe(
        name=_name("stop"),
        field="stop",
        fields=lambda turns: {"stop": (_stop_text(turns),)},
        holds=lambda turns: _stop_text(turns) not in (turns[_name("stop")].content or ""),
        expected="the answer ends before the stop text",
    ),
)
