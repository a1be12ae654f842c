"""Files are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.files import write_whole


def test_a_file_and_its_folder_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "note.json"
    write_whole(path, "ü")
    assert path.read_bytes() == "ü".encode()


def test_a_file_is_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    for content in ("old", "new"):
        write_whole(path, content)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("note.json", "new")]


def test_what_cannot_be_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("note.json", "old")]
