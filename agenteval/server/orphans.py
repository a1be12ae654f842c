"""Servers that outlived their runner: found by what we wrote down, ended only when provably ours.

A pid alone proves nothing, since the system gives it out again: the process's start must match too.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from agenteval.files import write_whole

_WAIT_S = 10.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """What was written down of a server."""

    pid: int
    """The leader of the server's process group."""
    started: str | None
    """The leader's start, from `start_of`; None where it was never known."""

    @property
    def is_alive(self) -> bool:
        """Whether the process of that pid is the one that was written down."""
        return self.started is not None and start_of(self.pid) == self.started


def remember(cache_dir: Path, *, pid: int) -> Path:
    """Write down a server's process group leader and its runner; returns the note, to be removed after the stop."""
    # Several machines may share the folder, so a pid is not unique in it.
    note = cache_dir / "boots" / f"{pid}-{secrets.token_hex(4)}.json"
    runner = os.getpid()
    fields = {
        "machine": machine(),
        "pid": pid,
        "started": start_of(pid),
        "runner": runner,
        "runner_started": start_of(runner),
    }
    write_whole(note, json.dumps(fields))
    return note


def end_orphans(cache_dir: Path) -> list[int]:
    """End every server that we started and whose runner is gone; returns the pids ended."""
    ended = []
    for path, note in _abandoned(cache_dir):
        if note is not None and note.is_alive:
            end_group(note.pid, started=note.started)
            ended.append(note.pid)
        _forget(path)
    return ended


def find_orphans(cache_dir: Path) -> list[int]:
    """The pids of the servers that `end_orphans` would end; ends none and removes no note."""
    return [note.pid for _, note in _abandoned(cache_dir) if note is not None and note.is_alive]


def _abandoned(cache_dir: Path) -> Iterator[tuple[Path, _Note | None]]:
    """The notes of this machine whose runner is gone; None stands for one that cannot be read.

    Such a note proves nothing about any process.
    """
    for path in sorted((cache_dir / "boots").glob("*.json")):
        try:
            kept = json.loads(path.read_text())
            note = _Note(pid=int(kept["pid"]), started=kept["started"])
            place, runner, runner_started = kept["machine"], int(kept["runner"]), kept["runner_started"]
        except (OSError, ValueError, KeyError, TypeError):
            yield path, None
            continue
        if place == machine() and (runner_started is None or start_of(runner) != runner_started):
            yield path, note


def end_group(pid: int, *, started: str | None, wait_s: float = _WAIT_S) -> None:
    """Kill a process group and wait until no member runs; a zombie only waits for its parent and counts as gone.

    Args:
        pid: The group's leader.
        started: Its start, from `start_of`. Where another process has the pid by now, the group is not ours and is
            left alone; None does not check.
        wait_s: Longest wait.
    """
    if started is not None and start_of(pid) not in (started, None):
        return
    deadline = time.monotonic() + wait_s
    while has_members(pid) and time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def has_members(pid: int) -> bool:
    """Whether any live process belongs to the group."""
    for member in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(member) == pid and start_of(member) is not None:
                return True
    return False


def start_of(pid: int) -> str | None:
    """When a process started, in clock ticks since the machine's boot; None where there is none, or only a zombie.

    The seconds since the epoch that psutil gives move when the machine's clock is set, and would then say of a live
    process that it is another one.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def machine() -> str:
    """This boot of this machine, and this container: where a pid means what it says."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _forget(note: Path) -> None:
    with contextlib.suppress(OSError):
        note.unlink()
