"""Hypothesis strategies for records: anything that a run could have produced, and nothing that JSON cannot hold."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from agenteval.records import (
    Boot,
    BootEnd,
    ClauseVerdict,
    Divergence,
    Episode,
    EpisodePlan,
    EpisodeStatus,
    Evidence,
    Grade,
    Level,
    Model,
    Run,
    RunEnd,
    StopReason,
    TaskRecord,
    ToolCall,
    Turn,
    TurnKind,
    Verdict,
)

INT32 = st.integers(0, 2**31 - 1)
COUNTS = st.integers(0, 10_000)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
"""Any text, NUL, emoji and quotes included; halves of surrogate pairs have no UTF-8 and are tested apart."""
NAMES = st.text("abcdefgh-_.", min_size=1, max_size=10)
SECONDS = st.floats(0, 1e6, allow_nan=False)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
LOGPROBS = st.floats(-9999, 0, width=32)
"""What a float32 holds: the engine computes in float32 at most, and the store keeps that."""
REALS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | REALS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(TEXT | st.just("created_at"), JSON, max_size=3)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value, or its absence."""
    return st.none() | strategy


def runs(run_id: str) -> st.SearchStrategy[Run]:
    """Runs with this id."""
    return st.builds(
        Run,
        run_id=st.just(run_id),
        suite=TEXT,
        suite_digest=TEXT,
        contract=TEXT,
        contract_digest=TEXT,
        contract_fields=OBJECTS,
        model=TEXT,
        model_digest=TEXT,
        agent=TEXT,
        samples=COUNTS,
        repeats=COUNTS,
        planned_episodes=COUNTS,
        started_at=MOMENTS,
        agenteval_version=TEXT,
        facts=OBJECTS,
    )


def run_ends(run_id: str) -> st.SearchStrategy[RunEnd]:
    """Ends of the run with this id."""
    return st.builds(
        RunEnd,
        run_id=st.just(run_id),
        ended_at=MOMENTS,
        status=st.sampled_from(["finished", "stopped", "failed"]),
        verdict=maybe(st.sampled_from(Verdict)),
        message=maybe(TEXT),
    )


def task_records(run_id: str) -> st.SearchStrategy[TaskRecord]:
    """Task variants of a run."""
    return st.builds(
        TaskRecord,
        run_id=st.just(run_id),
        task=TEXT,
        variant=TEXT,
        tags=st.lists(TEXT, max_size=3).map(tuple),
        definition=OBJECTS.map(lambda fields: {**fields, "faults": []}),
    )


def boots(run_id: str, number: int = 0) -> st.SearchStrategy[Boot]:
    """Boots of a run."""
    return st.builds(
        Boot,
        boot_id=st.just(f"{run_id}/boot-{number}"),
        run_id=st.just(run_id),
        is_managed=st.booleans(),
        started_at=MOMENTS,
        ready_s=SECONDS,
        base_url=TEXT,
        argv=st.lists(TEXT, max_size=4).map(tuple),
        env=st.dictionaries(TEXT, TEXT, max_size=3),
        facts=OBJECTS,
    )


def boot_ends(run_id: str, number: int = 0) -> st.SearchStrategy[BootEnd]:
    """Ends of a run's boot."""
    return st.builds(
        BootEnd,
        boot_id=st.just(f"{run_id}/boot-{number}"),
        run_id=st.just(run_id),
        ended_at=MOMENTS,
        reason=TEXT,
        metrics=st.dictionaries(NAMES, REALS, max_size=3),
        model_digest=maybe(TEXT),
    )


def plans(run_id: str, position: int = 0) -> st.SearchStrategy[EpisodePlan]:
    """Plans of the episode at a place."""
    return st.builds(
        EpisodePlan,
        run_id=st.just(run_id),
        position=st.just(position),
        task=TEXT,
        variant=TEXT,
        sample=COUNTS,
        repeat=COUNTS,
        seed=INT32,
        cache_salt=maybe(TEXT),
    )


def episodes(run_id: str, position: int = 0) -> st.SearchStrategy[Episode]:
    """Episodes at a place of a run."""
    return st.builds(
        Episode,
        plan=plans(run_id, position),
        boot_id=st.just(f"{run_id}/boot-0"),
        status=st.sampled_from(EpisodeStatus),
        stop_reason=st.sampled_from(StopReason),
        message=maybe(TEXT),
        answer=maybe(TEXT),
        world=OBJECTS,
        turns=COUNTS,
        started_at=MOMENTS,
        elapsed_s=SECONDS,
    )


