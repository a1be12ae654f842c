"""Golden files: what a person or a machine reads, kept under tests/golden; UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).with_name("golden")


def check_golden(name: str, text: str) -> None:
    """Compare a text with its golden file, or write the file where UPDATE_GOLDEN is set."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"no golden file {path}; write it with UPDATE_GOLDEN=1"
    assert text == path.read_text(encoding="utf-8"), f"{path} differs; if that is right, set UPDATE_GOLDEN=1"
