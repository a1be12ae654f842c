"""`agenteval models list|pull|digest`."""

from __future__ import annotations

import argparse
import json

from agenteval import models
from agenteval.cli.common import emit
from agenteval.cli.progress import StepLine
from agenteval.columns import table
from agenteval.errors import InputError


def list_models(arguments: argparse.Namespace) -> int:
    """Print the catalogue."""
    listed = models.list_models(cache_dir=models.cache_folder())
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
        emit(json.dumps(rows, indent=2))
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
    emit(table(("name", "license", "size", "state", "description"), rows_shown))
    return 0


def pull_model(arguments: argparse.Namespace) -> int:
    """Fetch a model and print its folder and digest."""
    with StepLine() as progress:
        model = models.pull(arguments.name or models.DEFAULT_MODEL, cache_dir=models.cache_folder(), progress=progress)
    emit(f"{model.folder}\n{model.digest}")
    return 0


def digest_model(arguments: argparse.Namespace) -> int:
    """Print the content hash of a folder."""
    if not arguments.folder.is_dir():
        raise InputError(f"{arguments.folder} is no folder. Name the folder that holds config.json and the weights.")
    emit(models.digest_folder(arguments.folder, cache_dir=models.cache_folder()))
    return 0
