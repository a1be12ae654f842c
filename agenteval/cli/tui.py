"""`agenteval tui`."""

from __future__ import annotations

import argparse
from pathlib import Path

from agenteval.cli.common import Commands
from agenteval.store import list_runs


def add_commands(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("tui", help="browse runs and where trajectories part", parents=[common])
    parser.add_argument("database", type=Path, metavar="DB", nargs="?", help="the database (default: as --db)")
    parser.set_defaults(command=browse)


def browse(arguments: argparse.Namespace) -> int:
    """Open the browser on a database."""
    path = arguments.database or arguments.db
    # Before the screen is taken over: a missing or foreign file is a plain message.
    list_runs(path)
    from agenteval.tui.app import BrowserApp

    BrowserApp(path).run()
    return 0
