"""A run's summary, for people and for machines, from records made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
import run_records as made
from golden_files import check_golden

from agenteval.audit import RunFacts, audit_run, run_verdict
from agenteval.compare import compare
from agenteval.digest import derive_seed
from agenteval.records import Episode, EpisodeStatus, FaultCount, Grade, RunEnd, StopReason, Turn, Verdict
from agenteval.report import RunSummary, exit_code, passed_text, summary_json, summary_text

Recorded = tuple[RunFacts, list[Turn]]


def summary(facts: RunFacts, turns: list[Turn]) -> RunSummary:
    evidence = audit_run(facts, turns)
    verdict = run_verdict(facts, evidence)
    grades = tuple(
        Grade(
            run_id=made.RUN,
            episode_id=episode.plan.episode_id,
            check=0,
            kind="answer",
            passed=place != 1,
            reason="the answer is 'done'" if place != 1 else "the answer 'done' lacks 'paid'",
            weight=1.0,
        )
        for place, episode in enumerate(facts.episodes)
        if episode.status is EpisodeStatus.FINISHED
    )
    return RunSummary(
        run=facts.run,
        end=RunEnd(run_id=made.RUN, ended_at=made.START, status="finished", verdict=verdict, message=None),
        contract=facts.contract,
        episodes=facts.episodes,
        passed={grade.episode_id: grade.passed for grade in grades},
        grades=grades,
        divergences=facts.divergences,
        evidence=evidence,
        faults=tuple(fault_counts(facts, turns)),
    )


def fault_counts(facts: RunFacts, turns: list[Turn]) -> Iterator[FaultCount]:
    """Every fault of the run's only task in every episode, as the view has them."""
    (task,) = facts.tasks
    for episode in facts.episodes:
        calls = [call for turn in turns if turn.episode_id == episode.plan.episode_id for call in turn.tool_calls]
        for place, fault in enumerate(task.definition["faults"]):
            label = f"{fault['kind']}#{place}"
            yield FaultCount(
                episode_id=episode.plan.episode_id,
                task=task.task,
                variant=task.variant,
                fault=label,
                tool=fault["tool"],
                fired=sum(call.fault == label for call in calls),
            )


def kept() -> RunSummary:
    return summary(*made.kept_run(made.contract()))


def diverged() -> RunSummary:
    """Fifteen pairs that differ: every one is named."""
    facts, turns = made.kept_run(made.contract("default"))
    seed = facts.contract.sampling.seed
    tasks = [f"task-{place // 2:02d}" for place in range(30)]
    plans = [
        made.plan(place, task=task, repeat=place % 2, seed=derive_seed(seed, task, "base", 0))
        for place, task in enumerate(tasks)
    ]
    divergences = []
    for first, second in zip(plans[::2], plans[1::2], strict=True):
        changed = replace(made.turn(0, second), output_ids=(11, 99, 13), output_tokens=("a", "\x1b[31m\n", "c"))
        if first.position >= 20:
            changed = replace(made.turn(0, second), logprobs=(-0.25, -0.5001, -0.125), cached_tokens=16)
        found = compare(made.trajectory(made.turn(0, first), of=first), made.trajectory(changed, of=second))
        assert found is not None
        divergences.append(found)
    run = replace(facts.run, planned_episodes=30)
    turns = [*made.probes(facts.contract), *(made.turn(0, plan) for plan in plans)]
    episodes = tuple(made.episode(plan, turns=1) for plan in plans)
    facts = replace(facts, run=run, episodes=episodes, divergences=tuple(divergences))
    return summary(made.with_end(facts, len(turns)), turns)


def breached() -> RunSummary:
    facts, turns = made.kept_run(made.contract())
    turns[-3] = replace(turns[-3], cached_tokens=16, requests_in_flight=3)
    return summary(facts, turns)


def outside() -> RunSummary:
    """A server that someone else runs, and that tells nothing of itself."""
    facts, turns = made.kept_run(made.contract())
    boot, _ = facts.boots[0]
    bare = {"version": "0.32.0", "served_models": ["fake"], "cache_config": {}, "config": {}, "log": {}, "metrics": {}}
    boots = ((replace(boot, is_managed=False, facts=bare), made.boot_end(7, prefix_cache_hits=None)),)
    return summary(replace(facts, boots=boots, run=replace(facts.run, model_digest="unknown")), turns)


def faulty() -> RunSummary:
    """Two faults that both repeats met, and one that neither did."""
    facts, turns = made.kept_run(made.contract())
    faults = [{"kind": kind, "tool": "look"} for kind in ("error", "latency", "stale")]
    met = [
        replace(turn, tool_calls=(made.call(turn.turn, fault=("error#0", "latency#1")[turn.turn]),))
        if turn.kind == "episode"
        else turn
        for turn in turns
    ]
    return summary(replace(facts, tasks=(made.task_record(faults=faults),)), met)


def not_run() -> RunSummary:
    facts, turns = made.kept_run(made.contract())
    failed: Episode = replace(
        facts.episodes[1],
        status=EpisodeStatus.NOT_RUN,
        stop_reason=StopReason.SERVER,
        answer=None,
        message="The server answered 500: \x1b[31mno\nmemory.",
    )
    return summary(replace(facts, episodes=(facts.episodes[0], failed)), turns)


