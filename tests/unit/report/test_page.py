"""The page of a report: alone in the world, readable by contrast, and safe whatever models and tools wrote."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import report_records as made
from page_text import Page

import agenteval.report.page
from agenteval.compare import rate
from agenteval.records import Level
from agenteval.report.page import Report, report_html
from agenteval.report.page.plots import bars_plot, rates_plot

HOSTILE = (
    "</div></style></svg><script>alert(1)</script><img src=//x.example onerror=alert(1)>\x00\x1b[31m\u202e\ud800&lt;"
)
CONTRAST = 4.5
"""Least ratio for text of normal size. Source: WCAG 2.2, success criterion 1.4.3."""


def html(report: Report) -> str:
    return report_html(report)


def test_ids_are_of_one_element_each_and_links_stay_in_the_page() -> None:
    page = Page(html(made.report()))
    assert len(page.ids) == len(set(page.ids))
    assert page.links
    assert all(link.removeprefix("#") in page.ids and link.startswith("#") for link in page.links)


def test_no_address_is_in_the_page() -> None:
    text = html(made.report())
    assert "//" not in text.replace("/* ", "")
    assert not re.search(r"@import|url\((?!#)|<link|<script|<base", text)


@pytest.mark.parametrize("text", [HOSTILE, "\x00", "{{ 1 }}{% raw %}", "'\"><b>"], ids=ascii)
def test_what_is_written_by_others_is_only_text(text: str) -> None:
    plain, hostile = html(made.report()), html(made.hostile(text))
    assert sorted(set(Page(hostile).elements)) == sorted(set(Page(plain).elements))
    hostile.encode()
    assert all(character.isprintable() or character == "\n" for character in hostile)


def test_equal_reports_give_equal_bytes() -> None:
    assert html(made.report()) == html(made.report())


def test_a_run_without_end_is_told() -> None:
    report = made.report()
    part = replace(report.runs[0], summary=replace(report.runs[0].summary, end=None), clauses=(), elapsed_s=None)
    text = Page(html(Report(runs=(part,), comparisons=()))).text
    assert "… none: it is still running, or its runner died" in text
    assert "The run was not judged." in text


def test_every_picture_has_words_and_a_table() -> None:
    page = html(made.report())
    pictures = re.findall(r"<svg [^>]*>", page)
    assert len(pictures) == 3
    for picture in pictures:
        assert re.search(r'role="img" aria-label="[^"]{20,}"', picture)
    for caption in ("First turn that differs", "Margin there"):
        assert f"<caption>{caption}</caption>" in page


def test_pictures_have_no_colour_of_their_own() -> None:
    """Their colours are the page's variables, so that they follow its scheme."""
    rates = {level: rate(1, 4) for level in Level}
    for svg in (
        rates_plot([("x", rates), ("y", rates)], alternative="words"),
        bars_plot([("0", 2), ("1", 0)], name="bars", label="turn", alternative="words"),
    ):
        assert not re.search(r"#[0-9a-fA-F]{6}\b", svg)
        assert "var(--accent)" in svg
        assert "font-family" not in svg


def test_many_bars_have_few_labels() -> None:
    svg = bars_plot([(str(turn), 1) for turn in range(300)], name="bars", label="turn", alternative="words")
    assert svg.count("<text") < 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(scheme: str) -> None:
    style = (Path(agenteval.report.page.__file__).parent / "style.css.j2").read_text()
    blocks = re.findall(r":root \{[^}]*\}", style)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", blocks[scheme == "dark"]))
    pairs = [(name, ground) for name in ("ink", "soft", "accent", "good", "bad", "open") for ground in ("paper", "box")]
    for name, ground in [*pairs, ("mark-ink", "mark")]:
        assert contrast(colours[name], colours[ground]) >= CONTRAST, (name, ground)


def contrast(a: str, b: str) -> float:
    """Source: WCAG 2.2, definitions of contrast ratio and relative luminance."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
