"""A long table is built as far as someone looks."""

from __future__ import annotations

import asyncio

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from agenteval.tui.table import ColumnSpec, LazyTable

from .builders import until

MANY = [f"row {number}" for number in range(10_000)]


class TableApp(App[None]):
    def compose(self) -> ComposeResult:
        specs: list[ColumnSpec[str]] = [ColumnSpec(title="Name", text=lambda value: value, width=10, grows=1)]
        yield LazyTable(specs, key_of=lambda value: value)

    @property
    def table(self) -> LazyTable[str]:
        return self.query_one(LazyTable)


def in_table(script) -> None:  # type: ignore[no-untyped-def]
    async def main() -> None:
        app = TableApp()
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: bool(app.table.columns))
            app.table.show_values(MANY)
            await pilot.pause()
            await script(app.table, pilot)

    asyncio.run(main())


def test_ten_thousand_rows_start_as_a_few_hundred_and_grow_with_the_cursor() -> None:
    async def script(table: LazyTable[str], pilot: Pilot[None]) -> None:
        assert table.row_count < 500
        built = table.row_count
        for _ in range(15):
            await pilot.press("pagedown")
        assert table.row_count > built
        assert table.current == MANY[table.cursor_row]

    in_table(script)


def test_the_last_of_ten_thousand_rows_is_one_key_away() -> None:
    async def script(table: LazyTable[str], pilot: Pilot[None]) -> None:
        await pilot.press("G")
        await until(pilot, lambda: table.cursor_row == len(MANY) - 1)
        assert table.current == MANY[-1]
        await pilot.press("g")
        assert table.current == MANY[0]

    in_table(script)


def test_the_cursor_stays_on_its_row_when_others_come_and_go() -> None:
    async def script(table: LazyTable[str], pilot: Pilot[None]) -> None:
        table.go_to("row 700")
        assert table.current == "row 700"
        table.show_values(["new", *MANY])
        await pilot.pause()
        assert table.current == "row 700"
        table.show_values(MANY[690:])
        await pilot.pause()
        assert table.current == "row 700"

    in_table(script)
