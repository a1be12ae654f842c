"""The report for a pull request: short, and nothing in it that a model wrote acts upon the forge."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import report_records as made

from agenteval.report.markdown import report_markdown
from agenteval.report.page import Report

COMMENT = 65_536
"""Characters that a comment may have at the forge that allows the fewest."""


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |",
        "`x` **y** [z](https://x.example) ![i](//x.example) www.x.example",
        "</details></code><img src=x>",
        "line\n\n# head\n- item",
        "$x^2$ ~~s~~ &lt;",
    ],
    ids=ascii,
)
def test_marks_in_what_others_wrote_are_escaped(text: str) -> None:
    found = report_markdown(made.hostile(text))
    bare = re.sub(r"\\[\\`*_{}\[\]<>|~!&$:.]", "", found)
    own = re.sub(r"\\[\\`*_{}\[\]<>|~!&$:.]", "", report_markdown(made.report()))
    for mark in "`*[]<>|~&$":
        assert bare.count(mark) == own.count(mark) or mark == "&", mark
    assert len(bare.splitlines()) == len(own.splitlines())
    assert "://" not in bare
    assert "www." not in bare


def test_nobody_is_called() -> None:
    """A forge tells those whose name follows an @, escaped or not, but looks for none in code."""
    outside = re.sub(r"<code>.*?</code>", "", report_markdown(made.hostile("@someone #12")))
    assert not re.search(r"@\w|#\d", outside.replace("&#8203;", "\u200b"))


def test_it_is_short_whatever_was_written() -> None:
    one = made.hostile("x" * 100_000)
    many = Report(runs=one.runs, comparisons=one.comparisons * 16)
    assert len(report_markdown(many)) < COMMENT


def test_a_blank_that_differs_can_be_seen() -> None:
    report = made.report()
    part = report.comparisons[0]
    example = part.examples[0]
    assert example.sides is not None
    side = replace(example.sides[0], output=replace(example.sides[0].output, differing=" "))
    shown = replace(part, examples=(replace(example, sides=(side, example.sides[1])),))
    assert "<kbd>␣</kbd>" in report_markdown(replace(report, comparisons=(shown,)))


def test_every_row_of_a_table_is_as_wide_as_its_head() -> None:
    blocks = re.findall(r"(?:^\|.*\n)+", report_markdown(made.hostile("a|b")), re.MULTILINE)
    assert len(blocks) == 3
    for block in blocks:
        assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1
