"""The schema: golden, since people write SQL against it, and open to any DuckDB."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import duckdb
from golden_files import check_golden

from agenteval.audit import clause_verdicts
from agenteval.records import ClauseVerdict, Evidence
from agenteval.schema import MIGRATIONS, VERSION
from agenteval.store import RunWriter, run_query
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


def test_the_view_of_clauses_judges_as_the_audit_does(database: Path) -> None:
    """A released migration is never edited, so the order of verdicts stands in SQL too."""
    every = [found for size in range(1, len(ClauseVerdict) + 1) for found in combinations(ClauseVerdict, size)]
    rows = {
        f"run-{place}": [
            Evidence(run_id=f"run-{place}", clause="cache", fact="f", verdict=verdict, expected="e", observed="o")
            for verdict in found
        ]
        for place, found in enumerate(every)
    }
    for run_id, evidence in rows.items():
        with RunWriter(database, make_run(run_id)) as writer:
            for row in evidence:
                writer.append(row)
    found = dict(run_query(database, "SELECT run_id, verdict FROM clauses").rows)
    assert found == {run_id: clause_verdicts(evidence)["cache"] for run_id, evidence in rows.items()}


def test_migrations_are_numbered_from_one() -> None:
    assert [migration.number for migration in MIGRATIONS] == list(range(1, VERSION + 1))


def test_opening_twice_migrates_once(database: Path) -> None:
    for _ in range(2):
        with open_for_writing(database) as connection:
            assert connection.execute("SELECT number FROM agenteval_schema ORDER BY 1").fetchall() == [
                (migration.number,) for migration in MIGRATIONS
            ]
