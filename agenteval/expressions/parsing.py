"""CEL text -> a program, or what is wrong with it in a person's words."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

import cel

from agenteval.expressions.functions import FUNCTIONS, OWN_FUNCTIONS, TYPES
from agenteval.expressions.macros import bound_names, corrected
from agenteval.words import nearest

MAX_EXPRESSION_LENGTH = 2_000
"""Longer expressions are refused at load."""
_CEL_WORDS = {"=": "==", "and": "&&", "or": "||", "not": "!", "is": "==", "<>": "!="}
_OTHER_NAMES = {
    "len": "size",
    "length": "size",
    "count": "size",
    "str": "string",
    "float": "double",
    "lower": "lowerAscii",
    "upper": "upperAscii",
}
_PARSE_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_PARSE_TOKEN = re.compile(r"(?:input|error at:) '(.*?)'(?: expecting|$)")


class ExpressionError(ValueError):
    """An expression could not be parsed or evaluated; the caller says where it stands and what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed CEL expression."""

    source: str
    program: cel.Program
    variables: frozenset[str]
    """Names that it reads, those excepted that its macros bind."""
    functions: frozenset[str]
    """Functions that it calls, operators excepted."""


@functools.lru_cache(maxsize=16_384)
def compile_expression(source: str) -> Expression:
    """Parse a CEL expression once.

    Raises:
        ExpressionError: If it is not CEL, too long, or calls a function that does not exist.
    """
    if len(source) > MAX_EXPRESSION_LENGTH:
        raise ExpressionError(f"longer than {MAX_EXPRESSION_LENGTH} characters")
    if "${" in source:
        raise ExpressionError("a condition is CEL as it stands, without ${…}; write vars.x, args.x or world.x")
    try:
        program = cel.compile(source)
        references = program.references()
        text = corrected(source)
        program = program if text == source else cel.compile(text)
    except ValueError as error:
        raise ExpressionError(f"not a CEL expression: {_parse_problem(error)}") from error
    functions = frozenset(name for name in references["functions"] if name[0].isalpha())
    unknown = sorted(functions - OWN_FUNCTIONS - FUNCTIONS.keys())
    if unknown:
        other = _OTHER_NAMES.get(unknown[0])
        hint = f" CEL has {other}." if other else nearest(unknown[0], sorted(OWN_FUNCTIONS | FUNCTIONS.keys()))
        raise ExpressionError(f"there is no function {unknown[0]!r}.{hint}")
    return Expression(
        source=source,
        program=program,
        variables=frozenset(references["variables"]) - bound_names(source),
        functions=functions,
    )


def unknown_names(expression: Expression, known: Iterable[str]) -> str | None:
    """What an expression reads that is not among the known names, as a sentence; None where there is nothing."""
    known = tuple(known)
    unknown = sorted(expression.variables - TYPES - set(known))
    if not unknown:
        return None
    return f"there is no {unknown[0]!r} here; known are {', '.join(known)}.{nearest(unknown[0], known)}"


def condition_problem(source: str, known: Iterable[str]) -> str | None:
    """What is wrong with a condition, without evaluating it; None where nothing is."""
    try:
        return unknown_names(compile_expression(source), known)
    except ExpressionError as error:
        return str(error)


def _parse_problem(error: ValueError) -> str:
    """Where the parser stopped, in a person's words: its own name its grammar's tokens."""
    found = _PARSE_PLACE.findall(str(error))
    if not found:
        return str(error).splitlines()[0][:200]
    line, column, what = next((entry for entry in found if "Syntax error" in entry[2]), found[0])
    place = f"character {column}" if line == "1" else f"line {line}, character {column}"
    token = _PARSE_TOKEN.search(what)
    if token is None:
        return f"{what} at {place}"
    if token[1] == "<EOF>":
        return "it ends too early"
    word = token[1].strip()
    hint = f"; CEL writes {_CEL_WORDS[word]}" if word in _CEL_WORDS else ""
    return f"{word!r} is not expected at {place}{hint}"
