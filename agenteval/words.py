"""Words that people mistype, and the ones they meant."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable

MAX_COMPARED = 50
"""Of more known words, only so many that resemble the mistyped one in length and an end are compared with it."""
MAX_CHARACTERS = 64
"""A longer word was not mistyped: no name is longer."""
_MAX_LENGTH_DIFFERENCE = 3


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the nearest known word, or an empty text; soon, however many words are known."""
    matches = difflib.get_close_matches(word, _compared(word, list(known)), n=1, cutoff=0.6)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def _compared(word: str, known: list[str]) -> list[str]:
    """The known words that a word is compared with."""
    if not 0 < len(word) <= MAX_CHARACTERS:
        return []
    if len(known) > MAX_COMPARED:
        alike = (
            other
            for other in known
            if abs(len(other) - len(word)) <= _MAX_LENGTH_DIFFERENCE
            and (other[:1] == word[0] or other[-1:] == word[-1])
        )
        known = list(itertools.islice(alike, MAX_COMPARED))
    return [other for other in known if len(other) <= MAX_CHARACTERS]
