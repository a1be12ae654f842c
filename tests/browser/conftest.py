"""A browser, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from .devtools import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed; with Debian: apt-get install chromium")
    with Browser(program, tmp_path_factory.mktemp("browser")) as opened:
        yield opened
