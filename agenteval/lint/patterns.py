r"""Patterns that every text matches.

Only what is certain is said: a pattern that matches the empty text and does not look back matches at the end of every
text; one that starts with `^` and looks neither back nor ahead, at the start of every text.
"""

from __future__ import annotations

import re

from agenteval import expressions

_FLAGS = re.compile(r"\(\?([a-zA-Z]+)\)")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_LOOKS_BACK = re.compile(r"\^|\\[AbBmMGK]|\(\?<[=!]", re.DOTALL)
_LOOKS_AHEAD = re.compile(r"\$|\\[ZbBmM1-9gk]|\(\?(?!:|P?<\w)|[*+?}]\+", re.DOTALL)
"""What also depends on the text behind, or gives nothing back that it has taken, or repeats what it has matched."""
_WHOLE = re.compile(r"\^(.*)\$", re.DOTALL)
_ANY_OF_A_LINE = (".*", ".*?", "(.*)", "(?:.*)")


def matches_every_text(pattern: str) -> bool:
    """Whether there is surely no text in which a pattern is not found."""
    if not expressions.pattern_matches(pattern, ""):
        return False
    flags = _FLAGS.match(pattern)
    body = pattern[flags.end() :] if flags else pattern
    whole = _WHOLE.fullmatch(body)
    if whole is not None and _is_anything(whole[1], flags[1] if flags else ""):
        return True
    bare = _without_literals(body)
    if not _LOOKS_BACK.search(bare):
        return True
    if not bare.startswith(("^", r"\A")):
        return False
    rest = bare.removeprefix("^").removeprefix(r"\A")
    return not _LOOKS_BACK.search(rest) and not _LOOKS_AHEAD.search(rest)


def _is_anything(body: str, flags: str) -> bool:
    """Whether a body between the start and the end of a text, or of its lines, takes all that can stand there."""
    if body in _ANY_OF_A_LINE:
        return "s" in flags or "m" in flags
    return body in (r"[\s\S]*", r"[\S\s]*", r"[\d\D]*", r"[\w\W]*", r"(.|\n)*", r"(?:.|\n)*", "(?s:.*)")


def _without_literals(body: str) -> str:
    """A pattern in which escaped signs and classes of characters, where nothing looks anywhere, are letters."""
    return _CLASS.sub("x", re.sub(r"\\[^AbBmMGKZ1-9gk]", "x", body, flags=re.DOTALL))