def tool_calls(place: int) -> st.SearchStrategy[ToolCall]:
    """Calls at a place among a turn's."""
    return st.builds(
        ToolCall,
        call=st.just(place),
        call_id=TEXT,
        server_call_id=TEXT,
        tool=TEXT,
        arguments=TEXT,
        result=TEXT,
        error=maybe(TEXT),
        is_broken=maybe(st.booleans()),
        state_digest=TEXT,
        world_patch=st.lists(OBJECTS, max_size=2).map(tuple),
        is_repeatable=st.booleans(),
        fault=maybe(TEXT),
    )


@st.composite
def turns(draw: st.DrawFn, run_id: str, episode_id: str, turn: int = 0) -> Turn:
    """Turns of an episode, with as many logprobs as tokens; a probe calls no tools."""
    kind: TurnKind = draw(st.sampled_from(["episode", "probe"]))
    calls = draw(st.integers(0, 2)) if kind == "episode" else 0
    tokens = draw(st.lists(st.tuples(INT32, TEXT, LOGPROBS, maybe(st.tuples(TEXT, LOGPROBS))), max_size=5))
    added = draw(st.lists(INT32, max_size=5))
    kept = draw(COUNTS)
    return Turn(
        run_id=run_id,
        boot_id=f"{run_id}/boot-0",
        episode_id=episode_id,
        turn=turn,
        kind=kind,
        started_at=draw(MOMENTS),
        elapsed_s=draw(SECONDS),
        queued_s=draw(SECONDS),
        requests_in_flight=draw(COUNTS),
        request=draw(OBJECTS),
        messages_kept=draw(COUNTS),
        messages_added=tuple(draw(st.lists(OBJECTS, max_size=2))),
        prompt_tokens=kept + len(added),
        prompt_kept=kept,
        prompt_added=tuple(added),
        is_continuous=draw(maybe(st.booleans())),
        output_ids=tuple(token for token, _, _, _ in tokens),
        output_tokens=tuple(text for _, text, _, _ in tokens),
        logprobs=tuple(logprob for _, _, logprob, _ in tokens),
        runner_up_tokens=tuple(None if other is None else other[0] for _, _, _, other in tokens),
        runner_up_logprobs=tuple(None if other is None else other[1] for _, _, _, other in tokens),
        cached_tokens=draw(maybe(COUNTS)),
        finish_reason=draw(maybe(TEXT)),
        content=draw(maybe(TEXT)),
        response=draw(OBJECTS),
        tool_calls=tuple(draw(tool_calls(place)) for place in range(calls)),
    )


def grades(run_id: str, episode_id: str, check: int = 0) -> st.SearchStrategy[Grade]:
    """Grades of an episode."""
    return st.builds(
        Grade,
        run_id=st.just(run_id),
        episode_id=st.just(episode_id),
        check=st.just(check),
        kind=TEXT,
        passed=maybe(st.booleans()),
        reason=TEXT,
        weight=SECONDS,
    )


def evidence(run_id: str) -> st.SearchStrategy[Evidence]:
    """Evidence of a run."""
    return st.builds(
        Evidence,
        run_id=st.just(run_id),
        clause=TEXT,
        fact=TEXT,
        verdict=st.sampled_from(ClauseVerdict),
        expected=TEXT,
        observed=TEXT,
        detail=OBJECTS,
    )


def divergences(run_id: str) -> st.SearchStrategy[Divergence]:
    """Divergences of a run."""
    return st.builds(
        Divergence,
        run_id=st.just(run_id),
        episode_a=TEXT,
        episode_b=TEXT,
        task=TEXT,
        variant=TEXT,
        sample=COUNTS,
        repeat_a=COUNTS,
        repeat_b=COUNTS,
        level=st.sampled_from(Level),
        turn=COUNTS,
        token=maybe(COUNTS),
        text_a=TEXT,
        text_b=TEXT,
        margin_a=maybe(REALS),
        margin_b=maybe(REALS),
        cause=TEXT,
    )


MODELS = st.builds(
    Model,
    name=NAMES,
    folder=NAMES.map(lambda name: Path("/models") / name),
    digest=st.just("sha256:" + "0" * 64),
    tool_call_parser=maybe(NAMES),
)
