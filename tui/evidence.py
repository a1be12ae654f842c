"""The clauses of one run, their verdicts, and every measured fact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import DataTable, Static

from agenteval.tui.library import EvidenceRow, Library, RunRow
from agenteval.tui.reading import BACK, FILTER, TableScreen
from agenteval.tui.signs import clause_sign, clause_state, clause_style, run_state
from agenteval.tui.table import ColumnSpec, LazyTable
from agenteval.tui.text import counted

Numbered = tuple[int, EvidenceRow]
"""Rows have no key of their own: their place is one."""

COLUMNS: Sequence[ColumnSpec[Numbered]] = (
    ColumnSpec(title="Clause", text=lambda item: item[1].clause, width=9),
    ColumnSpec(
        title="Verdict",
        text=lambda item: clause_state(item[1].clause_verdict),
        width=14,
        style=lambda item: clause_style(item[1].clause_verdict),
    ),
    ColumnSpec(
        title="Fact",
        text=lambda item: f"{clause_sign(item[1].verdict)} {item[1].fact}",
        width=24,
        grows=2,
    ),
    ColumnSpec(title="Observed", text=lambda item: item[1].observed, width=20, grows=3),
)


class DetailPane(VerticalScroll):
    """A scrollable text below the table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
    ]


class EvidenceScreen(TableScreen[None, Numbered]):
    """Why each clause of a run counts as kept, breached or unproven."""

    BINDINGS: ClassVar[list[BindingType]] = [FILTER, BACK]

    def __init__(self, library: Library, run: RunRow, *, refresh_s: float) -> None:
        super().__init__(library, LazyTable(COLUMNS, key_of=lambda item: str(item[0])), refresh_s=refresh_s)
        self.run = run

    def compose_below(self) -> ComposeResult:
        """The whole of the fact under the cursor."""
        with DetailPane(id="detail"):
            yield Static(id="fact")

    def reload(self) -> None:
        """Read the run again, and its evidence."""
        self.ask(self._read, self._show)

    def _read(self) -> tuple[RunRow, Sequence[EvidenceRow]]:
        run = self.library.run(self.run.run_id) or self.run
        return run, self.library.evidence(run.run_id)

    def follows(self) -> bool:
        """Until the run has ended."""
        return self.run.is_live

    def _show(self, answer: tuple[RunRow, Sequence[EvidenceRow]] | None) -> None:
        if answer is None:
            return
        self.run, rows = answer
        run = self.run
        heading = f"Evidence · {run.suite} · {run.contract} · {run.model} · {run_state(run)} · {run.run_id}"
        self.query_one("#heading", Static).update(Text(heading))
        self.show_values(list(enumerate(rows)))
        self._show_fact()

    def words_of(self, value: Numbered) -> str:
        """Everything that the row says."""
        row = value[1]
        return f"{row.clause} {row.clause_verdict} {row.verdict} {row.fact} {row.observed} {row.expected}"

    def status_of(self, shown: int) -> str:
        """How many facts there are, or why there are none."""
        if shown:
            clauses = {row.clause for _, row in self.values}
            return f"{counted(shown, 'fact')} about {counted(len(clauses), 'clause')}"
        return "no evidence yet: a run is audited at its end" if self.run.is_live else "this run was never audited"

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the whole fact."""
        event.stop()
        self._show_fact()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Go down to the fact, to scroll it."""
        event.stop()
        self.detail.focus()

    @property
    def detail(self) -> Widget:
        """The pane below the table."""
        return self.query_one("#detail")

    def action_back(self) -> None:
        """From the fact to the table, else as every table."""
        if self.detail.has_focus:
            self.table.focus()
        else:
            super().action_back()

    def _show_fact(self) -> None:
        current = self.table.current
        text = Text("") if current is None else Text("\n").join(_fact_lines(current[1]))
        self.query_one("#fact", Static).update(text)


def _fact_lines(row: EvidenceRow) -> Iterator[Text]:
    yield Text(f"{row.clause}: {row.fact}", style="bold")
    yield Text.assemble("verdict   ", (clause_state(row.verdict), clause_style(row.verdict)))
    yield Text(f"observed  {row.observed}")
    yield Text(f"expected  {row.expected}")
    if row.detail:
        yield Text(f"detail    {row.detail}")
