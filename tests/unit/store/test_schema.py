"""The schema: golden, since people write SQL against it, and open to any DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
from golden_files import check_golden

from agenteval.schema import MIGRATIONS, VERSION
from agenteval.store import RunWriter
from agenteval.store.database import open_for_writing

from .conftest import make_run

COLUMNS = """
SELECT c.table_name, t.table_type, c.column_name, c.data_type, c.is_nullable
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
ORDER BY t.table_type, c.table_name, c.ordinal_position
"""


def test_tables_views_columns_and_types_are_the_golden_ones(database: Path) -> None:
    with open_for_writing(database) as connection:
        rows = connection.execute(COLUMNS).fetchall()
    shown, last = [], ""
    for table, kind, column, type_, nullable in rows:
        if table != last:
            shown.append(f"{'view' if kind == 'VIEW' else 'table'} {table}")
            last = table
        is_required = kind != "VIEW" and nullable == "NO"
        shown.append(f"    {column} {type_}{' not null' if is_required else ''}")
    check_golden("schema.txt", "\n".join(shown) + "\n")


def test_plain_duckdb_opens_the_file(database: Path) -> None:
    with RunWriter(database, make_run()):
        pass
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.execute("SELECT run_id FROM run_summary").fetchall() == [("run-a",)]


def test_migrations_are_numbered_from_one() -> None:
    assert [migration.number for migration in MIGRATIONS] == list(range(1, VERSION + 1))


def test_opening_twice_migrates_once(database: Path) -> None:
    for _ in range(2):
        with open_for_writing(database) as connection:
            assert connection.execute("SELECT number FROM agenteval_schema ORDER BY 1").fetchall() == [
                (migration.number,) for migration in MIGRATIONS
            ]
