"""The keys and the words, on one screen."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from agenteval.compare import NEAR_TIE_NATS

_HELP = f"""\
Keys
  ↑ ↓ j k         move             enter   open; in a diff: fold, unfold
  g G             top, bottom      esc     back (also backspace)
  pgup pgdn       a page           e       evidence of the run
  n p             next, previous diverged pair
  d               in a diff: back to the first divergence
  /               filter rows: words that must all occur
  t               light or dark    ? help   q quit

Runs → enter → Pairs → enter → Diff
  Diverged 3/17   3 of 17 compared pairs differ; - nothing was compared
  Place 3:42      turn 3, output token 42, both from 0

Levels, loosest first: a divergence has the loosest that differs
  outcome   one repeat passed, the other did not
  tools     other tools were called
  calls     the same tools, other arguments
  tokens    other tokens, the same calls
  logprobs  the same tokens, other probabilities

Signs
  = agrees in every bit   ~ only logprobs differ   ≠ differs
  ✓ kept   ! breached   ? unproven   · not promised   ▸ still going   x failed
  « » the part that differs; \\n \\x1b characters that cannot be shown

Margin: logprob of the chosen token less the runner-up's; below {NEAR_TIE_NATS} near tie
"""


class HelpScreen(ModalScreen[None]):
    """All keys; any of the closing keys leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,question_mark,enter", "dismiss", "Close"),
        Binding("q", "app.quit", "Quit"),
        Binding("j", "scroll('down')", "Down", show=False),
        Binding("k", "scroll('up')", "Up", show=False),
    ]

    def compose(self) -> ComposeResult:
        """One scrollable text."""
        with VerticalScroll(id="help"):
            yield Static(Text(_HELP))

    def action_scroll(self, direction: str) -> None:
        """Move by a line."""
        self.query_one("#help", VerticalScroll).scroll_relative(y=1 if direction == "down" else -1, animate=False)
