"""Records of small runs, and a hand on the browser's keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from agenteval.compare import Trajectory, compare_repeats
from agenteval.records import (
    Boot,
    ClauseVerdict,
    Episode,
    EpisodePlan,
    EpisodeStatus,
    Evidence,
    Grade,
    Run,
    RunEnd,
    StopReason,
    ToolCall,
    Turn,
    Verdict,
)
from agenteval.store import RunWriter
from agenteval.tui.app import BrowserApp
from agenteval.tui.help import HelpScreen
from agenteval.tui.reading import ReadingScreen

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
Script = Callable[[BrowserApp, Pilot[None]], Awaitable[None]]


def make_run(run_id: str = "run-1", **changes: Any) -> Run:
    values: dict[str, Any] = {
        "run_id": run_id,
        "suite": "bank",
        "suite_digest": "sha256:0",
        "contract": "default",
        "contract_digest": "sha256:1",
        "contract_fields": {},
        "model": "/models/tiny",
        "model_digest": "sha256:2",
        "agent": "agenteval",
        "samples": 1,
        "repeats": 2,
        "planned_episodes": 4,
        "started_at": START,
        "agenteval_version": "0",
        "facts": {},
    }
    return Run(**{**values, **changes})


def make_turn(number: int = 0, words: Sequence[str] = ("pay", "(", "rent", ")"), **changes: Any) -> Turn:
    """A turn whose prompt extends the one before and whose one call is what its words say."""
    call = ToolCall(
        call=0,
        call_id=f"call_{number}",
        server_call_id="x",
        tool="pay",
        arguments='{"bill": "' + "".join(words) + '"}',
        result='{"ok": true}',
        error=None,
        is_broken=False,
        state_digest="sha256:3",
        world_patch=({"op": "replace", "path": "/bill", "value": number},),
        is_repeatable=True,
        fault=None,
    )
    values: dict[str, Any] = {
        "run_id": "",
        "boot_id": "",
        "episode_id": "",
        "turn": number,
        "kind": "episode",
        "started_at": START,
        "elapsed_s": 0.1,
        "queued_s": 0.0,
        "requests_in_flight": 1,
        "request": {},
        "messages_kept": 2 * number,
        "messages_added": ({"role": "user", "content": f"go {number}"}, {"role": "tool", "content": "done"}),
        "prompt_tokens": 10,
        "prompt_kept": 10 * number,
        "prompt_added": (1, 2, 3),
        "is_continuous": None,
        "output_ids": tuple(hash_of(word) for word in words),
        "output_tokens": tuple(words),
        "logprobs": (-0.5,) * len(words),
        "runner_up_tokens": ("other",) * len(words),
        "runner_up_logprobs": (-0.75,) * len(words),
        "cached_tokens": 0,
        "finish_reason": "tool_calls",
        "content": None,
        "response": {},
        "tool_calls": (call,),
    }
    return Turn(**{**values, **changes})


def hash_of(word: str) -> int:
    """A token id; equal words, equal ids."""
    return sum((place + 1) * ord(character) for place, character in enumerate(word))


def make_trajectory(
    run: Run, position: int, task: str, repeat: int, turns: Sequence[Turn], **changes: Any
) -> Trajectory:
    plan = EpisodePlan(
        run_id=run.run_id,
        position=position,
        task=task,
        variant="base",
        sample=0,
        repeat=repeat,
        seed=7,
        cache_salt=None,
    )
    passed = changes.pop("passed", True)
    values: dict[str, Any] = {
        "plan": plan,
        "boot_id": f"{run.run_id}/boot-0",
        "status": EpisodeStatus.FINISHED,
        "stop_reason": StopReason.FINISH_TOOL,
        "message": None,
        "answer": "42",
        "world": {},
        "turns": len(turns),
        "started_at": START,
        "elapsed_s": 1.0,
    }
    episode = Episode(**{**values, **changes})
    owned = (replace(turn, run_id=run.run_id, boot_id=episode.boot_id, episode_id=plan.episode_id) for turn in turns)
    return Trajectory(episode=episode, turns=tuple(owned), passed=passed)


def plain_trajectories(run: Run) -> list[Trajectory]:
    """Four tasks: tokens of rent differ at turn 1, loan differs in one logprob, gym and tax are equal."""
    same = [make_turn(0), make_turn(1), make_turn(2)]
    otherwise = [
        make_turn(0, cached_tokens=8),
        make_turn(1, words=("pay", "(", "loan", ")"), logprobs=(-0.5, -0.5, -0.625, -0.5)),
        make_turn(2, prompt_added=(9,)),
    ]
    nearly = [make_turn(0), make_turn(1, logprobs=(-0.5, -0.5, -0.5, -0.5625)), make_turn(2)]
    seconds = {"rent": otherwise, "gym": same, "loan": nearly, "tax": same}
    sides = [(task, repeat) for repeat in (0, 1) for task in seconds]
    return [
        make_trajectory(run, position, task, repeat, seconds[task] if repeat else same)
        for position, (task, repeat) in enumerate(sides)
    ]


def write_run(path: Path, run: Run, trajectories: Iterable[Trajectory], *, verdict: Verdict = Verdict.DIVERGED) -> None:
    """A run that ended and was judged."""
    kept = list(trajectories)
    with RunWriter(path, run) as writer:
        write_episodes(writer, run, kept)
        for divergence in compare_repeats(kept):
            writer.append(divergence)
        for row in make_evidence(run):
            writer.append(row)
        writer.append(
            RunEnd(
                run_id=run.run_id,
                ended_at=run.started_at + timedelta(minutes=1),
                status="finished",
                verdict=verdict,
                message=None,
            )
        )


def write_episodes(writer: RunWriter, run: Run, trajectories: Iterable[Trajectory]) -> None:
    """A boot, and what happened under it."""
    writer.append(
        Boot(
            boot_id=f"{run.run_id}/boot-0",
            run_id=run.run_id,
            is_managed=True,
            started_at=run.started_at,
            ready_s=1.0,
            base_url="http://localhost",
            argv=(),
            env={},
            facts={},
        )
    )
    for item in trajectories:
        for turn in item.turns:
            writer.append(turn)
        writer.append(item.episode)
        if item.passed is not None:
            writer.append(
                Grade(
                    run_id=run.run_id,
                    episode_id=item.episode.plan.episode_id,
                    check=0,
                    kind="answer",
                    passed=item.passed,
                    reason="",
                    weight=1.0,
                )
            )


def make_evidence(run: Run) -> list[Evidence]:
    rows = [
        ("cache", "tokens read from the cache", ClauseVerdict.KEPT, "0", "0", {}),
        ("cache", "the probe must hit", ClauseVerdict.BREACHED, "a hit", "a miss", {"probe": "must-hit"}),
        ("batching", "requests in flight", ClauseVerdict.NOT_PROMISED, "measured", "at most 1", {}),
    ]
    return [
        Evidence(run_id=run.run_id, clause=a, fact=b, verdict=c, expected=d, observed=e, detail=f)
        for a, b, c, d, e, f in rows
    ]


def drive(path: Path, script: Script, *, size: tuple[int, int] = (80, 24), refresh_s: float = 60.0) -> None:
    """Run the browser on a database, and a script of keys on it."""

    async def main() -> None:
        app = BrowserApp(path, refresh_s=refresh_s)
        async with app.run_test(size=size) as pilot:
            await script(app, pilot)

    asyncio.run(main())


async def until(pilot: Pilot[None], holds: Callable[[], bool], what: str = "what was waited for") -> None:
    """Wait for something on the screen; the machine may be slow, the screen may not be wrong."""
    for _ in range(1_000):
        await pilot.pause(0.02)
        if holds():
            await pilot.pause()
            return
    raise AssertionError(f"{what} did not happen; the screen:\n{screen_text(pilot.app)}")


async def shown(pilot: Pilot[None], *texts: str) -> None:
    """Wait until the screen holds all of these."""
    await until(pilot, lambda: all(text in screen_text(pilot.app) for text in texts), f"{texts} on the screen")


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one by one, each on a screen that has loaded."""
    for key in keys:
        await _loaded(pilot)
        await pilot.press(key)
    await _loaded(pilot)


async def _loaded(pilot: Pilot[None]) -> None:
    def is_loaded() -> bool:
        screen = pilot.app.screen
        return screen.is_loaded if isinstance(screen, ReadingScreen) else isinstance(screen, HelpScreen)

    await until(pilot, is_loaded, "the screen's first read")


def screen_text(app: Any) -> str:
    """What stands on the screen, as lines."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
