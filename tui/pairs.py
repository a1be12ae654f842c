"""The pairs of one run: repeats of one sample, those that diverged first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.widgets import DataTable, Static

from agenteval.compare import ORDER
from agenteval.tui.diff import DiffScreen
from agenteval.tui.evidence import EvidenceScreen
from agenteval.tui.library import Library, Pair, PairState, RunRow
from agenteval.tui.reading import BACK, EVIDENCE, FILTER, NEXT, PREVIOUS, TableScreen
from agenteval.tui.signs import pair_state, pair_style, run_state
from agenteval.tui.table import ColumnSpec, LazyTable
from agenteval.tui.text import counted, passed


def _place(pair: Pair) -> str:
    if pair.turn is None:
        return ""
    return f"{pair.turn}" if pair.token is None else f"{pair.turn}:{pair.token}"


def _texts(pair: Pair) -> str:
    return pair.text_a if pair.text_a == pair.text_b else f"{pair.text_a} | {pair.text_b}"


def _passes(pair: Pair) -> str:
    a, b = passed(pair.passed_a), passed(pair.passed_b)
    return a if a == b else f"{a} | {b}"


COLUMNS: Sequence[ColumnSpec[Pair]] = (
    ColumnSpec(title="Level", text=pair_state, width=10, grows=1, style=pair_style),
    ColumnSpec(title="Task", text=lambda pair: pair.label, width=20, grows=2),
    ColumnSpec(title="Reps", text=lambda pair: f"{pair.repeat_a}|{pair.repeat_b}", width=4),
    ColumnSpec(title="Place", text=_place, width=5),
    ColumnSpec(title="Tokens", text=_texts, width=11, grows=4),
    ColumnSpec(title="Cause", text=lambda pair: pair.cause, width=16, grows=4),
    ColumnSpec(title="Result", text=_passes, width=15, from_width=120),
)


class PairsScreen(TableScreen[None, Pair]):
    """Which repeats of a run diverged, worst first."""

    BINDINGS: ClassVar[list[BindingType]] = [NEXT, PREVIOUS, EVIDENCE, FILTER, BACK]

    def __init__(self, library: Library, run: RunRow, *, refresh_s: float) -> None:
        super().__init__(library, LazyTable(COLUMNS, key_of=lambda pair: pair.key), refresh_s=refresh_s)
        self.run = run

    def reload(self) -> None:
        """Read the run again, and its pairs."""
        self.ask(self._read, self._show)

    def _read(self) -> tuple[RunRow, Sequence[Pair]]:
        run = self.library.run(self.run.run_id) or self.run
        return run, self.library.pairs(run)

    def follows(self) -> bool:
        """Until the run has ended."""
        return self.run.is_live

    def _show(self, answer: tuple[RunRow, Sequence[Pair]] | None) -> None:
        if answer is None:
            return
        self.run, pairs = answer
        run = self.run
        heading = (
            f"{run.suite} · {run.contract} · {run.model} · {run.finished_episodes}/{run.planned_episodes} episodes"
            f" · {run_state(run)}"
        )
        if run.message:
            heading += f": {run.message}"
        self.query_one("#heading", Static).update(Text(heading))
        self.show_values(pairs)

    def words_of(self, value: Pair) -> str:
        """Everything that the row says."""
        return f"{value.state} {value.level or ''} {value.label} {_texts(value)} {value.cause} {_passes(value)}"

    def status_of(self, shown: int) -> str:
        """How many pairs there are of each kind."""
        if not shown:
            return self._why_empty()
        levels = Counter(pair.level for pair in self.values)
        states = Counter(pair.state for pair in self.values)
        parts = [f"{levels[level]} {level}" for level in reversed(ORDER) if levels[level]]
        parts += [f"{states[state]} {state}" for state in PairState if state != PairState.DIVERGED and states[state]]
        return f"{counted(shown, 'pair')}: " + ", ".join(parts)

    def _why_empty(self) -> str:
        if self.run.repeats < 2:
            return "this run made each sample once: there is nothing to compare"
        if self.run.is_live:
            return "no second repeat has ended yet"
        return "no second repeat has ended"

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Lay the two trajectories side by side."""
        event.stop()
        pair = self.table.current
        if pair is not None:
            screen = DiffScreen(self.library, self.run, self.table.values, pair, refresh_s=self.refresh_s)
            self.app.push_screen(screen, self._come_back)

    def _come_back(self, pair: Pair | None) -> None:
        """Stand on the pair that was looked at last."""
        if pair is not None:
            self.table.go_to(pair.key)

    def action_next(self) -> None:
        """Go down to the next diverged pair."""
        self._jump(range(self.table.cursor_row + 1, len(self.table.values)))

    def action_previous(self) -> None:
        """Go up to the previous diverged pair."""
        self._jump(range(self.table.cursor_row - 1, -1, -1))

    def _jump(self, places: range) -> None:
        rows = self.table.values
        found = next((place for place in places if rows[place].state is PairState.DIVERGED), None)
        if found is None:
            self.say("no diverged pair further " + ("down" if places.step > 0 else "up"))
        else:
            self.table.go_to_index(found)

    def action_evidence(self) -> None:
        """Open the evidence of the run."""
        self.app.push_screen(EvidenceScreen(self.library, self.run, refresh_s=self.refresh_s))
