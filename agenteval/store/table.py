"""A table that rows are appended to: its columns and their types, and the way of many rows into it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from agenteval.digest import canonical_json, compact_json
from agenteval.store.lines import Row

MOMENT = pa.timestamp("us", tz="UTC")
TEXT, INT, BOOL, REAL = pa.string(), pa.int32(), pa.bool_(), pa.float64()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table that records are appended to."""

    name: str
    columns: Mapping[str, pa.DataType]
    json_columns: frozenset[str] = frozenset()
    keeps_order: bool = False
    """Whether the keys of its JSON stay in their order: a chat template writes a request's into the prompt."""

    def to_arrow(self, rows: list[Row]) -> pa.Table:
        """Rows as an Arrow table; JSON columns as text, canonical unless the order of keys matters."""
        text = compact_json if self.keeps_order else canonical_json
        arrays = [
            pa.array([text(row[name]) if name in self.json_columns else row[name] for row in rows], type=kind)
            for name, kind in self.columns.items()
        ]
        return pa.table(dict(zip(self.columns, arrays, strict=True)))


def insert(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Append rows to a table, by the names of their columns; row by row it would take a millisecond each.

    Args:
        connection: Open for writing.
        name: Of the table.
        rows: With some or all of its columns.
    """
    columns = ", ".join(f'"{column}"' for column in rows.column_names)
    connection.register("incoming", rows)
    connection.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM incoming")
    connection.unregister("incoming")
