"""What is shown of any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.tui.text import (
    Excerpt,
    count,
    excerpt_around,
    logprob,
    margin,
    passed,
    quoted,
    share,
    visible,
    visible_lines,
)


@given(st.text(st.characters(exclude_categories=[])))
def test_shown_text_is_printable_and_reads_back_as_what_it_was(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert shown.encode("raw_unicode_escape").decode("unicode_escape") == text


@given(st.text(), st.integers(min_value=1, max_value=5))
def test_a_limit_is_kept_and_said(text: str, limit: int) -> None:
    shown = visible(text, limit)
    assert shown.endswith("…") == (len(text) > limit) or text.endswith("…")


def test_lines_stay_lines() -> None:
    assert visible_lines("a\n\x1bb", 100) == "a\n\\x1bb"


def test_an_excerpt_holds_the_part_that_differs_and_its_surroundings() -> None:
    assert excerpt_around("0123456789", 5, 6, 3) == Excerpt(before="…34", at="5", after="67…")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "said"), [(None, "unknown"), (0.0, "0 tie"), (0.05, "0.05 near tie"), (2.5, "2.5 confident")]
)
def test_a_margin_has_its_word(value: float | None, said: str) -> None:
    assert margin(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(None, "-"), (0.0, "0%"), (0.001, "1%"), (0.5, "50%"), (0.999, "99%"), (1.0, "100%")]
)
def test_a_share_says_all_or_none_only_where_it_is(value: float | None, said: str) -> None:
    assert share(value) == said


def test_unknown_is_not_zero() -> None:
    assert (count(None), count(0)) == ("unknown", "0")
    assert (passed(None), passed(False), passed(True)) == ("not graded", "failed", "passed")
    assert (logprob(None), quoted(None)) == ("-", "-")


def test_neighbouring_32_bit_logprobs_look_different() -> None:
    assert logprob(-0.6931471824645996) != logprob(-0.6931472420692444)
