"""A table that holds many rows and builds only those that someone looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.widgets import DataTable

Value = TypeVar("Value")

_CHUNK = 250
"""Rows built at once; about 50 ms."""
_AHEAD = 60
"""Rows kept ready below the cursor, more than a tall screen."""
_PADDING = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSpec(Generic[Value]):
    """A column: its title, what it shows of a value, and its share of the width."""

    title: str
    text: Callable[[Value], str]
    """Must give text that is safe to show."""
    width: int
    """Cells, without padding."""
    grows: int = 0
    """Share of the width that is left over."""
    from_width: int = 0
    """Narrowest screen that shows the column."""
    align_right: bool = False
    style: Callable[[Value], str] | None = None
    """Colour that repeats what a sign already says."""


class LazyTable(DataTable[Text], Generic[Value]):
    """Rows of values, filled as the cursor nears the end of what is built; the cursor stays on its row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open"),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
        Binding("g", "scroll_top", "Top", show=False),
        Binding("G", "scroll_bottom", "Bottom", show=False),
    ]

    def __init__(self, specs: Sequence[ColumnSpec[Value]], *, key_of: Callable[[Value], str]) -> None:
        super().__init__(cursor_type="row")
        self._specs, self._key_of = specs, key_of
        self.values: Sequence[Value] = ()
        self._laid_out_for = 0
        self._goes_to_end = False
        # Adding the first row moves the cursor, which asks for more rows.
        self._is_building = False

    @property
    def current(self) -> Value | None:
        """The value under the cursor."""
        return self.values[self.cursor_row] if 0 <= self.cursor_row < len(self.values) else None

    def show_values(self, values: Sequence[Value]) -> None:
        """Show these instead; what changed is redrawn and the cursor stays on its row's key."""
        old, self.values = self.values, values
        if not self._laid_out_for:
            return
        if [self._key_of(value) for value in old] == [self._key_of(value) for value in values]:
            for index in range(self.row_count):
                if old[index] != values[index]:
                    self._update_row(index)
        else:
            self._rebuild(self._key_of(old[self.cursor_row]) if self.cursor_row < len(old) else None)

    def go_to(self, key: str) -> None:
        """Put the cursor on a row, building the rows before it."""
        index = next((place for place, value in enumerate(self.values) if self._key_of(value) == key), None)
        if index is not None:
            self.go_to_index(index)

    def go_to_index(self, index: int) -> None:
        """Put the cursor on a row by its place."""
        self._build_until(index + _AHEAD)
        self.move_cursor(row=index)

    def on_resize(self, event: events.Resize) -> None:
        """Lay the columns out again where the width has changed."""
        if event.size.width != self._laid_out_for:
            current = self.current
            self._laid_out_for = event.size.width
            self._rebuild(None if current is None else self._key_of(current))

    def watch_cursor_coordinate(self, old: Coordinate, new: Coordinate) -> None:
        """Keep rows ready below the cursor."""
        super().watch_cursor_coordinate(old, new)
        self._build_until(new.row + _AHEAD)

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Keep rows ready below the part that is seen."""
        super().watch_scroll_y(old, new)
        self._build_until(int(new) + self.size.height + _AHEAD)

    def action_scroll_bottom(self) -> None:
        """Go to the last row; a long table is built in steps, so that keys stay live meanwhile."""
        self._goes_to_end = True
        self._step_to_end()

    def action_cursor_up(self) -> None:
        """Move up, and stop going to the end."""
        self._goes_to_end = False
        super().action_cursor_up()

    def action_scroll_top(self) -> None:
        """Go to the first row, and stop going to the end."""
        self._goes_to_end = False
        super().action_scroll_top()

    def _step_to_end(self) -> None:
        if not self._goes_to_end:
            return
        if self.row_count < len(self.values):
            self._build_until(self.row_count + _CHUNK)
            self.call_after_refresh(self._step_to_end)
        else:
            self._goes_to_end = False
            super().action_scroll_bottom()

    def _rebuild(self, current_key: str | None) -> None:
        self._goes_to_end = False
        self.clear(columns=True)
        shown = [spec for spec in self._specs if spec.from_width <= self._laid_out_for]
        free = self._laid_out_for - 1 - sum(spec.width + _PADDING for spec in shown)
        parts = sum(spec.grows for spec in shown) or 1
        for spec in shown:
            title = Text(spec.title, justify="right" if spec.align_right else "left")
            width = spec.width + max(0, free) * spec.grows // parts
            self.add_column(title, width=width, key=spec.title)
        self._build_until(_AHEAD)
        if current_key is not None:
            self.go_to(current_key)

    def _build_until(self, count: int) -> None:
        if self._is_building or not self.columns or self.row_count >= min(count, len(self.values)):
            return
        goal = min(max(count, self.row_count + _CHUNK), len(self.values))
        self._is_building = True
        try:
            for index in range(self.row_count, goal):
                value = self.values[index]
                self.add_row(*(self._cell(spec, value) for spec in self._shown()), key=self._key_of(value))
        finally:
            self._is_building = False

    def _update_row(self, index: int) -> None:
        for column, spec in enumerate(self._shown()):
            self.update_cell_at(Coordinate(index, column), self._cell(spec, self.values[index]))

    def _shown(self) -> list[ColumnSpec[Value]]:
        return [spec for spec in self._specs if spec.from_width <= self._laid_out_for]

    def _cell(self, spec: ColumnSpec[Value], value: Value) -> Text:
        style: Any = spec.style(value) if spec.style else ""
        justify: Any = "right" if spec.align_right else "left"
        return Text(spec.text(value), style=style, no_wrap=True, overflow="ellipsis", justify=justify, end="")
