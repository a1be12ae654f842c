"""Servers that outlived their runner: found by what we wrote down, ended only when provably ours.

A pid alone proves nothing, since the system gives it out again: the process's start time must match too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import psutil

_WAIT_S = 10.0


def remember(cache_dir: Path, *, pid: int) -> Path:
    """Write down a server's process group leader and its runner; returns the note, to be removed after the stop."""
    folder = cache_dir / "boots"
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / f"{pid}.json"
    partial = note.with_suffix(".partial")
    runner = os.getpid()
    partial.write_text(
        json.dumps({"pid": pid, "started": _started(pid), "runner": runner, "runner_started": _started(runner)})
    )
    partial.replace(note)
    return note


def end_orphans(cache_dir: Path) -> list[int]:
    """End every server that we started and whose runner is gone; returns the pids ended."""
    ended = []
    for note in sorted((cache_dir / "boots").glob("*.json")):
        try:
            kept = json.loads(note.read_text())
            pid, started = int(kept["pid"]), kept["started"]
            runner, runner_started = int(kept["runner"]), kept["runner_started"]
        except (OSError, ValueError, KeyError, TypeError):
            # A note that cannot be read proves nothing about any process.
            note.unlink(missing_ok=True)
            continue
        if runner_started is not None and _started(runner) == runner_started:
            continue
        if started is not None and _started(pid) == started:
            end_group(pid)
            ended.append(pid)
        note.unlink(missing_ok=True)
    return ended


def end_group(pid: int, wait_s: float = _WAIT_S) -> None:
    """Kill a process group that we lead and wait until it has no member."""
    deadline = time.monotonic() + wait_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < deadline:
            os.killpg(pid, signal.SIGKILL)
            time.sleep(0.05)


def has_members(pid: int) -> bool:
    """Whether any live process belongs to the group."""
    for process in psutil.process_iter(["pid", "status"]):
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getpgid(process.pid) == pid and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
    return False


def _started(pid: int) -> float | None:
    """When a process started, in seconds since the epoch; None where there is none."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None
