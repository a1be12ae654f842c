"""What all screens share: reading in a worker, saying what is waited for, filtering a table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Input, Static
from textual.worker import get_current_worker

from agenteval.errors import AgentevalError
from agenteval.tui.table import LazyTable
from agenteval.tui.text import visible

if TYPE_CHECKING:
    from agenteval.tui.library import Library

T = TypeVar("T")
Value = TypeVar("Value")

# Each screen lists its own keys, in the order in which the footer shows them.
NEXT = Binding("n", "next", "Next ≠")
PREVIOUS = Binding("p", "previous", "Prev ≠")
EVIDENCE = Binding("e", "evidence", "Evidence")
FILTER = Binding("slash", "filter", "Filter", key_display="/")
BACK = Binding("escape,backspace", "back", "Back", key_display="esc")


class Answer(Message):
    """A read has ended; `show` puts it on the screen."""

    def __init__(self, show: Callable[[], Awaitable[None] | None]) -> None:
        self.show = show
        super().__init__()


class Trouble(Message):
    """A read has failed, or waits for the database."""

    def __init__(self, text: str, *, is_over: bool) -> None:
        self.text, self.is_over = text, is_over
        super().__init__()


class ReadingScreen(Screen[T], Generic[T]):
    """Reads the library in a thread, never where keys are handled."""

    def __init__(self, library: Library, *, refresh_s: float) -> None:
        super().__init__()
        self.library, self.refresh_s = library, refresh_s
        self._is_reading = False
        self.is_loaded = False

    def on_mount(self) -> None:
        """Read at once and then again while there is something to follow."""
        self.say("reading…")
        self.reload()
        self.set_interval(self.refresh_s, self._tick)

    def on_screen_resume(self) -> None:
        """Catch up with what happened behind another screen."""
        if self.is_loaded:
            self._tick()

    def _tick(self) -> None:
        if self.is_current and not self._is_reading and self.follows():
            self.reload()

    def reload(self) -> None:
        """Start the screen's read."""
        raise NotImplementedError

    def follows(self) -> bool:
        """Whether what is shown can still change."""
        return False

    def say(self, text: str) -> None:
        """Put one line above the keys."""
        self.query_one("#status", Static).update(Text(text, no_wrap=True, overflow="ellipsis"))

    def action_back(self) -> None:
        """Leave the screen."""
        self.dismiss()

    def ask(self, question: Callable[[], Any], show: Callable[[Any], Awaitable[None] | None]) -> None:
        """Ask the library in a thread, then show the answer; a later question replaces an earlier one."""
        self._is_reading = True
        self._ask(question, show)

    @work(thread=True, exclusive=True, group="read")
    def _ask(self, question: Callable[[], Any], show: Callable[[Any], Awaitable[None] | None]) -> None:
        worker = get_current_worker()
        try:
            value = self.library.when_free(
                question,
                waiting=self._wait_for,
                is_cancelled=lambda: worker.is_cancelled,
            )
        except AgentevalError as error:
            self.post_message(Trouble(str(error), is_over=True))
            return
        if not worker.is_cancelled:
            self.post_message(Answer(lambda: show(value)))

    def _wait_for(self, holder: str) -> None:
        self.post_message(Trouble(f"waiting: the database is locked {holder}", is_over=False))

    async def on_answer(self, answer: Answer) -> None:
        """Show what was read."""
        self._is_reading = False
        self.is_loaded = True
        shown = answer.show()
        if shown is not None:
            await shown

    def on_trouble(self, trouble: Trouble) -> None:
        """Say what went wrong or is waited for; what was read before stays."""
        self._is_reading = self._is_reading and not trouble.is_over
        self.say(visible(trouble.text))


class TableScreen(ReadingScreen[T], Generic[T, Value]):
    """A heading, a table of values that can be filtered, and a status line."""

    def __init__(self, library: Library, table: LazyTable[Value], *, refresh_s: float) -> None:
        super().__init__(library, refresh_s=refresh_s)
        self.table = table
        self.values: Sequence[Value] = ()

    def compose(self) -> ComposeResult:
        """Top to bottom."""
        yield Static(id="heading")
        yield self.table
        yield from self.compose_below()
        yield Input(placeholder="words that a row must contain; enter keeps, escape clears", id="filter")
        yield Static(id="status")
        yield Footer(show_command_palette=False, compact=True)

    def compose_below(self) -> ComposeResult:
        """What stands between the table and the status line."""
        yield from ()

    def words_of(self, value: Value) -> str:
        """Text of a value that the filter searches."""
        raise NotImplementedError

    def status_of(self, shown: int) -> str:
        """The status line when all is well."""
        raise NotImplementedError

    def show_values(self, values: Sequence[Value]) -> None:
        """Take what was read and show what passes the filter."""
        self.values = values
        self._show_filtered()

    @property
    def filter_box(self) -> Input:
        """Where the filter is typed."""
        return self.query_one("#filter", Input)

    def _show_filtered(self) -> None:
        words = self.filter_box.value.casefold().split()
        shown = (
            [value for value in self.values if all(word in self.words_of(value).casefold() for word in words)]
            if words
            else self.values
        )
        self.table.show_values(shown)
        self.say(f"{len(shown)} of {len(self.values)} match" if words else self.status_of(len(shown)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While the filter is typed, its key is a letter like others."""
        if action == "filter":
            return self.is_mounted and not self.filter_box.has_focus
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        """Open the filter box."""
        self.filter_box.display = True
        self.filter_box.focus()

    def on_input_changed(self) -> None:
        """Filter while typing."""
        if self.is_loaded:
            self._show_filtered()

    def on_input_submitted(self) -> None:
        """Keep the filter and go back to the rows."""
        self.filter_box.display = bool(self.filter_box.value)
        self.table.focus()

    def action_back(self) -> None:
        """Clear the filter, or leave the screen."""
        if self.filter_box.display:
            self.filter_box.value = ""
            self.filter_box.display = False
            self.table.focus()
        else:
            self.leave()

    def leave(self) -> None:
        """Leave the screen."""
        self.dismiss()
