"""The report's page as a real browser has it: everything is there, nothing is fetched, model text is only text."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest
from integration.conftest import CommandLine

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIMIT_S = 120.0

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed; with Debian: apt-get install chromium")
    return found


@pytest.fixture
def page(cli: CommandLine, tmp_path: Path) -> Path:
    """A strict run against its control."""
    for contract in ("strict", "default"):
        cli.run(contract, "--limit", "3", "--quiet")
    strict, default = (row["run_id"] for row in cli.sql("select run_id from runs order by started_at"))
    path = tmp_path / "report.html"
    done = cli("report", strict, default, "--html", path)
    assert done.code == 0
    return path


def opened(browser: str, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The browser without a window on a page; what it says on stderr is its console and its faults."""
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", *options, page.as_uri()]
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=True)


class _Text(HTMLParser):
    """The text of a document, and its elements by name."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.elements = "", list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def dom(browser: str, page: Path) -> _Text:
    parser = _Text()
    parser.feed(opened(browser, page, "--dump-dom").stdout)
    return parser


def test_the_page_shows_verdicts_evidence_divergences_and_examples(browser: str, page: Path) -> None:
    shown = dom(browser, page)
    for words in (
        "How much differs",
        "default against strict",
        "cache.mode: disabled against shared",
        "the contract, clause by clause",
        "turns that read from the cache",
        "prompt tokens",
        "To repeat it",
    ):
        assert words in shown.text
    assert shown.elements.count("svg") >= 3
    assert "mark" in shown.elements
    assert "script" not in shown.elements


def test_the_page_asks_for_nothing(browser: str, page: Path) -> None:
    """No address outside of itself is in anything that loads, and the browser refused nothing."""
    text = page.read_text()
    assert not re.findall(r"(?:src|href)=[\"'](?!#)[^\"']*", text)
    assert "@import" not in text
    assert not re.findall(r"url\((?!#)", text)
    assert "Refused to" not in opened(browser, page, "--dump-dom").stderr


@pytest.mark.parametrize("options", [(), ("--blink-settings=preferredColorScheme=0",)], ids=["light", "dark"])
@pytest.mark.parametrize("width", [420, 1200])
def test_the_page_is_painted_at_every_width_and_in_both_schemes(
    browser: str, page: Path, tmp_path: Path, options: tuple[str, ...], width: int
) -> None:
    picture = tmp_path / "page.png"
    opened(browser, page, f"--screenshot={picture}", f"--window-size={width},1500", *options)
    assert picture.stat().st_size > 20_000


def test_what_a_model_writes_is_only_text(browser: str, page: Path, cli: CommandLine) -> None:
    """An element in a model's answer, or in what a tool gave back, is shown and is none of the page's."""
    hostile = "</div></style><script>document.title='taken'</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
    with duckdb.connect(str(cli.db)) as connection:
        connection.execute("UPDATE turns SET output_tokens = list_transform(output_tokens, lambda x: ?)", [hostile])
        connection.execute("UPDATE tool_calls SET result = ?", [hostile])
    strict, default = (row["run_id"] for row in cli.sql("select run_id from runs order by started_at"))
    assert cli("report", strict, default, "--html", page).code == 0
    shown = dom(browser, page)
    assert "document.title='taken'" in shown.text
    assert "script" not in shown.elements
    assert "img" not in shown.elements
    assert "\x1b" not in shown.text
    assert "\u202e" not in shown.text
