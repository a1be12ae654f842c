"""Ctrl-C once and twice: finished turns are stored, no process of the server is left."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import LONG_S

from agenteval.server.orphans import has_members
from agenteval.store import files_folder

from .conftest import STRICT_PROBES, CommandLine


class Running:
    """A run in another process, read line by line."""

    def __init__(self, cli: CommandLine, cache: Path, *arguments: str) -> None:
        self._cache, self._files = cache, files_folder(cli.db)
        self.process = cli.start(cli.words("strict", *arguments))
        self.lines: list[str] = []
        self.leader = 0

    def wait_for(self, words: str) -> None:
        """Read what it says until a line has some words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if words in line:
                return
        pytest.fail(f"it ended before it said {words!r}:\n{''.join(self.lines)}")

    def note_leader(self) -> None:
        """Find the server's process group by the note that the runner keeps."""
        deadline = time.monotonic() + LONG_S
        while time.monotonic() < deadline:
            for note in (self._cache / "boots").glob("*.json"):
                kept = json.loads(note.read_text())
                if kept["runner"] == self.process.pid:
                    self.leader = int(kept["pid"])
                    assert has_members(self.leader)
                    return
            time.sleep(0.05)
        pytest.fail("no note of a server")

    def wait_for_turns(self, count: int) -> None:
        """Until the journal holds so many turns."""
        deadline = time.monotonic() + LONG_S
        while time.monotonic() < deadline:
            journals = self._files.glob("*.jsonl")
            if sum(journal.read_text().count('"record":"Turn"') for journal in journals) >= count:
                return
            time.sleep(0.02)
        pytest.fail(f"no {count} turns in the journal")

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Exit status and all output; a process that does not end is killed."""
        try:
            out, err = self.process.communicate(timeout=LONG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            pytest.fail(f"it did not end:\n{''.join(self.lines)}{err}")
        return self.process.returncode, out, "".join(self.lines) + err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_once_it_ends_after_the_request_in_flight(
    cli: CommandLine, cache: Path, engine_env: Callable[..., None], number: signal.Signals
) -> None:
    engine_env({"latency_s": 0.1})
    running = Running(cli, cache, "--limit", "4")
    running.wait_for("1/8")
    running.note_leader()
    running.interrupt(number)
    code, out, err = running.end()
    assert (code, out) == (2, "")
    assert "stopping after the requests in flight; press Ctrl-C again" in err
    assert "was stopped after" in err
    assert err.rstrip().endswith("Start it again with the same command.")
    assert "Traceback" not in err
    assert not has_members(running.leader)
    (run,) = cli.sql("select status, message from runs")
    assert run["status"] == "stopped"
    finished = cli.sql("select count(*) n from episodes where status = 'finished'")[0]["n"]
    assert f"stopped after {finished} of 8 episodes" in err
    turns = cli.sql("select count(*) n from turns where kind = 'episode'")[0]["n"]
    assert turns >= finished >= 1


def test_asked_twice_it_ends_at_once_although_the_server_hangs(
    cli: CommandLine, cache: Path, engine_env: Callable[..., None]
) -> None:
    engine_env({"faults": {"hang_on": [STRICT_PROBES + 3]}}, ignore_sigterm=1)
    running = Running(cli, cache, "--limit", "2")
    running.wait_for("0/4")
    running.note_leader()
    # Two turns are over: the next request hangs now, or is about to.
    running.wait_for_turns(STRICT_PROBES + 2)
    running.interrupt()
    running.wait_for("press Ctrl-C again")
    time.sleep(0.3)
    assert running.process.poll() is None, "the request in flight is waited for"
    running.interrupt()
    code, _, err = running.end()
    assert (code, "Traceback" in err) == (2, False)
    assert "was stopped after 0 of 4 episodes" in err
    assert not has_members(running.leader)
    assert cli.sql("select count(*) n from turns where kind = 'episode'")[0]["n"] == 2
    assert cli.sql("select status, stop_reason from episodes") == [{"status": "not_run", "stop_reason": "server"}]


def test_asked_while_the_server_loads_it_does_not_wait_for_it(
    cli: CommandLine, cache: Path, engine_env: Callable[..., None]
) -> None:
    engine_env(start_delay_s=60)
    running = Running(cli, cache, "--limit", "1")
    running.wait_for("server ")
    running.note_leader()
    running.interrupt()
    code, _, err = running.end()
    assert (code, "Traceback" in err) == (2, False)
    assert "was stopped after 0 of 2 episodes" in err
    assert not has_members(running.leader)


def test_a_killed_runner_leaves_its_turns_and_no_server(
    cli: CommandLine, cache: Path, engine_env: Callable[..., None]
) -> None:
    engine_env({"latency_s": 0.1})
    running = Running(cli, cache, "--limit", "4")
    running.wait_for("1/8")
    running.note_leader()
    running.process.kill()
    running.process.communicate()
    deadline = time.monotonic() + LONG_S
    while has_members(running.leader) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not has_members(running.leader)
    shown = cli("show")
    assert (shown.code, "verdict   none; it is still running, or its runner died" in shown.out) == (2, True)
    assert cli.sql("select status, message from runs") == [
        {"status": "failed", "message": "the runner ended before the run"}
    ]
    assert cli.sql("select count(*) n from turns where kind = 'episode'")[0]["n"] > 0
