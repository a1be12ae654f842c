"""Lock files, right and wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agenteval.digest import canonical_json
from agenteval.errors import LockFileError, StoreUnwritableError
from agenteval.lock import Lock, parse_lock, read_lock, write_lock
from agenteval.lock.files import MAX_FILE_BYTES


def test_a_lock_reads_back_equal(tmp_path: Path, lock: Lock) -> None:
    write_lock(tmp_path / "files" / "a.lock.json", lock)
    assert read_lock(tmp_path / "files" / "a.lock.json") == lock


def test_only_the_lock_is_left_in_its_folder(tmp_path: Path, lock: Lock) -> None:
    write_lock(tmp_path / "a.lock.json", lock)
    assert [path.name for path in tmp_path.iterdir()] == ["a.lock.json"]


def test_equal_locks_have_equal_texts_whatever_the_order_of_keys(lock: Lock) -> None:
    assert parse_lock(canonical_json(lock.as_json()).encode(), origin="x").text() == lock.text()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, lock: Lock) -> None:
    (tmp_path / "files").write_text("")
    with pytest.raises(StoreUnwritableError, match="Name a writable place with --db"):
        write_lock(tmp_path / "files" / "a.lock.json", lock)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "it is no JSON", id="empty"),
        pytest.param(b"lock: 1", "it is no JSON", id="YAML"),
        pytest.param(b"\xff\xfe", "it is no JSON", id="no text"),
        pytest.param(b"[" * 100_000, "it is no JSON", id="nested too deep"),
        pytest.param(b'{"version": 3}', "it has no lock_version", id="foreign JSON"),
        pytest.param(b"[1]", "it has no lock_version", id="a list"),
        pytest.param(b'{"lock_version": "1"}', "it has no lock_version", id="a version that is no number"),
        pytest.param(b'{"lock_version": true}', "it has no lock_version", id="a version that is a truth"),
        pytest.param(b'{"lock_version": 0}', "it has no lock_version", id="a version that never was"),
        pytest.param(
            b'{"lock_version": 2}', "has lock_version 2, and this agenteval knows up to 1. Upgrade", id="newer"
        ),
        pytest.param(b'{"lock_version": 1}', "its fields are wrong: agenteval: Field required; ", id="cut"),
    ],
)
def test_what_is_no_lock_is_named_with_what_to_do(content: bytes, words: str) -> None:
    with pytest.raises(LockFileError) as refused:
        parse_lock(content, origin="a.json")
    assert str(refused.value).startswith("Cannot read a lock from a.json: ")
    assert words in str(refused.value)


def test_an_unknown_field_is_named(lock: Lock) -> None:
    content = json.dumps({**lock.as_json(), "extra": 1}).encode()
    with pytest.raises(LockFileError, match=r"extra: Extra inputs are not permitted\. Take the file as"):
        parse_lock(content, origin="a.json")


def test_a_message_about_a_wrong_field_does_not_repeat_its_value(lock: Lock) -> None:
    content = json.dumps({**lock.as_json(), "agent": ["hush"]}).encode()
    with pytest.raises(LockFileError) as refused:
        parse_lock(content, origin="a.json")
    assert "agent: Input should be a valid string" in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(LockFileError, match=r"there is no such file\. Name a file that `agenteval run` wrote"):
        read_lock(tmp_path / "none.json")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LockFileError, match="it is no regular file"):
        read_lock(tmp_path / "pipe")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(LockFileError, match="it is larger than 16,000,000 bytes"):
        read_lock(path)
