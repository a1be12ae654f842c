"""A browser without a window, spoken to over pipes in the DevTools protocol: it says itself what a page asks for.

Source: https://chromedevtools.github.io/devtools-protocol/ (--remote-debugging-pipe: file descriptors 3 and 4).
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

_LIMIT_S = 60.0
"""Longest wait for an answer of the browser, on a slow machine."""
_END = b"\0"
_READ, _WRITE, _ABOVE = 3, 4, 10
"""Descriptors that the browser speaks through, and the lowest that cannot be taken for them."""
_CHUNK = 1 << 16


class Browser:
    """One page at a time."""

    def __init__(self, program: str, folder: Path) -> None:
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        to_browser, from_browser = _pipe(), _pipe()

        def connect() -> None:
            os.dup2(to_browser[0], _READ)
            os.dup2(from_browser[1], _WRITE)

        self._process = subprocess.Popen(
            [program, *words, *quiet, f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=connect,
            pass_fds=(_READ, _WRITE),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._in, self._out = to_browser[1], from_browser[0]
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        pages = self.ask("Target.getTargets")["targetInfos"]
        page = next(info["targetId"] for info in pages if info["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime", "Audits"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._in)
        try:
            self._process.wait(_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; what happens meanwhile is kept in `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + _END)
        answer = self._wait(lambda found: found.get("id") == self._number)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path, *, width: int = 1200, scheme: str = "light", media: str = "") -> None:
        """Load a file as a window of some width and a reader's liking of light or dark have it."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=width < 600
        )
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        if not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self._wait(lambda found: found.get("method") == "Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path: Path) -> bytes:
        """The whole page as PNG, written to a file too."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))
        return path.read_bytes()

    def happened(self, *methods: str) -> list[dict[str, Any]]:
        """Parameters of the events of some kinds since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def _wait(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + _LIMIT_S
        while True:
            while _END in self._buffer:
                text, _, self._buffer = self._buffer.partition(_END)
                found: dict[str, Any] = json.loads(text)
                if "method" in found:
                    self.events.append(found)
                if is_it(found):
                    return found
            ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self._out, _CHUNK) if ready else b""
            assert chunk, "the browser does not answer"
            self._buffer += chunk


def _pipe() -> tuple[int, int]:
    """A pipe whose ends lie above the descriptors that the browser's are put at."""
    low = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for end in low]
    for end in low:
        os.close(end)
    return high[0], high[1]
