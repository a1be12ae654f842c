"""CEL expressions and the templates built on them: `${…}` inside JSON values.

A template that is one whole `${…}` keeps the type of its value; inside other text the value becomes text.
Knows CEL and JSON; must not know tasks or tools. CEL has no clock and no input or output, so a value depends on
its inputs alone; the one order that the binding leaves to chance, that of a map's keys in a macro such as `map`,
is made theirs by sorting; and what macros do is counted and bounded.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cel
import regex

from agenteval.digest import canonical_json
from agenteval.words import nearest

MAX_EXPRESSION_LENGTH = 2_000
"""Longer expressions are refused at load."""
MAX_STEPS = 10_000
"""Elements that the macros of one evaluation may walk over; nested macros multiply, and the binding's cost of one
macro grows with the square of its length."""
MAX_SIZE = 1_000_000
"""Values and characters in what a macro or a function is given, or a function gives back."""
EVALUATION_TIMEOUT_S = 5.0
"""Far above what `MAX_STEPS` take on values of ordinary size, so that no machine's speed decides."""
PATTERN_TIMEOUT_S = 5.0
"""Far above what a pattern needs on an answer, so that no machine's speed decides."""
_ORDERED = "agenteval_ordered"
"""Name of the function that stands around what each macro walks over."""
_OPAQUE = re.compile(
    r"""[rRbB]*(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*""", re.DOTALL
)
"""Texts and comments of CEL, in which nothing is syntax."""
_MACRO = re.compile(r"\s*\.\s*(?:map|filter|all|exists|exists_one)\s*\(")


_PARSE_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_PARSE_TOKEN = re.compile(r"(?:input|error at:) '(.*?)'(?: expecting|$)")
_MACRO_VARIABLE = re.compile(_MACRO.pattern + r"\s*(\w+)\s*,")
# The binding logs what a function of ours raises, which is already an error with a message of its own.
logging.getLogger("cel").setLevel(logging.CRITICAL)


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


class Scope:
    """Names and their values for several evaluations; each value is turned into CEL's form once, where it is read."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._bound: set[str] = set()
        self._context = cel.Context(functions={_ORDERED: self._in_order})
        self._steps, self._deadline = 0, 0.0
        self._problem: str | None = None

    def evaluate(self, source: str) -> Any:
        """The JSON value of an expression.

        Raises:
            ExpressionError: If it does not parse, names something absent, takes too much, or gives a value that JSON
                lacks.
        """
        expression = compile_expression(source)
        self._bind(expression)
        self._steps, self._deadline, self._problem = 0, time.monotonic() + EVALUATION_TIMEOUT_S, None
        try:
            value = expression.program.execute(self._context)
        # The CEL binding raises whichever built-in class fits the failure, with no base class of its own.
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            RuntimeError,
            AttributeError,
            NameError,
        ) as error:
            raise ExpressionError(f"{source!r} failed: {self._problem or _first_sentence(error)}") from error
        if self._problem is not None:
            # `exists` and `all` swallow an error where another element settles them.
            raise ExpressionError(f"{source!r} failed: {self._problem}")
        return _to_json(value, source)

    def _bind(self, expression: Expression) -> None:
        """Put what an expression reads and calls into the context, where it is not there yet."""
        for name in (expression.variables | expression.functions) - self._bound:
            if name in self._names:
                self._context.add_variable(name, self._names[name])
            elif name in FUNCTIONS:
                self._context.add_function(name, self._guarded(FUNCTIONS[name]))
            self._bound.add(name)

    def _in_order(self, value: Any) -> Any:
        """What a macro walks over: a map's keys sorted, anything else as it is, and all of it counted."""
        self._check_size(value)
        self._steps += len(value) if isinstance(value, list | Mapping) else 1
        if self._steps > MAX_STEPS:
            self._fail(f"its macros take more than {MAX_STEPS:,} steps")
        if time.monotonic() > self._deadline:
            self._fail(f"it takes longer than {EVALUATION_TIMEOUT_S:g} s")
        return sorted(value, key=lambda key: (type(key).__name__, key)) if isinstance(value, Mapping) else value

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            self._check_size(values)
            result = function(*values)
            self._check_size(result)
            return result

        return call

    def _check_size(self, value: Any) -> None:
        if _size(value, MAX_SIZE) > MAX_SIZE:
            self._fail(f"a value in it is larger than {MAX_SIZE:,} values and characters")

    def _fail(self, problem: str) -> None:
        self._problem = problem
        raise ValueError(problem)


def _first_sentence(error: Exception) -> str:
    """What the binding says, without its advice for programmers."""
    return str(error).splitlines()[0].split(". ")[0].strip("'\"") if str(error) else type(error).__name__