def stopped() -> RunSummary:
    end = RunEnd(run_id=made.RUN, ended_at=made.START, status="stopped", verdict=None, message="Run run-1 was stopped.")
    return replace(kept(), end=end, evidence=(), episodes=(), passed={}, faults=())


def running() -> RunSummary:
    return replace(stopped(), end=None)


def cut_short() -> RunSummary:
    """A pair has finished and was not compared; one check of it could not be evaluated."""
    message = "The server exited. Its log ends:\n\x1b[31mout of memory"
    end = RunEnd(run_id=made.RUN, ended_at=made.START, status="failed", verdict=None, message=message)
    done = kept()
    passed: dict[str, bool | None] = {done.episodes[0].plan.episode_id: True, done.episodes[1].plan.episode_id: None}
    return replace(done, end=end, evidence=(), passed=passed, run=replace(done.run, planned_episodes=4))


RUNS = {
    "kept": (kept, 0),
    "diverged": (diverged, 1),
    "breached": (breached, 1),
    "outside": (outside, 2),
    "faulty": (faulty, 0),
    "not-run": (not_run, 2),
    "stopped": (stopped, 2),
    "running": (running, 2),
    "cut-short": (cut_short, 2),
}


@pytest.mark.parametrize("name", list(RUNS))
def test_summary_for_people(name: str) -> None:
    check_golden(f"summary/{name}.txt", summary_text(RUNS[name][0]()) + "\n")


@pytest.mark.parametrize("name", list(RUNS))
def test_summary_for_machines(name: str) -> None:
    text = json.dumps(summary_json(RUNS[name][0]()), indent=2, ensure_ascii=True)
    check_golden(f"summary/{name}.json", text + "\n")


def test_that_an_episode_is_not_graded_is_said_once() -> None:
    of = kept()
    grades = tuple(replace(grade, passed=None, reason="not graded: there is no key 'a'") for grade in of.grades)
    lines = summary_text(replace(of, grades=grades)).splitlines()
    assert "          not graded: task/base: there is no key 'a' (2 episodes)" in lines


def test_an_agent_of_ones_own_is_named() -> None:
    run = replace(kept().run, agent="my.graphs:plan")
    assert summary_text(replace(kept(), run=run)).splitlines()[0].endswith(", model fake, agent my.graphs:plan")


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        pytest.param({"passed": 5, "graded": 6, "not_graded": 0}, "5 of 6 (83%)", id="all-graded"),
        pytest.param({"passed": 4, "graded": 4, "not_graded": 2}, "4 of 4 (100%), 2 not graded", id="some"),
        pytest.param({"passed": 0, "graded": 0, "not_graded": 3}, "-, 3 not graded", id="none-graded"),
        pytest.param({"passed": 0, "graded": 0, "not_graded": 0}, "-", id="nothing-yet"),
    ],
)
def test_a_share_says_how_many_are_left_out_of_it(counts: dict[str, int], text: str) -> None:
    assert passed_text(**counts) == text


@pytest.mark.parametrize("name", list(RUNS))
def test_the_exit_status_follows_from_the_verdict(name: str) -> None:
    build, code = RUNS[name]
    assert exit_code(build()) == summary_json(build())["exit_code"] == code


def test_every_verdict_has_an_exit_status() -> None:
    ends = [replace(kept().end, verdict=verdict) for verdict in Verdict]  # type: ignore[type-var]
    assert [exit_code(replace(kept(), end=end)) for end in ends] == [0, 1, 1, 2]


def test_all_is_said_only_of_all() -> None:
    """999 of 1000 are no 100%, and one of 1000 is not nothing."""
    episodes = tuple(made.episode(made.plan(place)) for place in range(1000))
    for passing, said in [(0, "0%"), (1, "1%"), (999, "99%"), (1000, "100%")]:
        passed: dict[str, bool | None] = {item.plan.episode_id: item.plan.position < passing for item in episodes}
        assert f"{passing} of 1000 passed ({said})" in summary_text(replace(kept(), episodes=episodes, passed=passed))


def test_a_clause_that_promises_nothing_is_not_said_to_be_kept() -> None:
    of = made.contract("default")
    same = summary(*made.kept_run(of))
    assert same.verdict is Verdict.KEPT
    assert summary_text(same).endswith("kept: every clause that promises something was kept")


def test_a_clause_is_shown_with_what_decided_it() -> None:
    """Rows that were kept stand before the breach; the breach is what is told first."""
    done = breached()
    for clause, verdict in done.clauses.items():
        [line] = [line for line in summary_text(done).splitlines() if line.startswith(f"  {clause} ")]
        row = next(row for row in done.evidence if row.clause == clause and row.fact in line)
        assert row.verdict is verdict


def test_nothing_that_a_model_wrote_steers_the_terminal() -> None:
    for build, _ in RUNS.values():
        assert all(line.isprintable() for line in summary_text(build()).splitlines())
