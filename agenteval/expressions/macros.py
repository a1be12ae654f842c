"""The one order that the CEL binding leaves to chance, that of a map's keys in a macro, is made the sorted one.

A function is put around what each macro walks over; it sorts, counts and bounds.
"""

from __future__ import annotations

import re

ORDERED = "agenteval_ordered"
"""Name of the function that stands around what each macro walks over."""


_OPAQUE = re.compile(
    r"""[rRbB]*(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*""", re.DOTALL
)
"""Texts and comments of CEL, in which nothing is syntax."""
_MACRO = re.compile(r"\s*\.\s*(?:map|filter|all|exists|exists_one|existsOne)\s*\(")
_MACRO_VARIABLE = re.compile(_MACRO.pattern + r"\s*(\w+)\s*,")


def in_order(source: str) -> str:
    """The expression with the function around what each macro walks over: the binding's own order is random."""
    if not _MACRO.search(source):
        return source
    masked = without_texts(source)
    inserts: dict[int, str] = {}
    for macro in _MACRO.finditer(masked):
        start = _operand_start(masked, macro.start())
        inserts[start] = inserts.get(start, "") + f"{ORDERED}("
        inserts[macro.start()] = ")" + inserts.get(macro.start(), "")
    cuts = sorted({0, *inserts})
    pieces = zip(cuts, [*cuts[1:], len(source)], strict=True)
    return "".join(inserts.get(start, "") + source[start:end] for start, end in pieces)


def bound_names(source: str) -> frozenset[str]:
    """Names that the macros of an expression bind."""
    return frozenset(_MACRO_VARIABLE.findall(without_texts(source))) if _MACRO.search(source) else frozenset()


def without_texts(source: str) -> str:
    """The expression with its texts and comments blotted out, every character in its place."""
    return _OPAQUE.sub(lambda found: ("_" if found[0][0] != "/" else " ") * len(found[0]), source)


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
        while position and (masked[position - 1].isalnum() or masked[position - 1] == "_"):
            position -= 1
        before = len(masked[:position].rstrip())
        if not before or masked[before - 1] != ".":
            return position
        position = before - 1


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
