"""`agenteval db`: a database as one small file, and back."""

from __future__ import annotations

import argparse

from agenteval.cli.common import emit, say
from agenteval.log import printable
from agenteval.store.archive import export_archive, import_archive


def export(arguments: argparse.Namespace) -> int:
    """Write the database's tables into an archive."""
    export_archive(arguments.db, arguments.file)
    size = arguments.file.stat().st_size
    say(f"archive   {printable(str(arguments.file))}, {size / 1e6:.1f} MB")
    return 0


def import_runs(arguments: argparse.Namespace) -> int:
    """Add an archive's runs to the database, and print their ids."""
    emit("\n".join(import_archive(arguments.file, arguments.db)))
    return 0
