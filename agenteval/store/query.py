"""Queries that people type: read-only, and closed to files and the network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from agenteval.errors import QueryError
from agenteval.schema import VERSION
from agenteval.store.database import open_for_reading, schema_number
from agenteval.store.journal import recover_for_reading

_ALLOWED = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
"""SHOW, DESCRIBE, SUMMARIZE, FROM and WITH are SELECT to DuckDB."""


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
    recover_for_reading(path)
    with open_for_reading(path) as connection:
        # Settled before the query is seen, and locked so that the query cannot open them again.
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        schema = schema_number(connection, path)
        try:
            result = connection.execute(_one_query(connection, sql))
            columns = tuple(column[0] for column in result.description or [])
            return QueryResult(columns=columns, rows=result.fetchall())
        except duckdb.Error as error:
            raise QueryError(sql=sql, reason=str(error).strip(), lacks=_what_it_lacks(schema)) from error


def _what_it_lacks(schema: int) -> str | None:
    """What may be missing in a database that nothing has been written to since its schema was the newest."""
    if schema >= VERSION:
        return None
    return (
        f"The database has schema {schema}, and what came later up to schema {VERSION} is not in it. The next run that "
        "is stored there brings it up to date; until then, ask for what it has."
    )


def _one_query(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(sql=sql, reason=f"it holds {len(statements)} statements; write one")
    if statements[0].type not in _ALLOWED:
        kind = statements[0].type.name
        raise QueryError(sql=sql, reason=f"{kind} is not allowed; only queries are, such as SELECT, SHOW or DESCRIBE")
    return statements[0]
