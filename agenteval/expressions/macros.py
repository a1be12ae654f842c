"""What the CEL binding leaves to chance, or does unlike CEL, is put right in the text of an expression.

A function of ours is put around what each macro walks over and what is added; it sorts or refuses, counts and bounds.
Another one takes the place of `size`, which the binding gives in bytes of a text and CEL in characters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

ORDERED = "agenteval_ordered"
"""Name of the function that stands around what each macro walks over."""
ADDEND = "agenteval_addend"
"""Name of the function that stands around what is added: of a map, the binding adds the keys in any order."""
SIZE = "agenteval_size"
"""Name of the function that takes the place of `size`."""

TEXT = (
    r"""(?:[bB]?[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')"""
    r"""|[bB]?(?:\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))"""
)
"""A text of CEL, in which nothing is syntax; in a raw one, a backslash stands for itself."""
_OPAQUE = re.compile(TEXT + r"|//[^\n]*", re.DOTALL)
_MACRO = re.compile(r"\s*\.\s*(?:map|filter|all|exists|exists_one|existsOne)\s*\(")
_MACRO_VARIABLE = re.compile(_MACRO.pattern + r"\s*(\w+)\s*,")
_SIZE_CALL = re.compile(r"\bsize\s*\(")
_ADDITION = re.compile(r"\+\s*(?=[A-Za-z_.(\[{])(?!(?:bytes|double|duration|int|size|string|timestamp|uint)\s*\()")
"""A plus and what may be a map after it; what is a number or text by its form is none."""
_BLOT = "ª"
"""Stands for each character of a text: part of a word to Python, and of no name to CEL."""
_FIELD = re.compile(r"\s*\.?\s*\w+")


def corrected(source: str) -> str:
    """The expression with our functions where the binding's own ways are random or wrong."""
    masked = without_texts(source)
    inserts: dict[int, str] = defaultdict(str)
    for position, insert in (*_closings(masked), *_openings(masked)):
        inserts[position] += insert
    cuts = sorted({0, *inserts})
    pieces = zip(cuts, [*cuts[1:], len(source)], strict=True)
    return "".join(inserts[start] + source[start:end] for start, end in pieces)


def _closings(masked: str) -> Iterator[tuple[int, str]]:
    for macro in _MACRO.finditer(masked):
        yield macro.start(), ")"
    for addition in _ADDITION.finditer(masked):
        yield _operand_end(masked, addition.end()), ")"


def _openings(masked: str) -> Iterator[tuple[int, str]]:
    """Outermost first, where several start at one place."""
    for addition in _ADDITION.finditer(masked):
        yield addition.end(), f"{ADDEND}("
    for macro in _MACRO.finditer(masked):
        yield _operand_start(masked, macro.start()), f"{ORDERED}("
    for call in _SIZE_CALL.finditer(masked):
        yield call.start(), SIZE.removesuffix("size")


def bound_names(source: str) -> frozenset[str]:
    """Names that the macros of an expression bind."""
    return frozenset(_MACRO_VARIABLE.findall(without_texts(source))) if _MACRO.search(source) else frozenset()


def without_texts(source: str) -> str:
    """The expression with its texts and comments blotted out, every character in its place."""
    return _OPAQUE.sub(lambda found: (" " if found[0].startswith("//") else _BLOT) * len(found[0]), source)


def _operand_start(masked: str, end: int) -> int:
    """Where the operand that ends before `end` starts: names, calls, indices and brackets joined by dots."""
    position = end
    while True:
        position = len(masked[:position].rstrip())
        while position and masked[position - 1] in ")]}":
            position = _opening(masked, position - 1)
            before = len(masked[:position].rstrip())
            if before == 0 or not (masked[before - 1] in ")]}" or _is_name(masked, before)):
                return position
            position = before
        while position and (re.match(r"\w", masked[position - 1])):
            position -= 1
        before = len(masked[:position].rstrip())
        if not before or masked[before - 1] != ".":
            return position
        position = before - 1


def _operand_end(masked: str, start: int) -> int:
    """Where the operand that starts at `start` ends: a name or brackets, with its fields, indices and calls."""
    position = _closing(masked, start) if masked[start] in "([{" else start
    while position < len(masked):
        following = len(masked) - len(masked[position:].lstrip())
        if following < len(masked) and masked[following] in "([" and position > start:
            position = _closing(masked, following)
        elif position == start or masked.startswith(".", following):
            field = _FIELD.match(masked, position)
            if field is None:
                break
            position = field.end()
        else:
            break
    return position


def _closing(masked: str, opening: int) -> int:
    """Position behind the bracket that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(masked)):
        depth += (masked[position] in "([{") - (masked[position] in ")]}")
        if depth == 0:
            return position + 1
    return len(masked)


def _is_name(masked: str, end: int) -> bool:
    """Whether a name, and not the operator `in`, ends at `end`."""
    word = re.search(r"\w+\Z", masked[:end])
    return word is not None and word[0] != "in"


def _opening(masked: str, closing: int) -> int:
    depth = 0
    for position in range(closing, -1, -1):
        depth += (masked[position] in ")]}") - (masked[position] in "([{")
        if depth == 0:
            return position
    return 0


def conjuncts(source: str) -> list[str]:
    """The conditions that a condition joins by `&&`, outermost only; itself where it joins none."""
    masked = without_texts(source)
    depth, start, parts = 0, 0, []
    for place, character in enumerate(masked):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and (character == "?" or masked.startswith("||", place)):
            return [source]
        if depth == 0 and masked.startswith("&&", place):
            parts.append(source[start:place].strip())
            start = place + 2
    return [*parts, source[start:].strip()]
