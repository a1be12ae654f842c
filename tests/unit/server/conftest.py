"""Shared by the server tests: the stand-in program, started as vLLM is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval.launch import LaunchPlan
from agenteval.server import StartOptions
from agenteval.server.orphans import start_of

PROGRAM = Path(__file__).parents[2] / "fake_vllm/program"


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in is what `vllm` means to the engine's interpreter."""
    monkeypatch.setenv("PYTHONPATH", str(PROGRAM))
    monkeypatch.setenv("AGENTEVAL_ENGINE_PYTHON", sys.executable)
    return PROGRAM


@pytest.fixture
def plan(tmp_path: Path, stand_in: Path) -> Callable[..., LaunchPlan]:
    """A plan for the stand-in, with FAKE_VLLM_* settings."""
    folder = tmp_path / "model"
    folder.mkdir()

    def make(**settings: str) -> LaunchPlan:
        argv = ("-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--host", "127.0.0.1")
        return LaunchPlan(argv=argv, env={f"FAKE_VLLM_{name}": value for name, value in settings.items()})

    return make


@pytest.fixture
def options(tmp_path: Path) -> StartOptions:
    """A start with a log and a cache of its own."""
    return StartOptions(
        python=Path(sys.executable), log_path=tmp_path / "logs/boot.log", cache_dir=tmp_path / "cache", timeout_s=30
    )


def group_members(leader: int) -> dict[int, str]:
    """Live processes of a group, by pid, with their command lines."""
    members = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and start_of(int(folder.name)) is not None:
            try:
                if os.getpgid(int(folder.name)) == leader:
                    members[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except (ProcessLookupError, FileNotFoundError):
                continue
    return members
