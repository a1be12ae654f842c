"""Shared by the store tests: small records, and scripts that run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agenteval.records import Episode, EpisodePlan, EpisodeStatus, Run, StopReason, ToolCall, Turn
from agenteval.store import writer

NOW = datetime(2026, 1, 15, 9, tzinfo=UTC)
TESTS = Path(__file__).parents[2]


def make_run(run_id: str = "run-a") -> Run:
    """A run that has just begun."""
    return Run(
        run_id=run_id,
        suite="suite",
        suite_digest="sha256:s",
        contract="strict",
        contract_digest="sha256:c",
        contract_fields={},
        model="model",
        model_digest="sha256:m",
        agent="agenteval",
        samples=1,
        repeats=2,
        planned_episodes=2,
        started_at=NOW,
        agenteval_version="0",
        facts={},
    )


def make_turn(turn: int, run_id: str = "run-a", *, text: str = "hello") -> Turn:
    """A turn of the run's first episode, with one token a character of its text."""
    plan = EpisodePlan(run_id=run_id, position=0, task="task", variant="", sample=0, repeat=0, seed=1, cache_salt=None)
    count = len(text)
    return Turn(
        run_id=run_id,
        boot_id=f"{run_id}/boot-0",
        episode_id=plan.episode_id,
        turn=turn,
        kind="episode",
        started_at=NOW,
        elapsed_s=0.5,
        queued_s=0.0,
        requests_in_flight=1,
        request={"model": "model"},
        messages_kept=turn,
        messages_added=({"role": "user", "content": text},),
        prompt_tokens=count,
        prompt_kept=0,
        prompt_added=tuple(range(count)),
        is_continuous=None,
        output_ids=tuple(range(count)),
        output_tokens=tuple(text),
        logprobs=(-0.5,) * count,
        runner_up_tokens=("x",) * count,
        runner_up_logprobs=(-1.5,) * count,
        cached_tokens=0,
        finish_reason="stop",
        content=text,
        response={"id": "x"},
    )


def make_episode(position: int, *, sample: int = 0, repeat: int = 0) -> Episode:
    """An ended episode of the first run."""
    plan = EpisodePlan(
        run_id="run-a",
        position=position,
        task="task",
        variant="",
        sample=sample,
        repeat=repeat,
        seed=1,
        cache_salt=None,
    )
    return Episode(
        plan=plan,
        boot_id="run-a/boot-0",
        status=EpisodeStatus.FINISHED,
        stop_reason=StopReason.ANSWER,
        message=None,
        answer=None,
        world={},
        turns=0,
        started_at=NOW,
        elapsed_s=0.5,
    )


def make_call(call: int) -> ToolCall:
    """A call of the tool `look`."""
    return ToolCall(
        call=call,
        call_id=f"call-{call}",
        server_call_id="x",
        tool="look",
        arguments="{}",
        result="",
        error=None,
        is_broken=False,
        state_digest="sha256:0",
        world_patch=(),
        is_repeatable=True,
        fault=None,
    )


def script(code: str, *, before: str = "") -> list[str]:
    """A command that runs code which may use everything in this file; `before` is shell that must succeed first."""
    whole = textwrap.dedent("""
        import json, os, random, signal, sys, threading, time
        from pathlib import Path
        from unit.store.conftest import make_run, make_turn
        from agenteval import store
        from agenteval.errors import *
        from agenteval.store import RunReader, RunWriter, journal, list_runs, recover, run_query, writer
    """) + textwrap.dedent(code)
    command = [sys.executable, "-c", whole]
    return ["unshare", "--mount", "sh", "-ec", f'{before}\nexec "$@"', "sh", *command] if before else command


def environment() -> dict[str, str]:
    """With the tests' own modules importable."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}


def output_of(code: str, *, before: str = "") -> str:
    """What a script prints; it must succeed."""
    done = subprocess.run(
        script(code, before=before), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def can_mount() -> bool:
    """Whether this user may mount things in a namespace of their own, which the system forgets afterwards."""
    try:
        attempt = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        return subprocess.run(attempt, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


needs_mount = pytest.mark.skipif(not can_mount(), reason="needs the right to mount in a namespace (root)")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where a database may be made."""
    return tmp_path / "runs.duckdb"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move lines into the database every 50 ms."""
    monkeypatch.setattr(writer, "INGEST_EVERY_S", 0.05)
