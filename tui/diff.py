"""Two trajectories side by side, with the place where they part in the middle of the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.box import Box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from agenteval.tui.alignment import Block, Diff, Fact
from agenteval.tui.evidence import EvidenceScreen
from agenteval.tui.library import Library, Pair, PairState, RunRow
from agenteval.tui.reading import BACK, EVIDENCE, NEXT, PREVIOUS, ReadingScreen
from agenteval.tui.signs import MARK_STYLES
from agenteval.tui.text import Excerpt, passed

_LABEL_WIDTH = 11
_DIFFERENT = "reverse bold"
"""Not a colour, so that it shows without any."""
_ONLY_BETWEEN = Box("\n".join(["  │ "] * 8))
"""A line between the columns and none around."""


class BlockView(Static, can_focus=True):
    """One turn: a line while it is folded, else every fact on both sides."""

    def __init__(self, block: Block, *, is_open: bool) -> None:
        super().__init__()
        self.block, self.is_open = block, is_open

    def on_mount(self) -> None:
        """Draw it."""
        self._draw()

    def toggle(self) -> None:
        """Fold or unfold."""
        self.is_open = not self.is_open
        self._draw()

    def _draw(self) -> None:
        self.set_class(not self.is_open, "folded")
        title = _title(self.block, is_open=self.is_open)
        self.update(Group(title, _facts_table(self.block.facts)) if self.is_open else title)


def _title(block: Block, *, is_open: bool) -> Text:
    differs = f"differs in {', '.join(block.differences)}" if block.differences else "agrees"
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{'▾' if is_open else '▸'} ").append(f"{block.mark} ", style=MARK_STYLES[block.mark])
    text.append(f"{block.title:<8}", style="bold")
    if block.is_first_divergence:
        text.append("FIRST DIVERGENCE  ", style="bold")
    text.append(differs)
    if not is_open:
        text.append(f"  {block.gist}")
    return text


def _facts_table(facts: Sequence[Fact]) -> RenderableType:
    table = Table(box=_ONLY_BETWEEN, show_header=False, show_edge=False, expand=True)
    table.add_column(width=_LABEL_WIDTH + 2)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    for fact in facts:
        mark = "≠" if fact.differs else "="
        label = Text.assemble((mark, MARK_STYLES[mark]), f" {fact.label}", no_wrap=True, overflow="ellipsis")
        table.add_row(label, _excerpt(fact.a), _excerpt(fact.b))
    return table


def _excerpt(excerpt: Excerpt) -> Text:
    text = Text(excerpt.before, overflow="fold")
    if excerpt.at:
        text.append("«", style="bold").append(excerpt.at, style=_DIFFERENT).append("»", style="bold")
    return text.append(excerpt.after)


class DiffScreen(ReadingScreen[Pair]):
    """Where two repeats part, and why; gives back the pair that was looked at last."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "fold", "Fold", key_display="enter"),
        Binding("down,j", "down", "Down", show=False),
        Binding("up,k", "up", "Up", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("home,g", "focus_block(0)", "First", show=False),
        Binding("end,G", "focus_block(-1)", "Last", show=False),
        Binding("d", "divergence", "To ≠"),
        NEXT,
        PREVIOUS,
        EVIDENCE,
        BACK,
    ]

    def __init__(self, library: Library, run: RunRow, pairs: Sequence[Pair], pair: Pair, *, refresh_s: float) -> None:
        super().__init__(library, refresh_s=refresh_s)
        self.run, self.pairs, self.pair = run, pairs, pair
        self.diff: Diff | None = None

    def compose(self) -> ComposeResult:
        """Top to bottom."""
        yield Static(id="heading")
        yield VerticalScroll(id="blocks", can_focus=False)
        yield Static(id="status")
        yield Footer(show_command_palette=False, compact=True)

    def reload(self) -> None:
        """Read the two trajectories."""
        pair = self.pair
        self.ask(lambda: (pair, self.library.diff(pair)), self._show)

    async def _show(self, answer: tuple[Pair, Diff] | None) -> None:
        if answer is None or answer[0] is not self.pair:
            return
        self.diff = answer[1]
        self.query_one("#heading", Static).update(_heading(self.pair, self.diff))
        views = [BlockView(block, is_open=place == self.diff.first) for place, block in enumerate(self.diff.blocks)]
        async with self.batch():
            container = self.query_one("#blocks", VerticalScroll)
            await container.remove_children()
            await container.mount_all(views)
        self.say(self._position())
        self.call_after_refresh(self.action_divergence)

    def _position(self) -> str:
        """Which of the diverged pairs this is."""
        diverged = [pair for pair in self.pairs if pair.state is PairState.DIVERGED]
        if self.pair.state is PairState.NOT_COMPARED:
            return "compared just now: the run goes on and is not judged yet"
        if self.pair in diverged:
            return f"diverged pair {diverged.index(self.pair) + 1} of {len(diverged)}"
        return f"{self.pair.state}; {len(diverged)} pairs diverged"

    @property
    def views(self) -> list[BlockView]:
        """The blocks, top to bottom."""
        return list(self.query(BlockView))

    @property
    def _place(self) -> int:
        """Place of the focused block; the first where none is."""
        return next((place for place, view in enumerate(self.views) if view.has_focus), 0)

    def action_divergence(self) -> None:
        """Focus the first divergence, centred; the first turn where there is none."""
        views = self.views
        if self.diff is None or not views:
            return
        view = views[self.diff.first or 0]
        view.focus(scroll_visible=False)
        self._scroller.scroll_to_center(view, animate=False) if self._fits(view) else self._scroller.scroll_to_widget(
            view, animate=False, top=True
        )

    @property
    def _scroller(self) -> VerticalScroll:
        return self.query_one("#blocks", VerticalScroll)

    def _fits(self, view: BlockView) -> bool:
        return view.size.height <= self._scroller.size.height

    def action_focus_block(self, place: int) -> None:
        """Focus a block by its place."""
        if self.views:
            self.views[place].focus()

    def action_fold(self) -> None:
        """Fold or unfold the focused turn."""
        if self.views:
            self.views[self._place].toggle()

    def action_down(self) -> None:
        """Scroll on while the focused turn goes on below, else focus the next."""
        self._step(1)

    def action_up(self) -> None:
        """Scroll back while the focused turn goes on above, else focus the one before."""
        self._step(-1)

    def _step(self, direction: int) -> None:
        views = self.views
        if not views:
            return
        scroller, view = self._scroller, views[self._place]
        beyond = view.region.bottom - scroller.region.bottom if direction > 0 else scroller.region.y - view.region.y
        if beyond > 0 and not self._fits(view):
            scroller.scroll_relative(y=direction * min(beyond, 3), animate=False)
        else:
            views[min(max(self._place + direction, 0), len(views) - 1)].focus()

    def action_page(self, direction: int) -> None:
        """Scroll by a screen."""
        self._scroller.scroll_relative(y=direction * (self._scroller.size.height - 1), animate=False)

    def action_next(self) -> None:
        """Look at the next diverged pair of the list."""
        self._jump(1)

    def action_previous(self) -> None:
        """Look at the diverged pair before this one."""
        self._jump(-1)

    def _jump(self, step: int) -> None:
        here = next((place for place, pair in enumerate(self.pairs) if pair.key == self.pair.key), 0)
        candidates = self.pairs[here + 1 :] if step > 0 else list(reversed(self.pairs[:here]))
        found = next((pair for pair in candidates if pair.state is PairState.DIVERGED), None)
        if found is None:
            self.say("this is the last diverged pair" if step > 0 else "this is the first diverged pair")
            return
        self.pair = found
        self.say("reading…")
        self.reload()

    def action_evidence(self) -> None:
        """Open the evidence of the run."""
        self.app.push_screen(EvidenceScreen(self.library, self.run, refresh_s=self.refresh_s))

    def action_back(self) -> None:
        """Go back to the list, to this pair."""
        self.dismiss(self.pair)


def _heading(pair: Pair, diff: Diff) -> Text:
    """Which pair, what differs and where, and why."""
    mark = "x" if pair.state is PairState.NOT_RUN else "=" if diff.first is None else "≠"
    lines = [
        Text.assemble(
            (pair.label, "bold"),
            f"  repeat {diff.repeat_a} ({passed(pair.passed_a)}) against repeat {diff.repeat_b} "
            f"({passed(pair.passed_b)})",
        ),
        Text.assemble((f"{mark} ", MARK_STYLES[mark]), (diff.divergence, "bold")),
    ]
    if diff.cause is not None:
        lines.append(Text.assemble("cause: ", (diff.cause, "bold")))
    elif pair.state is PairState.NOT_RUN:
        lines.append(Text(f"not run: {pair.cause}"))
    return Text("\n").join(lines)
