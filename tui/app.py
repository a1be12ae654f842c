"""The program: one library, a stack of screens, light or dark or without colour."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from agenteval.tui.help import HelpScreen
from agenteval.tui.library import Library
from agenteval.tui.runs import RunsScreen

REFRESH_S = 3.0
"""How often a screen looks for what is new; the writer moves its journal every two seconds."""


class BrowserApp(App[None]):
    """Browse the runs of one database."""

    CSS_PATH = "browser.tcss"
    TITLE = "agenteval"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("t", "light_or_dark", "Light or dark", show=False),
    ]

    def __init__(self, path: Path, *, refresh_s: float = REFRESH_S) -> None:
        # Textual's own answer to NO_COLOR is shades of grey; with the terminal's colours it is none at all.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.library, self.refresh_s = Library(path), refresh_s

    def on_mount(self) -> None:
        """Open the first screen."""
        self.push_screen(RunsScreen(self.library, refresh_s=self.refresh_s))

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen())

    def action_light_or_dark(self) -> None:
        """Change between a light and a dark theme."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"
