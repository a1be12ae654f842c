"""Which files below a folder patterns name: the same on every system and in every Python.

A name matches in its own case; what starts with a dot is named only by a part that does too; links to folders are not
entered. A folder is looked into only where a pattern leads below it.
"""

from __future__ import annotations

import fnmatch
import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from agenteval.errors import InputError

MAX_ENTRIES = 100_000
"""Files and folders that are looked at for one suite."""
_ANY_FOLDERS = "**"

_Parts = tuple[str, ...]
_Places = frozenset[int]
"""Of a pattern, each part that the next name may match; its length where the path so far matches the whole of it."""


class FilePatternError(InputError):
    """Patterns lead through a folder that cannot be read, or through more files and folders than any suite has."""


def file_pattern_problem(pattern: str) -> str | None:
    """Why a text is no pattern of files below a folder; None where it is one."""
    parts = PurePosixPath(pattern).parts
    if not parts or parts[0] == "/" or ".." in parts or any("**" in part and part != _ANY_FOLDERS for part in parts):
        return f"{pattern!r} is no pattern of files below the suite's folder, such as '*.yaml'"
    if parts[-1] == _ANY_FOLDERS:
        return f"{pattern!r} names folders only; write '{'/'.join([*parts, '*.yaml'])}' for the files in them"
    return None


def matching_files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Every file below a folder that a pattern names, in order of path.

    Raises:
        FilePatternError: If a folder cannot be read, or there are more than `MAX_ENTRIES` files and folders to look at.
    """
    parsed = [PurePosixPath(pattern).parts for pattern in patterns]
    found: list[Path] = []
    left = [(folder, [_opened(parts, (0,)) for parts in parsed])]
    looked_at = 0
    while left:
        current, places = left.pop()
        entries = _entries(current)
        looked_at += len(entries)
        if looked_at > MAX_ENTRIES:
            raise FilePatternError(f"{', '.join(patterns)} leads through more than {MAX_ENTRIES:,} files and folders")
        for entry in entries:
            after = [_after(*state, entry.name) for state in zip(parsed, places, strict=True)]
            if entry.is_dir(follow_symlinks=False):
                if any(after):
                    left.append((current / entry.name, after))
            elif any(map(_is_whole, parsed, after)) and entry.is_file():
                found.append(current / entry.name)
    return sorted(found, key=lambda file: file.relative_to(folder).as_posix())


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(itertools.islice(entries, MAX_ENTRIES + 1))
    except OSError as error:
        raise FilePatternError(f"{folder} cannot be read: {error.strerror}") from error


def _after(parts: _Parts, places: _Places, name: str) -> _Places:
    """Where in a pattern a path stands that goes on with a name; nowhere if it cannot match any more."""
    reached = [
        place if parts[place] == _ANY_FOLDERS else place + 1
        for place in places
        if place < len(parts) and _matches(parts[place], name)
    ]
    return _opened(parts, reached)


def _opened(parts: _Parts, places: Iterable[int]) -> _Places:
    """The places, with those behind each `**`, which may stand for no folder at all."""
    opened = set()
    for place in places:
        opened.add(place)
        while place < len(parts) and parts[place] == _ANY_FOLDERS:
            place += 1
            opened.add(place)
    return frozenset(opened)


def _matches(part: str, name: str) -> bool:
    if name.startswith(".") and not part.startswith("."):
        return False
    return part == _ANY_FOLDERS or fnmatch.fnmatchcase(name, part)


def _is_whole(parts: _Parts, places: _Places) -> bool:
    return len(parts) in places