def _size(value: Any, limit: int) -> int:
    """Values and characters in a value, counted up to a limit."""
    size, left = 0, [value]
    while left and size <= limit:
        item = left.pop()
        size += 1 + (len(item) if isinstance(item, str) else 0)
        if isinstance(item, Mapping):
            left += [*item, *item.values()]
        elif isinstance(item, list | tuple):
            left += item
    return size


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _join(parts: list[str], separator: str = "") -> str:
    return _text(separator).join(map(_text, parts))


def _split(text: str, separator: str) -> list[str]:
    return list(text) if separator == "" else text.split(separator)


def _replace(text: str, old: str, new: str) -> str:
    if text.count(old) * len(new) > MAX_SIZE:
        raise ValueError("the replaced text is too large")
    return text.replace(old, new)


def _round(number: float, digits: int = 0) -> float:
    """Half away from zero in decimal, as people round; floats that JSON writes alike round alike."""
    step = decimal.Decimal(1).scaleb(-digits)
    return float(decimal.Decimal(repr(float(number))).quantize(step, decimal.ROUND_HALF_UP))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lowerAscii": lambda text: "".join(c.lower() if c.isascii() else c for c in _text(text)),
    "upperAscii": lambda text: "".join(c.upper() if c.isascii() else c for c in _text(text)),
    "trim": lambda text: _text(text).strip(),
    "split": _split,
    "join": _join,
    "replace": _replace,
    "substring": lambda text, start, end=None: _text(text)[start:end],
    "sort": lambda values: sorted(values),
    "sum": lambda values: sum(values),
    "min": lambda values: min(values),
    "max": lambda values: max(values),
    "round": _round,
}
"""Functions beyond CEL's own, named as in its common extensions where these have them."""
_OWN_FUNCTIONS = frozenset(
    "size string int uint double bool bytes type dyn timestamp duration contains startsWith endsWith matches has in "
    "getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds "
    "getMilliseconds".split()
)


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
        ordered = _in_order(source)
        program = program if ordered == source else cel.compile(ordered)
    except ValueError as error:
        raise ExpressionError(f"not a CEL expression: {_parse_problem(error)}") from error
    functions = frozenset(name for name in references["functions"] if name[0].isalpha())
    unknown = sorted(functions - _OWN_FUNCTIONS - FUNCTIONS.keys())
    if unknown:
        hint = nearest(unknown[0], sorted(_OWN_FUNCTIONS | FUNCTIONS.keys()))
        raise ExpressionError(f"there is no function {unknown[0]!r}.{hint}")
    bound = frozenset(_MACRO_VARIABLE.findall(_masked(source)))
    return Expression(
        source=source,
        program=program,
        variables=frozenset(references["variables"]) - bound,
        functions=functions,
    )


def unknown_names(expression: Expression, known: Iterable[str]) -> str | None:
    """What an expression reads that is not among the known names, as a sentence; None where there is nothing."""
    known = tuple(known)
    unknown = sorted(expression.variables - set(known))
    if not unknown:
        return None
    return f"there is no {unknown[0]!r} here; known are {', '.join(known)}.{nearest(unknown[0], known)}"


def evaluate(source: str, names: Mapping[str, Any] | Scope) -> Any:
    """The JSON value of an expression over `names`.

    Raises:
        ExpressionError: If it does not parse, names something absent, takes too much, or gives a value that JSON lacks.
    """
    return _scope(names).evaluate(source)


def evaluate_condition(source: str, names: Mapping[str, Any] | Scope) -> bool:
    """The truth of a condition.

    Raises:
        ExpressionError: If its value is not true or false.
    """
    value = evaluate(source, names)
    if not isinstance(value, bool):
        raise ExpressionError(f"{source!r} gave {value!r}, not true or false")
    return value


