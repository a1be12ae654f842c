"""Queries that people type: one, read-only, and of this database alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.errors import QueryError
from agenteval.store import RunWriter, run_query

from .conftest import make_run, make_turn


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one run and a turn."""
    path = tmp_path_factory.mktemp("query") / "runs.duckdb"
    with RunWriter(path, make_run()) as writer:
        writer.append(make_turn(0))
    return path


@pytest.mark.parametrize(
    ("sql", "columns", "rows"),
    [
        pytest.param("SELECT run_id, model FROM runs", ("run_id", "model"), [("run-a", "model")], id="select"),
        pytest.param("select 1 as a;", ("a",), [(1,)], id="semicolon"),
        pytest.param("-- why\nselect 1 as a; -- so", ("a",), [(1,)], id="comments"),
        pytest.param("FROM runs SELECT suite", ("suite",), [("suite",)], id="from first"),
        pytest.param("SELECT * FROM grades WHERE false LIMIT 1", None, [], id="no rows"),
        pytest.param("WITH a AS (SELECT 2 AS b) SELECT b FROM a", ("b",), [(2,)], id="with"),
        pytest.param("SELECT count(*) AS n FROM turn_tokens", ("n",), [(5,)], id="view"),
        pytest.param("SELECT request->>'model' AS m FROM turns", ("m",), [("model",)], id="JSON"),
    ],
)
def test_query_is_answered(made: Path, sql: str, columns: tuple[str, ...] | None, rows: list[object]) -> None:
    result = run_query(made, sql)
    assert result.rows == rows
    assert columns is None or result.columns == columns


@pytest.mark.parametrize("sql", ["SHOW TABLES", "DESCRIBE runs", "SUMMARIZE runs", "EXPLAIN SELECT 1"])
def test_looking_around_is_allowed(made: Path, sql: str) -> None:
    assert run_query(made, sql).rows


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO journals VALUES ('x', 1)",
        "UPDATE runs SET suite = 'x'",
        "DELETE FROM runs",
        "DROP TABLE runs",
        "CREATE TABLE x (a INTEGER)",
        "CREATE TEMP TABLE x (a INTEGER)",
        "CREATE FUNCTION f() AS 1",
        "EXPLAIN ANALYZE DELETE FROM runs",
        "ATTACH '{folder}/other.duckdb' AS other",
        "DETACH runs",
        "COPY runs TO '{folder}/x.csv'",
        "COPY runs FROM '/etc/passwd'",
        "EXPLAIN ANALYZE COPY runs TO '{folder}/x.csv'",
        "EXPORT DATABASE '{folder}/export'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA threads = 1",
        "PRAGMA database_list",
        "CHECKPOINT",
        "VACUUM",
        "USE memory",
        "CREATE SECRET s (TYPE s3)",
        "BEGIN",
        "PREPARE p AS SELECT 1",
        "CALL pragma_version()",
    ],
)
def test_anything_but_reading_this_database_is_refused(made: Path, tmp_path: Path, sql: str) -> None:
    before = made.read_bytes()
    with pytest.raises(QueryError, match="The query failed"):
        run_query(made, sql.format(folder=tmp_path))
    assert made.read_bytes() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        pytest.param("SELECT 1; SELECT 2", "2 statements", id="two queries"),
        pytest.param("SELECT 1; DROP TABLE runs", "2 statements", id="a query and worse"),
        pytest.param("", "0 statements", id="nothing"),
        pytest.param("-- only this", "0 statements", id="a comment"),
    ],
)
def test_it_is_one_statement(made: Path, sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        run_query(made, sql)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        pytest.param("SELEC 1", "syntax error", id="syntax"),
        pytest.param("SELECT * FROM nowhere", "nowhere does not exist", id="table"),
        pytest.param("SELECT nothing FROM runs", "nothing", id="column"),
        pytest.param("SELECT 'x'::INTEGER", "Could not convert", id="value"),
        pytest.param("SELECT * FROM connection", "does not exist", id="a variable of ours"),
    ],
)
def test_wrong_query_says_why_and_where_the_tables_are(made: Path, sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words) as error:
        run_query(made, sql)
    assert str(error.value).endswith('agenteval sql "show tables"')
