"""`agenteval play` as a program: piped, at a terminal, and with what a stranger may type."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import LONG_S

from agenteval.cli import main

ROOT = Path(__file__).parents[3]
SUITE = str(ROOT / "tasks" / "starter")
PERFECT = "transfer source=savings target=joint amount=200\n" * 2 + "finish 815\n"
PLAY = (sys.executable, "-m", "agenteval", "play")


Played = Callable[..., tuple[int, str]]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Played:
    """Plays lines in this process, and gives the exit status and what was shown."""

    def run(stdin: str | bytes, *arguments: str) -> tuple[int, str]:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        code = main(["play", *arguments])
        shown = capsys.readouterr()
        assert shown.err == ""
        return code, shown.out

    return run


def test_a_perfect_player_ends_with_0_and_reads_what_happened() -> None:
    done = subprocess.run(
        (*PLAY, SUITE, "busy-bank"), input=PERFECT, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.split("\n")
    assert shown[0] == "task      busy-bank/base"
    assert "  world     - /accounts/joint: 615" in shown
    assert "            + /accounts/joint: 815" in shown
    assert "passed, 3 of 3 checks, score 1.00" in shown


@pytest.mark.parametrize(
    "stdin", ["finish done\n", "", "quit\n", "transfer source=savings target=joint amount=200", PERFECT[:60]]
)
def test_a_lazy_player_ends_with_1(played: Played, stdin: str) -> None:
    assert played(stdin, SUITE, "busy-bank")[0] == 1


def test_what_cannot_be_graded_ends_with_2(played: Played, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_bytes(Path(SUITE, "suite.yaml").read_bytes())
    (tmp_path / "t.yaml").write_text(
        "tasks: [{name: t, prompt: p, world: {}, checks: [{kind: world, that: world.a > 1}],"
        "tools: [{name: x, description: d, parameters: {type: object}}]}]"
    )
    code, shown = played("finish a\n", str(tmp_path), "t")
    assert code == 2
    assert "not graded" in shown


def test_a_blind_player_sees_what_a_model_sees_and_checks_at_the_end(played: Played) -> None:
    code, shown = played("world\nchecks\n" + PERFECT, SUITE, "busy-bank", "--blind")
    before, end = shown.split("passed, 3 of 3 checks")
    assert code == 0
    assert before.count("a model does not see that") == 2
    assert not [line for line in before.splitlines() if line.split()[:1] in (["world"], ["check"], ["fault"], ["vars"])]
    assert "world#0" in end


@pytest.mark.parametrize(
    ("name", "label"), [("read-balance/joint", "read-balance/joint"), ("read-balance", "read-balance/savings")]
)
def test_a_variant_is_named_behind_the_task_or_is_the_first(played: Played, name: str, label: str) -> None:
    assert f"task      {label}\n" in played("quit", SUITE, name)[1]


def test_the_clock_is_the_strict_contracts_or_as_given(played: Played) -> None:
    assert "clock     2026-01-15T09:00:00Z\n" in played("quit", SUITE, "busy-bank")[1]
    _, shown = played("quit", SUITE, "busy-bank", "--clock", "2030-02-03T04:05:06+01:00")
    assert "clock     2030-02-03T03:05:06Z\n" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SUITE, "busy-bnk"), "There is no task 'busy-bnk'."),
        ((SUITE, "busy-bnk"), "Did you mean 'busy-bank'?"),
        (
            (SUITE, "read-balance/jiont"),
            "There is no variant of read-balance 'jiont'. Known: savings, joint. Did you mean",
        ),
        ((SUITE, "\x1b[2J"), r"There is no task '\x1b[2J'"),
        (("nowhere", "x"), "nowhere is no suite"),
        ((SUITE, "busy-bank", "--clock", "noon"), "'noon' is no ISO 8601 instant"),
        ((SUITE, "busy-bank", "--clock", "2026-01-15"), "has no time zone"),
        ((SUITE, "busy-bank", "--clock", "0001-01-01T00:00:00+14:00"), "is no ISO 8601 instant"),
    ],
)
def test_a_wrong_name_is_one_message(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    "stdin",
    [
        b"\xff\xfe\x00 transfer\n",
        b"transfer {\n" * 3,
        b"x" * 5_000_000,
        b"\x1b]0;title\x07\n\x1b[2J\n",
        b"transfer source=\x1b[31m target=\xc2\x9b amount=1\n",
        b"transfer " + b"[" * 200_000 + b"\n",
        b'transfer {"amount": ' + b"9" * 10_000 + b"}\n",
        b"\r\n\0\r\n; ; ;\n=\n/\n{}\n",
    ],
)
def test_hostile_lines_are_answered(played: Played, stdin: bytes) -> None:
    code, shown = played(stdin, SUITE, "busy-bank")
    assert code == 1
    assert all(character.isprintable() or character == "\n" for character in shown)


def test_a_reader_that_has_gone_changes_no_exit_status() -> None:
    command = " ".join(PLAY)
    script = f"{command} tasks/starter busy-bank | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(("bash", "-c", script), input=PERFECT.encode(), capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("closing", "status"), [(">&-", 0), ("<&-", 1)])
def test_a_closed_stream_is_no_error(closing: str, status: int) -> None:
    script = f"{' '.join(PLAY)} tasks/starter busy-bank {closing}"
    done = subprocess.run(("bash", "-c", script), input=PERFECT.encode(), capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (status, b"")


def test_a_person_at_a_terminal_gets_a_prompt_and_completion() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        (*PLAY, SUITE, "busy-bank"), stdin=theirs, stdout=theirs, cwd=ROOT, env={**os.environ, "TERM": "dumb"}
    )
    os.close(theirs)
    try:
        assert b"busy-bank/base" in read_until(ours, b"> ")
        os.write(ours, b"trans\tso\tsavings ta\tjoint am\t200\n")
        call = b'transfer {"source": "savings", "target": "joint", "amount": 200}'
        assert call in read_until(ours, b"\n> ")
        os.write(ours, b"\x04")
        assert b"no answer was given" in read_until(ours, b"turns#")
        assert process.wait(LONG_S) == 1
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(descriptor: int, end: bytes, *, timeout_s: float = LONG_S) -> bytes:
    """What a terminal shows, up to an end that must come."""
    shown, deadline = b"", time.monotonic() + timeout_s
    while end not in shown:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{end!r} did not come; there was {shown!r}"
        shown += os.read(descriptor, 65_536)
    return shown
