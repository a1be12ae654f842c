"""`agenteval tui`."""

from __future__ import annotations

import argparse
from pathlib import Path


def browse(arguments: argparse.Namespace) -> int:
    """Open the browser on a database."""
    path: Path = arguments.database or arguments.db
    # Imported only here: no other command should pay for Textual.
    from agenteval.tui.app import BrowserApp
    from agenteval.tui.library import Library

    # Before the screen is taken over: a missing or foreign file is a plain message.
    Library(path).check()
    app = BrowserApp(path)
    app.run()
    return app.return_code or 0
