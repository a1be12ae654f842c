"""`agenteval new suite`: a small suite to start from."""

from __future__ import annotations

import argparse
import importlib.resources
import re
import shlex
import unicodedata
from pathlib import Path

import yaml

from agenteval.cli.common import emit, say
from agenteval.errors import InputError
from agenteval.log import printable
from agenteval.spec.files import SUITE_FILE

FILES = (SUITE_FILE, "library.yaml")
"""What is written, from the folder of the same files beside this module."""
TASK = "renew-loan"
"""The task of the written suite that shows most."""
_NAME_LINE = "name: new-suite\n"
_LONGEST_NAME = 64


def new_suite(arguments: argparse.Namespace) -> int:
    """Write the files, then say what can be done with them."""
    folder: Path = arguments.folder
    _require_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        path = folder / name
        path.write_text(_text(name, suite_name(folder.resolve())), encoding="utf-8")
        emit(printable(str(path)))
    shown = printable(shlex.quote(str(folder)))
    say(
        f"next      agenteval check {shown}\n"
        f"          agenteval play {shown} {TASK}\n"
        f"          agenteval run {shown} --contract strict"
    )
    return 0


def suite_name(folder: Path) -> str:
    """The last part of a folder's path as a suite's name, which starts with a letter and has no blanks."""
    plain = unicodedata.normalize("NFKD", folder.name).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_]+", "-", plain).strip("-_")
    if not name[:1].isalpha():
        name = f"suite-{name}".rstrip("-")
    return name[:_LONGEST_NAME]


def _require_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        what = "is not empty" if folder.is_dir() else "is no folder"
        raise InputError(f"{folder} {what}, and nothing is overwritten. Name a folder that is absent or empty.")


def _text(file: str, name: str) -> str:
    """One file of the suite; a name that YAML reads as something else, such as `true`, is quoted."""
    text = (importlib.resources.files("agenteval.cli") / "new_suite" / file).read_text(encoding="utf-8")
    written = name if yaml.safe_load(name) == name else f'"{name}"'
    return text.replace(_NAME_LINE, f"name: {written}\n")
