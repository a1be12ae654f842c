"""How the stand-in model writes: choice after choice, each a function of all before it and of the noise."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from .text import encode, token_bytes

NEAR_TIE_NATS = 0.125
WORDS = """
account address alert amount answer balance booking budget change check city client compare confirm
contact cost customer date delay detail email error event file find first flight flow goal guide
help hotel image index input invoice item label level limit list local market match message meter
model month move name need note number offer open order page parcel pay person place plan point
price product query range rate record refund region report request result review route rule sale
search second send set ship sign size sort start state status step stock store sum task team test
ticket time title total track travel trend type unit update user value verify view week
""".split()
_FREE_TEXT = re.compile(
    r"reason|text|message|body|note|comment|summary|description|answer|query|question|title|content"
)
_IDENTIFIER = re.compile(r"\b[A-Za-z]*[-_]?\d[\w-]*\b")


def unit(key: bytes, *parts: object) -> float:
    """A number in [0, 1) that depends on nothing but key and parts."""
    digest = blake2b(repr(parts).encode(), key=key[:64], digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


@dataclass(frozen=True, slots=True)
class Noise:
    """What rounds otherwise: each source has a name, a state (0 is silence) and an amplitude in nats."""

    sources: tuple[tuple[str, int, float], ...] = ()

    def shift(self, key: bytes) -> float:
        """Nats to add to a margin at the place that key stands for."""
        return sum(
            amplitude * (2 * unit(key, name, state) - 1)
            for name, state, amplitude in self.sources
            if state and amplitude
        )


@dataclass(frozen=True, slots=True)
class Drawing:
    """How the next token is drawn."""

    temperature: float
    """0 is greedy."""
    key: bytes
    """Digest of seed and request, used above temperature 0."""
    only_likeliest: bool = False
    """Whether top_p, top_k or min_p leave one token."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A place where the model could have written something else."""

    start: int
    """Characters of the draft before it."""
    other: str
    """The best option that was not taken."""
    margin: float
    """Logprob of what was taken minus that of the other, in nats."""


@dataclass(slots=True)
class Draft:
    """A text in the making."""

    key: bytes
    """Digest of the weights and the prompt's tokens."""
    noise: Noise
    drawing: Drawing
    near_tie_share: float
    text: str = ""
    choices: list[Choice] = field(default_factory=list)

    def write(self, text: str) -> None:
        """Append what the grammar, or certainty, forces."""
        self.text += text

    def pick(self, options: Sequence[str], rest: Sequence[str] = ()) -> str:
        """Choose, without writing, one of some options; it must be written next. Only a draw takes one of the rest."""
        state = blake2b(self.text.encode(), key=self.key, digest_size=32).digest()
        ranked = sorted(set(options), key=lambda option: unit(state, option))
        if len(ranked) == 1:
            return ranked[0]
        if unit(state, "tie") < self.near_tie_share:
            margin = NEAR_TIE_NATS * unit(state, "margin")
        else:
            margin = 0.3 + 5 * unit(state, "margin")
        margin += self.noise.shift(state)
        logits = {ranked[0]: margin, ranked[1]: 0.0}
        logits |= {word: -1.0 - 0.25 * place for place, word in enumerate(rest) if word not in logits}
        taken = self._draw(logits, state)
        other = max((option for option in logits if option != taken), key=lambda option: logits[option])
        self.choices.append(Choice(len(self.text), other, logits[taken] - logits[other]))
        return taken

    def _draw(self, logits: Mapping[str, float], state: bytes) -> str:
        if self.drawing.temperature == 0 or self.drawing.only_likeliest:
            return max(logits, key=lambda option: logits[option])
        weights = [math.exp(logit / self.drawing.temperature) for logit in logits.values()]
        places = list(accumulate(weights))
        return list(logits)[bisect_right(places, unit(self.drawing.key, state) * places[-1], hi=len(places) - 1)]

    def choose(self, options: Sequence[str]) -> str:
        """Choose one of some options and write it."""
        taken = self.pick(options)
        self.write(taken)
        return taken

    def words(self, *, least: int, most: int) -> None:
        """Write some words, of which the number is certain and each word is a choice."""
        count = least + int(unit(self.key, self.text, "count") * (most - least + 1))
        for place in range(count):
            self.write(" " if place else "")
            self.write(self.pick(_sample(WORDS, self.key, self.text), WORDS[:20]))

    def alternatives(self, ids: Sequence[int]) -> dict[int, tuple[float, int]]:
        """Token index to (margin, other token id), for each choice that shows in the tokens of the text."""
        found: dict[int, tuple[float, int]] = {}
        starts = list(accumulate((len(token_bytes(token)) for token in ids), initial=0))
        for choice in self.choices:
            here = max(0, bisect_right(starts, len(self.text[: choice.start].encode())) - 2)
            before = self.text.encode()[starts[min(here, len(ids))] : len(self.text[: choice.start].encode())]
            other = encode(before.decode(errors="replace") + choice.other + '"')
            for index, (ours, theirs) in enumerate(zip(ids[here:], other, strict=False), start=here):
                if ours != theirs:
                    found.setdefault(index, (choice.margin, theirs))
                    break
        return found


