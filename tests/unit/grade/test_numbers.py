"""Which numbers stand in an answer, and when one of them is the number that is asked for."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agenteval.grade.numbers import is_near, numbers_in

from .conftest import check, episode, judge

READ = {
    "plain": ("It is 5 now", [5]),
    "point-at-the-end": ("It is 5.", [5]),
    "dots-before": ("so it is...5", [5]),
    "abbreviation": ("No.5", [5]),
    "parentheses": ("(5)", [5]),
    "about": ("~5", [5]),
    "percent": ("5%", [5]),
    "unit-right-behind": ("5kg", [5]),
    "unit-with-a-digit": ("5m2", [5]),
    "hash": ("#5", [5]),
    "quotes": ('{"total":5}', [5]),
    "script-without-blanks": ("答案是5个", [5]),
    "bold": ("**5**", [5]),
    "underscores": ("_9_", [9]),
    "bold-negative": ("**-5**", [-5]),
    "currency-sign": ("€5", [5]),
    "currency-code": ("USD5", [5]),
    "currency-of-a-country": ("US$5", [5]),
    "minus-before-the-currency": ("-$5", [-5]),
    "minus-behind-the-currency": ("$-5", [-5]),
    "minus-behind-the-code": ("USD-5", [-5]),
    "plus": ("+5", [5]),
    "typographic-minus": ("\u22125", [-5]),
    "dash-as-minus": ("\u20135 °C", [-5]),
    "minus-in-parentheses": ("(-5)", [-5]),
    "bullet": ("- 5", [5]),
    "two-hyphens": ("that is --5", [5]),
    "thousands": ("1,234", [1234]),
    "millions": ("1,234,567.5", [1234567.5]),
    "list-of-two": ("1,2", [1, 2]),
    "list-of-three": ("[1,2,3]", [1, 2, 3]),
    "list-with-blanks": ("5, 6", [5, 6]),
    "groups-of-two": ("12,34,567", [12, 34, 567]),
    "group-too-long": ("1,2345", [1, 2345]),
    "fraction": ("0.25", [0.25]),
    "fraction-alone": (".5 or -.5 or $.5", [0.5, -0.5, 0.5]),
    "exponent-and-unit": ("5e3kg and 5e-3m", [5000, 0.005]),
    "exponent-beyond-all": ("1e1234", [float("inf")]),
    "range-of-negatives": ("-5\u2013-3 and 5\u2013-3", [-5, -3, 5, -3]),
    "exponent": ("2e3 and 1.5E-2", [2000, 0.015]),
    "range": ("3-5", [3, 5]),
    "range-with-a-dash": ("3\u20135", [3, 5]),
    "range-with-dots": ("3..5", [3, 5]),
    "range-with-units": ("3kg-5kg", [3, 5]),
    "range-of-money": ("$3-$5 or 3€-5€", [3, 5, 3, 5]),
    "range-of-shares": ("3%-5%", [3, 5]),
    "share-of-ten": ("5/10", [5, 10]),
    "ratio": ("3:1", [3, 1]),
    "time": ("at 10:30 or 10:30:15", []),
    "times": ("10:30-11:45", []),
    "date": ("on 2026-01-02", []),
    "date-and-time": ("2026-01-02T10:30:00Z", []),
    "date-with-slashes": ("1/2/2026", []),
    "date-with-points": ("2.1.2026", []),
    "version": ("version 1.2.3, or v1.2", []),
    "address": ("192.168.0.1", []),
    "id": ("A-17", []),
    "id-of-several-parts": ("ORD-2026-17-B", []),
    "name": ("shelf B17", []),
    "name-with-an-underscore": ("item_17", []),
    "name-and-number": ("GPT-4 says 3", [3]),
    "digits-of-another-script": ("\u0665", [5]),
}


@pytest.mark.parametrize(("text", "numbers"), READ.values(), ids=READ.keys())
def test_numbers_are_read_as_a_person_reads_them(text: str, numbers: list[float]) -> None:
    assert [found.value for found in numbers_in(text)] == numbers


def test_a_unit_right_before_a_number_makes_no_name_of_it() -> None:
    assert [found.value for found in numbers_in("Rs5")] == []
    assert [found.value for found in numbers_in("Rs5", ["rs"])] == [5]


@pytest.mark.parametrize(
    "answer",
    ["12 units", "**12** units", "**12** **units**", "12 _units_", "`12` units", "**12units**", "units: **12**"],
)
def test_markdown_hides_no_unit(answer: str) -> None:
    wanted = check(kind="answer", number=12, unit=["units", "units:"])
    assert judge(wanted, episode(answer=answer)).passed is True


@settings(deadline=None)
@given(st.integers(-(2**53), 2**53), st.integers(1, 5), st.booleans())
def test_a_neighbour_of_a_whole_number_never_passes(number: int, distance: int, more: bool) -> None:
    neighbour = number + distance if more else number - distance
    assume(abs(neighbour) <= 2**53)
    assert not is_near(float(neighbour), float(number), tolerance=0.0)
    assert is_near(float(number), float(number), tolerance=0.0)


DECIMALS = st.decimals("-1e9", "1e9", places=4)


@settings(deadline=None)
@given(DECIMALS, st.decimals("0", "1e6", places=4), st.decimals("-1", "1", places=3))
def test_rounding_in_binary_never_fails_what_is_right_in_decimal(
    number: Decimal, tolerance: Decimal, share: Decimal
) -> None:
    value = number + tolerance * share
    assert is_near(float(value), float(number), tolerance=float(tolerance))


@settings(deadline=None)
@given(DECIMALS, st.decimals("0", "1e6", places=4), st.decimals("0.0001", "100", places=4))
def test_what_is_farther_than_the_tolerance_never_passes(number: Decimal, tolerance: Decimal, excess: Decimal) -> None:
    assert not is_near(float(number + tolerance + excess), float(number), tolerance=float(tolerance))


@settings(deadline=None)
@given(st.integers(1, 10**9).filter(lambda tenths: tenths % 10), st.integers(1, 3))
def test_what_a_suite_computes_in_binary_passes_as_it_is_written_in_decimal(tenths: int, steps: int) -> None:
    computed = tenths / 10
    for _ in range(steps):
        computed = math.nextafter(computed, math.inf)
    assert is_near(float(f"{tenths // 10}.{tenths % 10}"), computed, tolerance=0.0)


@settings(deadline=None)
@given(st.integers(0, 10**15))
def test_commas_group_in_threes(number: int) -> None:
    assert [found.value for found in numbers_in(f"{number:,} or -{number:,}.5")] == [number, -(number + 0.5)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 99), min_size=2, max_size=6))
def test_a_list_of_small_numbers_is_no_number(numbers: list[int]) -> None:
    assert [found.value for found in numbers_in(",".join(map(str, numbers)))] == numbers


@pytest.mark.parametrize("part", ["*-", "_", "1.", "1-", "1,", "1,234", "9", "a-", "$", "-", "5 ", "USD", "$ ", "1:"])
def test_a_long_answer_is_read_to_its_end(part: str) -> None:
    wanted = check(kind="answer", number=7, unit=["kg"])
    assert judge(wanted, episode(answer=part * (100_000 // len(part)) + " (7 kg)")).passed is True
