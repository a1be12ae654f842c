"""Databases that are empty, half written, locked, or full of what a model should not have written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from agenteval.errors import StoreUnreadableError
from agenteval.records import ClauseVerdict, EpisodeStatus, Evidence, RunEnd, StopReason, ToolCall, Verdict
from agenteval.store import RunWriter
from agenteval.store.database import open_for_writing
from agenteval.tui.app import BrowserApp
from agenteval.tui.library import Library, PairState
from agenteval.tui.runs import RunsScreen

from .builders import (
    START,
    drive,
    make_run,
    make_trajectory,
    make_turn,
    plain_trajectories,
    press,
    screen_text,
    shown,
    until,
    write_episodes,
    write_run,
)

HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]b[/bold] [/] \u202egnp\u202c \ud800 tab\tend\r\n漢字 ب"


@contextmanager
def held_by_another_process(path: Path) -> Iterator[int]:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid


def test_an_empty_database_says_how_to_make_a_run(path: Path) -> None:
    with open_for_writing(path):
        pass

    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "e", "j", "G")
        await shown(pilot, "no runs yet; make one: agenteval run SUITE")
        assert isinstance(app.screen, RunsScreen)

    drive(path, script)


def test_a_missing_or_foreign_file_is_refused_before_the_screen_is_taken(path: Path) -> None:
    with pytest.raises(StoreUnreadableError):
        Library(path).check()
    path.write_text("not a database")
    with pytest.raises(StoreUnreadableError):
        Library(path).check()


def test_a_run_that_is_still_going_is_followed(path: Path) -> None:
    run = make_run(planned_episodes=8)
    episodes = plain_trajectories(run)
    with RunWriter(path, run) as writer:
        write_episodes(writer, run, episodes[:5])
        writer.flush()

        async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
            await shown(pilot, "▸ running", "5/8", "1 still going")
            await press(pilot, "enter")
            await shown(pilot, "1 pair: 1 pending", "▸ pending")
            for item in episodes[5:]:
                for turn in item.turns:
                    writer.append(turn)
                writer.append(item.episode)
            writer.flush()
            await shown(pilot, "4 pairs: 4 pending", "8/8")
            await press(pilot, "escape")
            await shown(pilot, "8/8")
            writer.append(RunEnd(run_id=run.run_id, ended_at=START, status="stopped", verdict=None, message="Ctrl-C"))
            writer.flush()
            await shown(pilot, "■ stopped")

        drive(path, script, refresh_s=0.1)


def test_a_pair_of_a_run_that_is_still_going_is_compared_when_it_is_opened(path: Path) -> None:
    run = make_run()
    with RunWriter(path, run) as writer:
        write_episodes(writer, run, plain_trajectories(run))
        writer.flush()

        async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
            await press(pilot, "enter", "slash", *"rent", "enter", "enter")
            await shown(pilot, "calls differ from turn 1 token 2 on", "compared just now")

        drive(path, script)


def test_the_pairs_of_a_run_that_ended_without_a_verdict_are_compared(path: Path) -> None:
    run = make_run()
    with RunWriter(path, run) as writer:
        write_episodes(writer, run, plain_trajectories(run))
        writer.append(RunEnd(run_id=run.run_id, ended_at=START, status="failed", verdict=None, message="gone"))

    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        await shown(pilot, "x failed: gone", "4 pairs: 1 calls, 1 logprobs, 2 equal")
        await press(pilot, "e")
        await shown(pilot, "this run was never audited")

    drive(path, script)


def test_a_run_whose_runner_died_is_shown_as_such(path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2]);"
        "from tui.builders import *; run = make_run(); writer = RunWriter(Path(sys.argv[1]), run);"
        "write_episodes(writer, run, plain_trajectories(run)[:5]); writer.flush(); os._exit(1)"
    )
    tests = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", code, str(path), str(tests)], cwd=path.parent, check=False)

    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await shown(pilot, "x failed", "5/4")

    drive(path, script)


def test_a_locked_database_is_waited_for_and_said(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await shown(pilot, "2 runs")
        with held_by_another_process(two_runs) as holder:
            await shown(pilot, f"waiting: the database is locked by process {holder}")
        await shown(pilot, "2 runs")

    drive(two_runs, script, refresh_s=0.2)


def test_a_locked_database_does_not_keep_q_from_ending_it(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await shown(pilot, "waiting: the database is locked")
        await pilot.press("q")
        await until(pilot, lambda: app._exit)

    with held_by_another_process(two_runs):
        drive(two_runs, script)


def test_a_repeat_that_was_not_run_is_shown_with_its_reason(path: Path) -> None:
    run = make_run()
    failed = make_trajectory(
        run,
        1,
        "rent",
        1,
        [],
        passed=None,
        status=EpisodeStatus.NOT_RUN,
        stop_reason=StopReason.SERVER,
        message="the server died",
    )
    write_run(path, run, [make_trajectory(run, 0, "rent", 0, [make_turn()]), failed])

    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        await shown(pilot, "x not run", "1 pair: 1 not run")
        await press(pilot, "enter")
        await shown(pilot, "not run: repeat 1: the server died", "differs in length")

    drive(path, script)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_what_a_model_wrote_is_shown_and_never_obeyed(path: Path, size: tuple[int, int]) -> None:
    run = make_run(model=HOSTILE, suite=HOSTILE, contract=HOSTILE)
    call = ToolCall(
        call=0,
        call_id="c",
        server_call_id="c",
        tool=HOSTILE,
        arguments=HOSTILE,
        result=HOSTILE,
        error=HOSTILE,
        is_broken=True,
        state_digest="",
        world_patch=({"op": HOSTILE, "path": HOSTILE, "value": HOSTILE},),
        is_repeatable=True,
        fault=None,
    )
    message = {"role": HOSTILE, "content": HOSTILE}
    sides = [
        [make_turn(0, words=("a", HOSTILE, word), messages_added=(message,), tool_calls=(call,))]
        for word in (HOSTILE + "1", HOSTILE + "2")
    ]
    sides[0] += [make_turn(1, words=(HOSTILE,), tool_calls=(call,))]
    row = Evidence(
        run_id="other",
        clause=HOSTILE,
        fact=HOSTILE,
        verdict=ClauseVerdict.KEPT,
        expected=HOSTILE,
        observed=HOSTILE,
        detail={HOSTILE: HOSTILE},
    )
    episodes = [make_trajectory(run, place, HOSTILE, place, turns, answer=HOSTILE) for place, turns in enumerate(sides)]
    write_run(path, run, episodes)
    with RunWriter(path, make_run("other")) as writer:
        writer.append(row)

    async def check(pilot: Pilot[None]) -> None:
        await shown(pilot, "\\x1b[3")
        assert screen_text(pilot.app).replace("\n", "").isprintable()

    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j")
        await check(pilot)
        for key in ("enter", "enter", "G", "enter", "k", "enter"):
            await press(pilot, key)
            await check(pilot)
        await press(pilot, "g", "d")
        await shown(pilot, "[bold]b[/bold]")
        await press(pilot, "escape", "slash", "[", "enter", "escape", "escape", "k", "e", "enter")
        await check(pilot)

    drive(path, script, size=size)


def test_a_tool_result_of_a_megabyte_is_cut_with_its_size_said(path: Path) -> None:
    run = make_run()
    big = make_turn(0)
    big_call = ToolCall(
        **{name: getattr(big.tool_calls[0], name) for name in big.tool_calls[0].__slots__ if name != "result"},
        result="x" * 1_000_000,
    )
    turn = make_turn(0, tool_calls=(big_call,))
    write_run(path, run, [make_trajectory(run, place, "rent", place, [turn]) for place in (0, 1)], verdict=Verdict.KEPT)
    library = Library(path)
    (pair,) = library.pairs(library.runs()[0])
    assert pair.state is PairState.EQUAL
    facts = {fact.label: fact for fact in library.diff(pair).blocks[0].facts}
    assert facts["result"].a.plain().endswith("x… (1,000,000 characters in all)")
    assert len(facts["result"].a.plain()) < 2_000
