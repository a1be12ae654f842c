"""A database as one small file to keep and to pass on: its tables as Parquet in a zip, and back.

Repeats that agree to the bit take next to nothing there, where rows lie beside their equals. Views are not in it: they
come with the schema of whoever reads it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

import agenteval
from agenteval.errors import InputError, SchemaVersionError, StoreUnreadableError, StoreUnwritableError
from agenteval.schema import VERSION
from agenteval.store.database import open_for_reading, open_for_writing, quoted, schema_number
from agenteval.store.journal import recover_for_reading

MANIFEST = "agenteval.json"
"""Member that makes a zip an archive of ours."""
_SUFFIX = ".parquet"
_LEVEL = 15
"""Of zstd: an archive is written once and read often."""
_ORDER = {"turns": "turn, task_order, episode_id", "tool_calls": "turn, call, episode_id"}
_ROWS = {
    "turns": "(SELECT t.*, coalesce(e.task || '/' || e.variant, '') AS task_order FROM turns t "
    "LEFT JOIN episodes e USING (episode_id))"
}
"""Table to what is written of it, where that is not the table: turns of one task variant lie beside each other."""
_NOT_DATA = frozenset({"agenteval_schema", "journals"})


def is_archive(path: Path) -> bool:
    """Whether a file is an archive, by what it holds."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return MANIFEST in archive.namelist()


def export_archive(database: Path, archive: Path) -> None:
    """Write a database's tables into an archive.

    Raises:
        InputError: If the archive's file is there already.
        StoreError: If the database cannot be read, or the archive not be written.
    """
    if archive.exists():
        raise InputError(f"{archive} is there already. Name another file, or remove it.")
    recover_for_reading(database)
    try:
        with tempfile.TemporaryDirectory() as folder, open_for_reading(database) as connection:
            names = _tables(connection)
            manifest = {
                "agenteval": agenteval.__version__,
                "schema": schema_number(connection, database),
                "rows": {name: _write(connection, name, Path(folder)) for name in names},
            }
            _zip(archive, Path(folder), names, manifest)
    except OSError as error:
        raise StoreUnwritableError(path=archive, reason=error.strerror or str(error)) from error


def _tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY 1").fetchall()
    return [name for (name,) in rows if name not in _NOT_DATA]


def _write(connection: duckdb.DuckDBPyConnection, table: str, folder: Path) -> int:
    """One table as a Parquet file; gives its rows."""
    order = f"ORDER BY {_ORDER[table]}" if table in _ORDER else ""
    without = "EXCLUDE (task_order)" if table in _ROWS else ""
    connection.execute(
        f"COPY (SELECT * {without} FROM {_ROWS.get(table, table)} {order}) TO {quoted(folder / (table + _SUFFIX))} "
        f"(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {_LEVEL})"
    )
    (found,) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(found[0])


def _zip(archive: Path, folder: Path, names: list[str], manifest: dict[str, Any]) -> None:
    partial = archive.with_name(f".{archive.name}.partial")
    try:
        # Stored, since the members are compressed by themselves.
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as file:
            file.writestr(MANIFEST, json.dumps(manifest, indent=2) + "\n")
            for name in names:
                file.write(folder / f"{name}{_SUFFIX}", f"{name}{_SUFFIX}")
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)


def import_archive(archive: Path, database: Path) -> list[str]:
    """Add an archive's runs to a database, made as needed; gives their ids.

    Raises:
        InputError: If the database holds one of the runs already.
        StoreError: If the archive is none, damaged or newer, or the database cannot be written.
    """
    with _unpacked(archive) as (folder, names), open_for_writing(database) as connection:
        known = [name for name in _tables(connection) if name in names]
        runs = _read(connection, "SELECT run_id FROM read_parquet({file}) ORDER BY started_at", folder / "runs")
        held = {row[0] for row in connection.execute("SELECT run_id FROM runs").fetchall()}
        if held & set(runs):
            raise InputError(
                f"{database} holds the run {sorted(held & set(runs))[0]} of {archive} already, so nothing was added. "
                "Name another database with --db."
            )
        connection.begin()
        for name in known:
            connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM read_parquet({quoted(folder / name)})")
        connection.commit()
    return runs


def opened_archive(archive: Path, folder: Path) -> Path:
    """A database with an archive's content, made once and kept under a folder by the archive's hash.

    Raises:
        StoreError: If the archive is damaged or newer, or the folder cannot be written.
    """
    database = folder / f"{_hash(archive)[:32]}.duckdb"
    if not database.exists():
        # Two commands may open one archive at once: each makes a file of its own, and the last one stays.
        partial = database.with_name(f".{secrets.token_hex(4)}.{database.name}")
        import_archive(archive, partial)
        partial.replace(database)
    return database


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _unpacked(archive: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    """A folder with an archive's tables, each under its bare name; what else a zip may hold stays in it."""
    if not is_archive(archive):
        raise StoreUnreadableError(path=archive, reason="it is no archive of agenteval")
    try:
        with zipfile.ZipFile(archive) as file, tempfile.TemporaryDirectory() as folder:
            manifest = json.loads(file.read(MANIFEST))
            if manifest["schema"] > VERSION:
                raise SchemaVersionError(path=archive, found=manifest["schema"], known=VERSION)
            names = frozenset(manifest["rows"]) & {name.removesuffix(_SUFFIX) for name in file.namelist()}
            for name in names:
                if not name.isidentifier():
                    raise StoreUnreadableError(path=archive, reason=f"{name!r} is no table's name")
                (Path(folder) / name).write_bytes(file.read(f"{name}{_SUFFIX}"))
            yield Path(folder), names
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise StoreUnreadableError(path=archive, reason=f"it is damaged: {error}") from error


def _read(connection: duckdb.DuckDBPyConnection, query: str, file: Path) -> list[str]:
    return [row[0] for row in connection.execute(query.format(file=quoted(file))).fetchall()]
