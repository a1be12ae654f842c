"""Orphans: ended when provably ours, by pid and start; anything else is left alone."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import LONG_S

from agenteval.server import end_orphans, orphans
from agenteval.server.orphans import end_group, has_members, machine, remember, start_of

from .conftest import group_members


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A harmless process that leads a group, as a server's guard does."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


def dead_pid() -> int:
    """A pid that was a process's, which has ended and was waited for."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


def note(cache: Path, pid: int, **changes: Any) -> Path:
    """A note as `remember` writes it, whose runner is gone."""
    (cache / "boots").mkdir(parents=True, exist_ok=True)
    path = cache / f"boots/{pid}-0.json"
    kept = {"machine": machine(), "pid": pid, "started": start_of(pid), "runner": dead_pid(), "runner_started": "1"}
    path.write_text(json.dumps(kept | changes))
    return path


def test_server_whose_runner_is_gone_is_ended(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    kept = note(tmp_path, sleeper.pid)
    began = time.monotonic()
    assert end_orphans(tmp_path) == [sleeper.pid]
    assert sleeper.wait(LONG_S) == -9
    assert not kept.exists()
    assert time.monotonic() - began < orphans._WAIT_S, "a zombie that nobody has waited for counts as gone"


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [
        pytest.param({"started": "1"}, False, id="another process has the pid now"),
        pytest.param({"started": None}, False, id="its start was never known"),
        pytest.param({"machine": "another"}, True, id="written by another machine or container"),
        pytest.param({"runner": os.getpid(), "runner_started": start_of(os.getpid())}, True, id="its runner lives"),
    ],
)
def test_process_that_is_not_provably_an_orphan_is_not_touched(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], changes: dict[str, Any], is_kept: bool
) -> None:
    kept = note(tmp_path, sleeper.pid, **changes)
    assert end_orphans(tmp_path) == []
    assert sleeper.poll() is None
    assert kept.exists() == is_kept


def test_runner_whose_pid_went_to_another_process_is_gone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    note(tmp_path, sleeper.pid, runner=os.getpid(), runner_started="1")
    assert end_orphans(tmp_path) == [sleeper.pid]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"pid": "x"}', '{"pid": 1, "started": null}'],
    ids=["empty", "list", "bare", "word", "part"],
)
def test_unreadable_note_is_dropped_and_proves_nothing(tmp_path: Path, text: str) -> None:
    kept = note(tmp_path, os.getpid())
    kept.write_text(text)
    assert end_orphans(tmp_path) == []
    assert not kept.exists()


def test_no_notes_no_orphans(tmp_path: Path) -> None:
    assert end_orphans(tmp_path / "missing") == []


def test_note_of_a_live_runner_is_its_own(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    kept = remember(tmp_path, pid=sleeper.pid)
    assert end_orphans(tmp_path) == []
    assert json.loads(kept.read_text())["runner"] == os.getpid()


def test_group_is_ended_with_members_that_outlive_their_leader() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & wait"], start_new_session=True) as leader:
        started = start_of(leader.pid)
        while len(group_members(leader.pid)) < 3:
            time.sleep(0.02)
        leader.kill()
        leader.wait()
        end_group(leader.pid, started=started)
        assert group_members(leader.pid) == {}


def test_group_of_a_pid_that_was_given_out_again_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    end_group(sleeper.pid, started="1")
    assert sleeper.poll() is None


def test_zombie_is_no_member() -> None:
    with subprocess.Popen(["true"], start_new_session=True) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not has_members(process.pid)
        assert start_of(process.pid) is None
