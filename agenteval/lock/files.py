"""Lock files: written whole or not at all, and read with a clear word about what is no lock."""

from __future__ import annotations

from pathlib import Path

import pydantic
import pydantic_core

from agenteval.errors import LockFileError, StoreUnwritableError
from agenteval.files import write_whole
from agenteval.loading import wrong_fields
from agenteval.lock.sections import LOCK_VERSION, Lock

MAX_FILE_BYTES = 16_000_000
"""A larger file is refused unread; the largest contract and environment come nowhere near it."""
_NAME_A_LOCK = "Name a file that `agenteval run` wrote (*.lock.json), or a run."


def lock_path(folder: Path, run_id: str) -> Path:
    """Where the lock of a run stands, in the folder of its database's files."""
    return folder / f"{run_id}.lock.json"


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock's file, whole or not at all.

    Raises:
        StoreUnwritableError: If the disk refuses.
    """
    try:
        write_whole(path, lock.text())
    except OSError as error:
        raise StoreUnwritableError(path=path, reason=str(error)) from error


def read_lock(path: Path) -> Lock:
    """Read a lock's file.

    Raises:
        LockFileError: If it is missing, too large, no lock, or of a newer agenteval.
    """
    if not path.is_file():
        reason = "it is no regular file" if path.exists() else "there is no such file"
        raise LockFileError(origin=str(path), reason=reason, advice=_NAME_A_LOCK)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        advice = "Make it readable, or name another file."
        raise LockFileError(origin=str(path), reason=str(error.strerror), advice=advice) from error
    if len(content) > MAX_FILE_BYTES:
        reason = f"it is larger than {MAX_FILE_BYTES:,} bytes"
        raise LockFileError(origin=str(path), reason=reason, advice=_NAME_A_LOCK)
    return parse_lock(content, origin=str(path))


def parse_lock(content: bytes, *, origin: str) -> Lock:
    """A lock from its JSON.

    Args:
        content: The JSON text, as UTF-8.
        origin: The file or run that it is from, for messages.

    Raises:
        LockFileError: If it is no lock, or of a newer agenteval.
    """
    try:
        value = pydantic_core.from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise LockFileError(origin=origin, reason=f"it is no JSON ({error})", advice=_NAME_A_LOCK) from error
    version = value.get("lock_version") if isinstance(value, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise LockFileError(origin=origin, reason="it has no lock_version", advice=_NAME_A_LOCK)
    if version > LOCK_VERSION:
        reason = f"it has lock_version {version}, and this agenteval knows up to {LOCK_VERSION}"
        raise LockFileError(origin=origin, reason=reason, advice="Upgrade agenteval, or name another lock.")
    try:
        return Lock.model_validate_json(content)
    except pydantic.ValidationError as error:
        advice = "Take the file as `agenteval run` wrote it, from a copy for instance."
        reason = f"its fields are wrong: {wrong_fields(error)}"
        raise LockFileError(origin=origin, reason=reason, advice=advice) from error
