"""Queries that people type: read-only, and closed to files and the network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from agenteval.errors import QueryError
from agenteval.store.database import open_for_reading, recover


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """A table of values."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def run_query(path: Path, sql: str) -> QueryResult:
    """Run one query on the database.

    Raises:
        QueryError: If it is not SQL, or would write, attach or read anything but the database.
        StoreError: If the database cannot be read.
    """
    recover(path)
    with open_for_reading(path) as connection:
        # Settled before the query is seen, and locked so that the query cannot open them again.
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            result = connection.execute(sql)
            columns = tuple(column[0] for column in result.description or [])
            return QueryResult(columns=columns, rows=result.fetchall())
        except duckdb.Error as error:
            raise QueryError(sql=sql, reason=str(error).strip()) from error
