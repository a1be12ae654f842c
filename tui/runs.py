"""The first screen: all runs of the database, followed while they go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.widgets import DataTable, Static

from agenteval.tui.evidence import EvidenceScreen
from agenteval.tui.library import Library, RunRow
from agenteval.tui.pairs import PairsScreen
from agenteval.tui.reading import BACK, EVIDENCE, FILTER, TableScreen
from agenteval.tui.signs import run_state, run_style
from agenteval.tui.table import ColumnSpec, LazyTable
from agenteval.tui.text import count, counted, moment, share, visible


def _episodes(run: RunRow) -> str:
    return f"{run.finished_episodes}/{run.planned_episodes}"


def _rate(run: RunRow) -> str:
    """Share of the graded episodes that passed; the sign says that there are others."""
    return f"{share(run.pass_rate)} ?" if run.not_graded else share(run.pass_rate)


def _divergences(run: RunRow) -> str:
    """Diverged of compared pairs; a dash where nothing was compared."""
    if not run.is_judged or not run.pairs:
        return "-"
    return f"{run.divergences}/{run.pairs}"


COLUMNS: Sequence[ColumnSpec[RunRow]] = (
    ColumnSpec(title="Started", text=lambda run: moment(run.started_at), width=11),
    ColumnSpec(title="Suite", text=lambda run: run.suite, width=12, grows=1, from_width=110),
    ColumnSpec(title="Contract", text=lambda run: run.contract, width=9, grows=1),
    ColumnSpec(title="Model", text=lambda run: run.model, width=11, grows=3),
    ColumnSpec(title="Episodes", text=_episodes, width=8, align_right=True),
    ColumnSpec(title="Passed", text=_rate, width=6, align_right=True),
    ColumnSpec(
        title="Ungraded",
        text=lambda run: count(run.not_graded),
        width=8,
        align_right=True,
        from_width=110,
        style=lambda run: "magenta" if run.not_graded else "",
    ),
    ColumnSpec(title="Diverged", text=_divergences, width=8, align_right=True),
    ColumnSpec(title="Agent", text=lambda run: run.agent, width=9, grows=1, from_width=140),
    ColumnSpec(title="Verdict", text=run_state, width=11, style=run_style),
    ColumnSpec(title="Run", text=lambda run: run.run_id, width=30, from_width=140),
)


class RunsScreen(TableScreen[None, RunRow]):
    """All runs, newest first."""

    BINDINGS: ClassVar[list[BindingType]] = [EVIDENCE, FILTER, BACK]

    def __init__(self, library: Library, *, refresh_s: float) -> None:
        super().__init__(library, LazyTable(COLUMNS, key_of=lambda run: run.run_id), refresh_s=refresh_s)

    def reload(self) -> None:
        """Read the list."""
        self.ask(self.library.runs, self._show)

    def follows(self) -> bool:
        """New runs can appear at any time."""
        return True

    def _show(self, runs: Sequence[RunRow] | None) -> None:
        self.query_one("#heading", Static).update(Text(f"Runs of {visible(str(self.library.path))}"))
        self.show_values(runs or ())

    def words_of(self, value: RunRow) -> str:
        """Everything that the row says."""
        state = run_state(value)
        return f"{value.run_id} {value.suite} {value.contract} {value.model} {value.agent} {state}"

    def status_of(self, shown: int) -> str:
        """How many runs there are, or how to make the first, and whether a share of them says less than it seems."""
        if not shown:
            return "no runs yet; make one: agenteval run SUITE --model MODEL --contract strict"
        live = sum(run.is_live for run in self.values)
        ungraded = sum(run.not_graded for run in self.values)
        still = f", {live} still going" if live else ""
        return f"{counted(shown, 'run')}{still}" + (
            f"; ? {counted(ungraded, 'episode')} not graded" if ungraded else ""
        )

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the pairs of the run."""
        event.stop()
        if (run := self.table.current) is not None:
            self.app.push_screen(PairsScreen(self.library, run, refresh_s=self.refresh_s))

    def action_evidence(self) -> None:
        """Open the evidence of the run."""
        if (run := self.table.current) is not None:
            self.app.push_screen(EvidenceScreen(self.library, run, refresh_s=self.refresh_s))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is nothing behind this screen: back only clears the filter."""
        if action == "back":
            return self.is_mounted and self.filter_box.display
        return super().check_action(action, parameters)

    def leave(self) -> None:
        """Stay: this is the first screen."""
