"""The report's page as a real browser has it: everything is there, nothing is fetched, model text is only text."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_records as made

from agenteval.report.page import report_html

from .devtools import Browser

HOSTILE = (
    "</div></style></svg></title><script>document.title='taken'</script>"
    "<img src='https://x.example/i.png' onerror=\"document.title='taken'\"><link rel=stylesheet href=//x.example/s.css>"
    "<style>@import url(https://x.example/t.css)</style>\x00\x1b[31m\u202e"
)
SCHEMES = ("light", "dark")
WIDTHS = (320, 420, 1200)
FETCHED = ("Network.requestWillBeSent", "Network.webSocketCreated")
REFUSED = ("Audits.issueAdded", "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_html(made.report()), encoding="utf-8")
    return path


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.html"
    path.write_text(report_html(made.hostile(HOSTILE)), encoding="utf-8")
    return path


def asked_for(browser: Browser, page: Path) -> list[str]:
    """Everything that was requested but the page itself."""
    found = [event.get("request", event)["url"] for event in browser.happened(*FETCHED)]
    return [url for url in found if url != page.as_uri()]


def test_the_page_shows_verdicts_evidence_divergences_and_examples(browser: Browser, page: Path) -> None:
    browser.open(page)
    text = browser.evaluate("document.body.textContent")
    for words in (
        "every clause was kept",
        "turns that read from the cache",
        "default against strict",
        "cache.mode: disabled against shared",
        "cached tokens differ: 0 against 16",
        "50% (9-91)",
        "prompt tokens",
        "agenteval run 'a suite' --contract strict",
    ):
        assert words in text
    assert browser.evaluate("document.querySelector('h1').textContent") == "suite: strict, default"
    assert browser.evaluate("[...document.querySelectorAll('.output mark')].map(x => x.textContent)") == ["b", "y"]
    assert browser.evaluate("document.querySelectorAll('svg[role=img][aria-label]').length") == 3
    assert browser.evaluate("document.querySelectorAll('script, link, iframe, img, object, form').length") == 0


def test_verdict_comes_first(browser: Browser, page: Path) -> None:
    browser.open(page, width=420)
    assert browser.evaluate("document.querySelector('.verdict').getBoundingClientRect().bottom < innerHeight / 2")


@pytest.mark.parametrize("which", ["page", "hostile"])
def test_nothing_is_fetched_and_nothing_refused(browser: Browser, which: str, request: pytest.FixtureRequest) -> None:
    """Neither a request, nor one that the page's policy had to stop, nor a word on the console."""
    opened: Path = request.getfixturevalue(which)
    browser.open(opened)
    browser.evaluate("document.querySelectorAll('details').forEach(found => found.open = true)")
    assert browser.evaluate("document.readyState") == "complete"
    assert asked_for(browser, opened) == []
    assert browser.happened(*REFUSED) == []


def test_the_policy_would_stop_a_page_that_asks(browser: Browser, page: Path, tmp_path: Path) -> None:
    """The control of the test above: an element that asks is refused, and seen to be."""
    asking = tmp_path / "asking.html"
    asking.write_text(page.read_text().replace("<h1>", "<img src='https://x.example/i.png'><h1>"))
    browser.open(asking)
    browser.evaluate("1")
    assert any("Content Security Policy" in str(found) for found in browser.happened(*REFUSED))


def test_what_a_model_writes_is_only_text(browser: Browser, hostile: Path) -> None:
    browser.open(hostile)
    text = browser.evaluate("document.body.textContent")
    assert "document.title='taken'" in text
    assert browser.evaluate("document.title") != "taken"
    assert browser.evaluate("document.querySelectorAll('script, img, link').length") == 0
    assert browser.evaluate("document.querySelectorAll('style').length") == 1
    assert not set("\x00\x1b\u202e") & set(text)


@pytest.mark.parametrize("which", ["page", "hostile"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_width_makes_the_page_scroll_sideways(
    browser: Browser, which: str, width: int, request: pytest.FixtureRequest
) -> None:
    """Tables that are wider scroll within their boxes."""
    browser.open(request.getfixturevalue(which), width=width)
    browser.evaluate("document.querySelectorAll('details').forEach(found => found.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pictures_and_text_follow_the_scheme(browser: Browser, page: Path, scheme: str) -> None:
    browser.open(page, scheme=scheme)
    style = "getComputedStyle(document.querySelector('{}')).{}"
    ink, paper = (
        browser.evaluate(style.format("body", "color")),
        browser.evaluate(style.format("body", "backgroundColor")),
    )
    assert browser.evaluate(style.format("svg text", "fill")) == ink
    assert brightness(ink) < brightness(paper) if scheme == "light" else brightness(ink) > brightness(paper)


def test_schemes_and_widths_are_painted_otherwise(browser: Browser, page: Path, tmp_path: Path) -> None:
    pictures = set()
    for scheme in SCHEMES:
        for width in WIDTHS:
            browser.open(page, width=width, scheme=scheme)
            pictures.add(browser.picture(tmp_path / f"{scheme}-{width}.png"))
    assert len(pictures) == len(SCHEMES) * len(WIDTHS)


def test_what_is_folded_is_printed(browser: Browser, page: Path) -> None:
    """On paper nothing can be unfolded, and ink is dark whatever the reader's scheme."""
    browser.open(page, scheme="dark", media="print")
    assert browser.evaluate("document.querySelectorAll('details:not([open])').length") > 0
    assert browser.evaluate("[...document.querySelectorAll('details table')].every(found => found.checkVisibility())")
    assert browser.evaluate("[...document.querySelectorAll('details table')].every(found => found.offsetHeight > 20)")
    assert brightness(browser.evaluate("getComputedStyle(document.body).color")) == 0


def brightness(colour: str) -> int:
    """Of `rgb(1, 2, 3)`."""
    return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))
