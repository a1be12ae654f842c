"""Where models live on this machine, and how two processes share that place safely.

Knows paths, locks and free space; knows nothing of what is stored there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from agenteval.models.errors import CacheUnwritableError, DiskFullError
from agenteval.models.progress import Progress

CACHE_VARIABLE = "AGENTEVAL_CACHE"
"""Environment variable that moves the cache."""
FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The disk, or this user's share of it, is used up."""
DISK_ERRNOS = FULL_ERRNOS | {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
"""What the disk, rather than the network, answers."""


def cache_folder(given: Path | None = None) -> Path:
    """The cache in use: the given folder, else $AGENTEVAL_CACHE, else the user's cache folder."""
    if given is not None:
        return given
    if from_environment := os.environ.get(CACHE_VARIABLE):
        return Path(from_environment).expanduser()
    return platformdirs.user_cache_path("agenteval")


@contextmanager
def exclusive(lock_path: Path, *, progress: Progress) -> Iterator[None]:
    """Hold a lock that ends with the process, so that a killed pull blocks nobody.

    Args:
        lock_path: Lock file; it stays on disk, because removing it would let two holders in.
        progress: Told when another process must be waited for.
    """
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    with lock_path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("wait for another pull of the same model", 0, 1)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def disk_errors_translated(folder: Path) -> Iterator[None]:
    """Turn "no space left" and "not writable" into advice.

    Raises:
        DiskFullError: If the disk fills up, or a quota is exceeded, inside the block.
        CacheUnwritableError: If the block may not write there.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL_ERRNOS:
            raise DiskFullError(folder, needed_bytes=None, free_bytes=free_bytes(folder)) from error
        if error.errno in DISK_ERRNOS:
            raise CacheUnwritableError(folder, reason=str(error)) from error
        raise


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write on the folder's disk; the folder need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; 0 if there is none."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
