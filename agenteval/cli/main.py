"""The commands, their options, and what an error becomes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import agenteval
from agenteval import log
from agenteval.cli import contracts, database, models, run, tui
from agenteval.errors import AgentevalError

CANNOT_TELL = 2
"""Exit status of every command that could not give its result."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status; errors become one message on stderr."""
    arguments = build_parser().parse_args(argv)
    log.configure(level=arguments.log_level, log_format=arguments.log_format)
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except AgentevalError as error:
        print(f"agenteval: {error}", file=sys.stderr)
        return CANNOT_TELL
    except KeyboardInterrupt:
        print("agenteval: stopped by Ctrl-C; nothing more was done.", file=sys.stderr)
        return CANNOT_TELL
    except BrokenPipeError:
        # The reader of our output has gone (`agenteval runs | head`); Python must not flush into the void at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="agenteval",
        description="Evaluate LLM agents so that the result can be repeated, with proof.",
        epilog="Exit status: 0 kept, 1 breached or diverged, 2 could not tell.",
    )
    parser.add_argument("--version", action="version", version=f"agenteval {agenteval.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    common = _common_options()
    for module in (run, contracts, models, database, tui):
        module.add_commands(commands, common)
    return parser


def _common_options() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--db",
        type=Path,
        default=Path(os.environ.get("AGENTEVAL_DB", "agenteval.duckdb")),
        metavar="PATH",
        help="database of runs (default: agenteval.duckdb here, or AGENTEVAL_DB)",
    )
    common.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="what to log to stderr",
    )
    common.add_argument("--log-format", choices=("text", "json"), default="text", help="how to log")
    return common
