"""The installed engine's facts: asked of its own interpreter, kept, and asked again when it changes."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from agenteval.errors import EngineNotFoundError
from agenteval.server import read_engine_facts


@pytest.fixture
def installed(tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the stand-in that a test may change."""
    folder = tmp_path / "site"
    shutil.copytree(stand_in, folder, ignore=shutil.ignore_patterns("__pycache__"))
    # A real torch would take seconds to import.
    (folder / "torch.py").write_text("raise ModuleNotFoundError('no torch here')")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder / "vllm"


def break_reports(installed: Path) -> None:
    """From now on, whoever imports vllm fails; finding it does not."""
    stamp = (installed / "__init__.py").stat()
    (installed / "platforms.py").write_text("raise RuntimeError('asked again')")
    os.utime(installed / "__init__.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def test_facts_are_what_the_engines_interpreter_reports(tmp_path: Path, installed: Path) -> None:
    facts = read_engine_facts(tmp_path / "cache")
    assert (facts.vllm_version, facts.device, facts.python) == ("0.32.0", "cpu", Path(sys.executable))
    assert {"--max-num-seqs", "--no-enable-prefix-caching"} <= facts.flags
    assert facts.cpus == tuple(sorted(os.sched_getaffinity(0)))


def test_second_reading_asks_nobody(tmp_path: Path, installed: Path) -> None:
    first = read_engine_facts(tmp_path / "cache")
    break_reports(installed)
    assert read_engine_facts(tmp_path / "cache") == first


@pytest.mark.parametrize(
    "kept", ["", "[]", "{}", '{"vllm_version": '], ids=["empty", "no object", "no facts", "cut off"]
)
def test_damaged_cache_is_read_anew(tmp_path: Path, installed: Path, kept: str) -> None:
    first = read_engine_facts(tmp_path / "cache")
    for path in (tmp_path / "cache/engines").iterdir():
        path.write_text(kept)
    assert read_engine_facts(tmp_path / "cache") == first


def test_changed_installation_is_read_anew(tmp_path: Path, installed: Path) -> None:
    read_engine_facts(tmp_path / "cache")
    (installed / "__init__.py").write_text('__version__ = "0.33.0"\n')
    assert read_engine_facts(tmp_path / "cache").vllm_version == "0.33.0"


def test_cache_that_cannot_be_written_costs_no_result(tmp_path: Path, installed: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert read_engine_facts(tmp_path / "cache").vllm_version == "0.32.0"


def test_missing_vllm_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Isolated, so that whatever vllm the tests' own environment has is not found either.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    with pytest.raises(EngineNotFoundError, match="it has no package vllm"):
        read_engine_facts(tmp_path / "cache", python)


def test_vllm_that_cannot_be_imported_is_named_with_its_error(tmp_path: Path, installed: Path) -> None:
    break_reports(installed)
    with pytest.raises(EngineNotFoundError, match="RuntimeError: asked again"):
        read_engine_facts(tmp_path / "cache")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param("#!/bin/sh\necho broken >&2; exit 3\n", "broken", id="fails"),
        pytest.param("#!/bin/sh\nexit 1\n", "no output", id="fails silently"),
        pytest.param("#!/bin/sh\necho hello\n", "it answered 'hello", id="is no Python"),
        pytest.param("#!/bin/sh\nprintf '\\377' >&2; exit 3\n", "�", id="speaks no UTF-8"),
    ],
)
def test_broken_interpreter_is_named(tmp_path: Path, script: str | None, words: str) -> None:
    python = tmp_path / "python"
    if script is not None:
        python.write_text(script)
        python.chmod(0o755)
    with pytest.raises(EngineNotFoundError, match=words) as error:
        read_engine_facts(tmp_path / "cache", python)
    assert "AGENTEVAL_ENGINE_PYTHON" in str(error.value)
