"""Files that are there whole or not at all, whoever reads or writes them meanwhile.

Knows paths and bytes; must not know what a file means, nor what to do where the disk refuses.
"""

from __future__ import annotations

import secrets
from pathlib import Path

_RANDOM_BYTES = 4
"""In the name of an unfinished file: several machines may share the folder, so a pid would not be enough."""


def write_whole(path: Path, content: str) -> None:
    """Replace a file: a reader finds the old content or the new, never a part. Makes its folder.

    Args:
        path: The file.
        content: Its text, written as UTF-8.

    Raises:
        OSError: If the disk refuses; what was there before is there still.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Begins with a dot and ends otherwise than the file, so that nobody who lists the folder takes it for one.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(_RANDOM_BYTES)}.partial")
    try:
        partial.write_text(content, encoding="utf-8")
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
