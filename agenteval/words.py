"""Words that people mistype, and the ones they meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the nearest known word, or an empty text."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {matches[0]!r}?" if matches else ""
