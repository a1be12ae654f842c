"""A glance at the database: what it is, without loading what dead runners left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agenteval.store.database import open_for_reading, schema_number


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    """What stands in a database."""

    schema: int
    """Number of its last migration; 0 for an empty file."""
    runs: int
    """Runs, however they ended."""


def database_facts(path: Path, *, wait_s: float) -> DatabaseFacts:
    """Open the database read-only for a moment and count its runs.

    Raises:
        StoreUnreadableError: If it is missing, damaged or something else.
        StoreLockedError: If another process writes for longer than `wait_s`.
        SchemaVersionError: If a newer agenteval wrote it.
    """
    with open_for_reading(path, wait_s=wait_s) as connection:
        schema = schema_number(connection, path)
        found = connection.execute("SELECT count(*) FROM runs").fetchone() if schema else None
    return DatabaseFacts(schema=schema, runs=0 if found is None else int(found[0]))
