"""The numbers that stand in a text, as a person reads them; knows no checks.

A number may have a sign, a currency sign on either side of it, commas in groups of three, a fraction after a point and
an exponent. Names (`A-17`, `B17`), times (`10:30`), dates (`2026-01-02`) and versions (`1.2.3`) hold none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

CURRENCY_CODES = (
    "USD EUR JPY GBP CNY AUD CAD CHF HKD SGD SEK KRW NOK NZD INR MXN TWD ZAR BRL DKK PLN THB ILS IDR CZK AED TRY HUF "
    "CLP SAR PHP MYR COP RUB RON PEN BHD ARS BGN"
).split()
"""ISO 4217 codes of widely traded currencies: right before a number, they make no name of it."""
_ANY_CASE = regex.IGNORECASE | regex.FULLCASE
_SIGN = r"[-+\u2212\u2013]"
"""A hyphen, a plus, a typographic minus or a dash."""
_MARKS = r"[\s*_`]*+"
"""What may stand between a number and its unit: blanks, and markdown's signs around either."""
_LETTER = r"[\p{Lu}\p{Ll}\p{Lt}]"
"""Of an alphabet with two cases; other scripts write no blank between a word and a number."""
_DIGIT = regex.compile(r"\d")
_CURRENCY = r"(?:\p{Sc}|\L<currencies>)\s?"
_CLOSING = r"[\p{L}\p{N}%°)\]\p{Sc}\-+\u2212\u2013]"
"""What makes a hyphen behind it no sign: the end of a word or number, or another sign."""
_TOKEN = rf"""
    # A word right behind a number is its unit; what follows on a hyphen is the end of a range.
    (?<=\d){_LETTER}\w*+
    # Dates and versions, of three parts or more, and times.
  | {_SIGN}?+\d++([-./])\d++(?:\1\d++)++(?:T[\d:.]++(?:[-+]\d{{2}}:?\d{{2}})?+)?+
  | {_SIGN}?+(?<!\d)\d{{1,2}}:\d\d(?::\d\d(?:\.\d++)?+)?+(?!\d)
  | (?:
      (?P<sign>{_SIGN}(?=(?:{_CURRENCY})?\.?\d)(?:(?<!{_CLOSING}[*_`]*.)|(?<=\d{_SIGN}.)))?+
      (?:{_CURRENCY}(?P<inner_sign>{_SIGN})?+(?=\.?\d)(?<!\d\s?{_CURRENCY}{_SIGN}?))?+
      (?P<digits>
        (?: (?<!\d,)\d{{1,3}}(?:,\d{{3}})++(?!,?\d)(?:\.\d++)?+
          | \d++(?:\.\d++)?+
          | (?<![\p{{L}}\p{{N}}.])\.\d++
        )(?:e[-+]?\d++(?![\d.]))?+
      )
    )
    # Any other word, with all that hangs on it.
  | {_LETTER}\w*+(?:-\w++|(?<=\d)\.\d++)*+
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNumber:
    """A number and where its digits stand."""

    value: float
    """Infinite where the digits are beyond what a float holds."""
    start: int
    """Of the digits, without sign and currency."""
    end: int


def numbers_in(text: str, units: Sequence[str] = ()) -> Iterator[FoundNumber]:
    """The numbers of a text, in order; in time that grows with the text's length.

    Args:
        text: Of any length.
        units: Spellings that, like currency codes, make no name of a number that they stand right before.
    """
    if not _DIGIT.search(text):
        return
    for found in _token(tuple(units)).finditer(text):
        digits = found["digits"]
        if digits is not None:
            is_negative = (found["sign"] or found["inner_sign"] or "+") != "+"
            value = float(digits.replace(",", ""))
            yield FoundNumber(value=-value if is_negative else value, start=found.start("digits"), end=found.end())


def has_unit(text: str, number: FoundNumber, units: Sequence[str]) -> bool:
    """Whether one of the units stands right behind the number or right before it, and no letter goes on with it."""
    before, after = _sides(tuple(units))
    return bool(after.match(text, number.end) or before.match(text, number.start))


def is_near(value: float, number: float, *, tolerance: float) -> bool:
    """Whether a value written in decimal is a number, within a tolerance.

    Whole numbers must be equal; otherwise binary rounding must not fail what is right in decimal.
    """
    is_exact = tolerance == 0 and value.is_integer() and number.is_integer()
    slack = 0.0 if is_exact else 4 * math.ulp(abs(number) + tolerance)
    return abs(value - number) <= tolerance + slack


@functools.lru_cache(maxsize=64)
def _token(units: tuple[str, ...]) -> regex.Pattern[str]:
    names = [name for name in (*CURRENCY_CODES, *units) if name]
    return regex.compile(_TOKEN, regex.IGNORECASE | regex.VERBOSE, currencies=names)


@functools.lru_cache(maxsize=64)
def _sides(units: tuple[str, ...]) -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """What stands before a number with one of the units, and what stands behind it."""
    escaped = [(unit, regex.escape(unit)) for unit in units]
    before = "|".join(rf"(?<!\p{{L}}){part}" if unit[:1].isalpha() else part for unit, part in escaped)
    after = "|".join(rf"{part}(?!\p{{L}})" if unit[-1:].isalpha() else part for unit, part in escaped)
    return (
        regex.compile(rf"(?<=(?:{before}){_MARKS}{_SIGN}?)", _ANY_CASE),
        regex.compile(rf"{_MARKS}(?:{after})", _ANY_CASE),
    )
