"""`agenteval new suite`: a small suite to start from."""

from __future__ import annotations

import argparse
import importlib.resources
import shlex
from pathlib import Path

import yaml

from agenteval.cli.common import emit, say
from agenteval.interchange.names import fitting_name
from agenteval.interchange.writing import check_is_free
from agenteval.log import printable
from agenteval.spec.files import SUITE_FILE

FILES = (SUITE_FILE, "library.yaml")
"""What is written, from the folder of the same files beside this module."""
TASK = "renew-loan"
"""The task of the written suite that shows most."""
_NAME_LINE = "name: new-suite\n"


def new_suite(arguments: argparse.Namespace) -> int:
    """Write the files, then say what can be done with them.

    Raises:
        InputError: If the folder has something in it.
    """
    folder: Path = arguments.folder
    check_is_free(folder)
    suite = fitting_name(folder.resolve().name, prefix="suite")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        path = folder / name
        path.write_text(_text(name, suite), encoding="utf-8")
        emit(printable(str(path)))
    shown = printable(shlex.quote(str(folder)))
    say(
        f"next      agenteval check {shown}\n"
        f"          agenteval play {shown} {TASK}\n"
        f"          agenteval run {shown} --contract strict"
    )
    return 0


def _text(file: str, suite: str) -> str:
    """One file of the suite; a name that YAML reads as something else, such as `true`, is quoted."""
    text = (importlib.resources.files("agenteval.cli") / "new_suite" / file).read_text(encoding="utf-8")
    written = suite if yaml.safe_load(suite) == suite else f'"{suite}"'
    return text.replace(_NAME_LINE, f"name: {written}\n")