def write_arguments(draft: Draft, schema: Mapping[str, Any], hints: Sequence[str]) -> str:
    """Write a JSON object that a tool's parameters admit, and return it."""
    start = len(draft.text)
    _write_object(draft, schema, hints)
    return draft.text[start:]


def identifiers(text: str) -> list[str]:
    """Words of a text that look like an id, a date or a number, in order."""
    return list(dict.fromkeys(_IDENTIFIER.findall(text)))


def _sample(options: Sequence[str], key: bytes, text: str) -> Sequence[str]:
    first = int(unit(key, text, "first") * len(options))
    return options[first], options[(first + 1 + int(unit(key, text, "second") * (len(options) - 1))) % len(options)]


def _write_object(draft: Draft, schema: Mapping[str, Any], hints: Sequence[str]) -> None:
    required = schema.get("required", ())
    properties = {
        name: value
        for name, value in schema.get("properties", {}).items()
        if name in required or unit(draft.key, draft.text, name) < 0.5
    }
    draft.write("{")
    for place, (name, value) in enumerate(properties.items()):
        draft.write((", " if place else "") + json.dumps(name, ensure_ascii=False) + ": ")
        _write_value(draft, value, name, hints)
    draft.write("}")


def _write_value(draft: Draft, schema: Mapping[str, Any], name: str, hints: Sequence[str]) -> None:
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            kinds = [kind for kind in schema[key] if kind.get("type") != "null"] or schema[key]
            return _write_value(draft, {**schema, key: None, **kinds[0]}, name, hints)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((word for word in kind if word != "null"), "null")
    if "const" in schema or schema.get("enum"):
        draft.choose([json.dumps(value, ensure_ascii=False) for value in schema.get("enum") or [schema["const"]]])
    elif kind == "object" or "properties" in schema:
        _write_object(draft, schema, hints)
    elif kind == "array":
        count = max(schema.get("minItems", 1), 1)
        draft.write("[")
        for place in range(count):
            draft.write(", " if place else "")
            _write_value(draft, schema.get("items") or {"type": "string"}, name, hints)
        draft.write("]")
    elif kind == "boolean":
        draft.choose(["true", "false"])
    elif kind == "null":
        draft.write("null")
    elif kind in ("integer", "number"):
        _write_number(draft, schema, integer=kind == "integer")
    else:
        _write_string(draft, schema, name, hints)
    return None


def _write_number(draft: Draft, schema: Mapping[str, Any], *, integer: bool) -> None:
    step = schema.get("multipleOf") or (1 if integer else 0.25)
    low = schema.get("minimum", schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else 0)
    high = schema.get("maximum", schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else low + 100)
    first, last = math.ceil(low / step), math.floor(high / step)
    options = [low]
    if first <= last:
        places = [int(unit(draft.key, draft.text, which) * (last - first + 1)) for which in ("a", "b", "c")]
        options = [(first + place) * step for place in places]
    draft.choose([json.dumps(option if integer else float(option)) for option in options])


def _write_string(draft: Draft, schema: Mapping[str, Any], name: str, hints: Sequence[str]) -> None:
    most = schema.get("maxLength", 200)
    by_format = {
        "date": ["2026-01-15", "2026-01-16"],
        "date-time": ["2026-01-15T09:00:00Z", "2026-01-16T09:00:00Z"],
    }
    by_format["email"] = ["ann@example.com", "bob@example.com"]
    options = list(schema.get("examples") or ()) or by_format.get(schema.get("format", ""), [])
    free = _FREE_TEXT.search(name.lower()) is not None
    if not options and not free:
        options = [hint for hint in hints if schema.get("minLength", 0) <= len(hint) <= most]
    if options:
        draft.choose([json.dumps(option, ensure_ascii=False) for option in options])
        return
    draft.write('"')
    start = len(draft.text)
    if most < 60:
        draft.choose([word[:most] for word in _sample(WORDS, draft.key, draft.text)])
    else:
        draft.words(least=3 if free else 1, most=6 if free else 2)
    draft.write("x" * (schema.get("minLength", 0) - (len(draft.text) - start)) + '"')