def render(template: Any, names: Mapping[str, Any] | Scope) -> Any:
    """A JSON value with every `${…}` in its texts (keys excepted) replaced by its value.

    Raises:
        ExpressionError: If one of the expressions fails.
    """
    scope = _scope(names)
    if isinstance(template, str):
        return _render_text(template, scope)
    if isinstance(template, Mapping):
        return {key: render(value, scope) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [render(value, scope) for value in template]
    return template


def render_pointer(template: str, names: Mapping[str, Any] | Scope) -> str:
    """A JSON Pointer whose inserted values are escaped, so that a value can never reach another place.

    Raises:
        ExpressionError: If one of the expressions fails.
    """
    scope = _scope(names)
    return "".join(
        part if not is_expression else pointer_part(as_text(scope.evaluate(part)))
        for part, is_expression in split_template(template)
    )


def pointer_part(text: str) -> str:
    """A text as one part of a JSON Pointer."""
    return text.replace("~", "~0").replace("/", "~1")


def is_same(a: Any, b: Any) -> bool:
    """Equal as JSON values, at any depth: 5 and 5.0 are the same number, and true is none."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def pattern_problem(pattern: str) -> str | None:
    """Why a text is no regular expression; None where it is one."""
    try:
        regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        return f"{pattern[:200]!r} is no regular expression: {error or type(error).__name__}"
    return None


def pattern_matches(pattern: str, text: str) -> bool:
    """Whether a regular expression matches somewhere in a text.

    Raises:
        ExpressionError: If that is not settled within `PATTERN_TIMEOUT_S`, as a pattern that backtracks can need years.
    """
    try:
        return regex.search(pattern, text, timeout=PATTERN_TIMEOUT_S) is not None
    except TimeoutError as error:
        raise ExpressionError(f"the pattern {pattern!r} was not settled within {PATTERN_TIMEOUT_S:g} s") from error


def problems(template: Any, known: Iterable[str]) -> list[str]:
    """What is wrong with the expressions of a template, without evaluating them.

    Args:
        template: A JSON value.
        known: Names that its expressions may read.
    """
    found = []
    for text in texts(template):
        if "${" not in text:
            continue
        try:
            for part, is_expression in split_template(text):
                complaint = unknown_names(compile_expression(part), known) if is_expression else None
                if complaint is not None:
                    found.append(f"{text!r}: {complaint}")
        except ExpressionError as error:
            found.append(f"{text!r}: {error}")
    return found


def condition_problem(source: str, known: Iterable[str]) -> str | None:
    """What is wrong with a condition, without evaluating it; None where nothing is."""
    try:
        return unknown_names(compile_expression(source), known)
    except ExpressionError as error:
        return str(error)


def texts(value: Any) -> Iterator[str]:
    """Every text of a JSON value at any depth, keys excepted."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts(item)


def has_template(value: Any) -> bool:
    """Whether a JSON value holds an expression to put in."""
    return any("${" in text for text in texts(value))


@functools.lru_cache(maxsize=4096)
def split_template(template: str) -> tuple[tuple[str, bool], ...]:
    """Cut a text into (part, is an expression); `$${` stands for a plain `${`.

    Raises:
        ExpressionError: If a `${` is not closed.
    """
    parts: list[tuple[str, bool]] = []
    text, position = "", 0
    while position < len(template):
        if template.startswith("$${", position):
            text, position = text + "${", position + 3
        elif template.startswith("${", position):
            end = _closing_brace(template, position + 2)
            if text:
                parts.append((text, False))
            parts.append((template[position + 2 : end], True))
            text, position = "", end + 1
        else:
            text, position = text + template[position], position + 1
    if text:
        parts.append((text, False))
    return tuple(parts)


def as_text(value: Any) -> str:
    """A value as it stands inside other text: strings bare, everything else as canonical JSON."""
    return value if isinstance(value, str) else canonical_json(value)


def _scope(names: Mapping[str, Any] | Scope) -> Scope:
    return names if isinstance(names, Scope) else Scope(names)


def _render_text(template: str, scope: Scope) -> Any:
    if "${" not in template:
        return template
    parts = split_template(template)
    if len(parts) == 1 and parts[0][1]:
        return scope.evaluate(parts[0][0])
    return "".join(as_text(scope.evaluate(part)) if is_expression else part for part, is_expression in parts)


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
    return f"{token[1].strip()!r} is not expected at {place}"


def _closing_brace(template: str, start: int) -> int:
    """Index of the `}` that ends the expression at `start`, past nested braces and quoted texts."""
    depth, quote, position = 0, "", start
    while position < len(template):
        character = template[position]
        if quote:
            if character == "\\":
                position += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character == "{":
            depth += 1
        elif character == "}":
            if depth == 0:
                return position
            depth -= 1
        position += 1
    raise ExpressionError("a ${ is not closed by }")


def _in_order(source: str) -> str:
    """The expression with `Scope._in_order` around what each macro walks over: the binding's own order is random."""
    masked = _masked(source)
    inserts: dict[int, str] = {}
    for macro in _MACRO.finditer(masked):
        start = _operand_start(masked, macro.start())
        inserts[start] = inserts.get(start, "") + f"{_ORDERED}("
        inserts[macro.start()] = ")" + inserts.get(macro.start(), "")
    cuts = sorted({0, *inserts})
    pieces = zip(cuts, [*cuts[1:], len(source)], strict=True)
    return "".join(inserts.get(start, "") + source[start:end] for start, end in pieces)


def _masked(source: str) -> str:
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


def _to_json(value: Any, source: str) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionError(f"{source!r} gave {value!r}, which JSON cannot hold")
        return value
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ExpressionError(f"{source!r} gave a map whose keys are not all texts, which JSON cannot hold")
        return {key: _to_json(value[key], source) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_to_json(item, source) for item in value]
    raise ExpressionError(f"{source!r} gave a {type(value).__name__}, which JSON cannot hold")
