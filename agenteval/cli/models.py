"""`agenteval models list|pull|digest`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from agenteval import models
from agenteval.cli.common import Commands, cache_dir, table
from agenteval.cli.progress import StepLine
from agenteval.errors import InputError


def add_commands(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser("models", help="list, fetch or hash models", parents=[common])
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the catalogue, and what is here", parents=[common])
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(command=list_models)
    pull = actions.add_parser("pull", help="fetch a model and verify it", parents=[common])
    pull.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        default=models.DEFAULT_MODEL,
        help="catalogue name or org/name[@revision]",
    )
    pull.set_defaults(command=pull_model)
    digest = actions.add_parser("digest", help="content hash of a local model", parents=[common])
    digest.add_argument("folder", type=Path, metavar="FOLDER")
    digest.set_defaults(command=digest_model)


def list_models(arguments: argparse.Namespace) -> int:
    """Print the catalogue."""
    listed = models.list_models(cache_dir=cache_dir())
    if arguments.json:
        rows = [
            {
                "name": item.entry.name,
                "license": item.entry.license,
                "size_bytes": item.size_bytes,
                "digest": item.digest,
                "pinned_digest": item.entry.digest,
                "folder": None if item.folder is None else str(item.folder),
            }
            for item in listed
        ]
        print(json.dumps(rows, indent=2))
        return 0
    rows_shown = [
        (
            item.entry.name,
            item.entry.license,
            f"{item.size_bytes / 1e9:.1f} GB",
            "here" if item.digest == item.entry.digest else "damaged" if item.folder else "not pulled",
            item.entry.description,
        )
        for item in listed
    ]
    print(table(("name", "license", "size", "state", "description"), rows_shown))
    return 0


def pull_model(arguments: argparse.Namespace) -> int:
    """Fetch a model and print its folder and digest."""
    with StepLine() as progress:
        model = models.pull(arguments.name, cache_dir=cache_dir(), progress=progress)
    print(f"{model.folder}\n{model.digest}")
    return 0


def digest_model(arguments: argparse.Namespace) -> int:
    """Print the content hash of a folder."""
    if not arguments.folder.is_dir():
        raise InputError(f"{arguments.folder} is no folder. Name the folder that holds config.json and the weights.")
    print(models.digest_folder(arguments.folder, cache_dir=cache_dir()))
    return 0
