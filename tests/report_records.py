"""A report of two runs made by hand: a strict one, and its control, whose cache turned a token."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace

import run_records as made

from agenteval.compare import Mean, Trajectory, Variety, compare_pair, rate
from agenteval.diff import Pair, RunDiff, Unpaired
from agenteval.records import ClauseVerdict, Evidence, Grade, Level, Run, RunCosts, RunEnd, Turn, Verdict
from agenteval.report import RunSummary
from agenteval.report.page import Report
from agenteval.report.page.examples import make_example
from agenteval.report.page.values import Clause, ComparisonPart, RunPart, SampleRate, TaskRate, margin_counts

SETTINGS = ("cache.mode: disabled against shared",)
CONTROL = "run-2"


def sides() -> tuple[Trajectory, Trajectory]:
    """Two turns; the second token of the second one was drawn otherwise where the cache was read."""
    second = made.turn(1, tool_calls=(made.call(1, arguments='{"id":7}', result='{"found":7}'),))
    first = made.trajectory(made.turn(), second)
    turned = replace(
        second,
        output_ids=(11, 99, 13),
        output_tokens=("a", "y", "c"),
        logprobs=(-0.25, -0.625, -0.125),
        runner_up_tokens=("x", "b", None),
        runner_up_logprobs=(-2.25, -0.6875, None),
        cached_tokens=16,
        tool_calls=(made.call(1, arguments='{"id":8}', result='{"error":"none"}', error="there is no 8"),),
    )
    return first, made.trajectory(made.turn(), turned, passed=False)


def pair(a: Trajectory, b: Trajectory, *, settings: tuple[str, ...] = (), repeats: tuple[int, int] = (0, 0)) -> Pair:
    """Two trajectories as a pair of runs."""
    found = compare_pair(a, b, settings=settings)
    plan = a.episode.plan
    return Pair(
        task=plan.task,
        variant=plan.variant,
        sample=plan.sample,
        repeat_a=repeats[0],
        repeat_b=repeats[1],
        episode_a=plan.episode_id,
        episode_b=b.episode.plan.episode_id,
        passed_a=a.passed,
        passed_b=b.passed,
        divergence=found.divergence,
        aftermath=found.aftermath,
        signs=found.signs,
    )


def diff(a: Run, b: Run, *pairs: Pair) -> RunDiff:
    """Pairs of two runs, of which one has an episode more."""
    lone = Unpaired(side="a", label="task/base sample 0 repeat 1", reason="b has no repeat 1")
    return RunDiff(run_a=a, run_b=b, pairs=pairs, unpaired=(lone,), settings=SETTINGS)


def run_part(contract: str, run_id: str, *, passed: bool) -> RunPart:
    """A run of one task under a contract."""
    facts, _ = made.kept_run(made.contract(contract))
    evidence = tuple(_facts(run_id, promised=passed))
    grades = tuple(_grade(item.plan.episode_id, passed=passed) for item in facts.episodes)
    run = replace(facts.run, run_id=run_id, facts={"argv": ["run", "a suite", "--contract", contract]})
    ended = made.START + datetime.timedelta(seconds=75)
    verdict = Verdict.KEPT if passed else Verdict.DIVERGED
    summary = RunSummary(
        run=run,
        end=RunEnd(run_id=run_id, ended_at=ended, status="finished", verdict=verdict, message=None),
        contract=facts.contract,
        episodes=facts.episodes,
        passed={grade.episode_id: grade.passed for grade in grades},
        grades=grades,
        divergences=(),
        evidence=evidence,
        faults=(),
    )
    return RunPart(
        name=contract,
        summary=summary,
        engine="vLLM 0.32.0, cpu",
        machine="a processor",
        clauses=tuple(Clause(name=fact.clause, verdict=fact.verdict.value, facts=(fact,)) for fact in evidence),
        passed=rate(summary.passing, len(grades)),
        tasks=(TaskRate(task="task", passed=rate(summary.passing, len(grades))),),
        by_samples=(
            SampleRate(k=1, any_passes=Mean(value=0.5, interval=None), all_pass=Mean(value=0.5, interval=None)),
        ),
        varieties=(Variety(task="task", variant="base", episodes=2, by_tokens=2, by_calls=1),),
        costs=RunCosts(turns=4, prompt_tokens=60, cached_tokens=16, output_tokens=12, episode_s=1.0),
        elapsed_s=75.0,
    )


def report() -> Report:
    """The strict run, the control, and the control against the strict run: one pair agrees, one does not."""
    strict = run_part("strict", made.RUN, passed=True)
    control = run_part("default", CONTROL, passed=False)
    return Report(runs=(strict, control), comparisons=(comparison(strict, control, *sides()),))


def comparison(strict: RunPart, control: RunPart, a: Trajectory, b: Trajectory) -> ComparisonPart:
    """Two runs by a pair that differs and one that does not."""
    apart, same = pair(a, b, settings=SETTINGS), pair(a, a)
    found = diff(strict.summary.run, control.summary.run, apart, same)
    return ComparisonPart(
        name="default against strict",
        diff=found,
        names=("strict", "default"),
        level=Level.TOKENS,
        margins=margin_counts(found.margins(Level.TOKENS)),
        examples=(make_example(apart, a, b, names=("strict", "default")),),
    )


def hostile(text: str) -> Report:
    """The same report where a text stands wherever a model, a tool or a suite may write."""
    a, b = sides()
    sided = [replace(side, turns=(side.turns[0], _hostile(side.turns[1], text))) for side in (a, b)]
    found = report()
    strict, control = found.runs
    task = replace(strict.tasks[0], task=text)
    run = replace(strict.summary.run, model=text, suite=text, agent=text, facts={"argv": [text]})
    summary = replace(strict.summary, run=run)
    facts = tuple(replace(fact, fact=text, expected=text, observed=text) for fact in strict.clauses[0].facts)
    clause = replace(strict.clauses[0], facts=facts)
    strict = replace(strict, summary=summary, tasks=(task,), clauses=(clause,), engine=text, machine=text)
    part = comparison(strict, control, *sided)
    example = replace(part.examples[0], signs=(text, *part.examples[0].signs))
    return Report(runs=(strict, control), comparisons=(replace(part, examples=(example,)),))


def _hostile(turn: Turn, text: str) -> Turn:
    """The turn at which the sides part, with the text as every token and in every call."""
    calls = tuple(replace(call, arguments=text + call.arguments, result=text + call.result) for call in turn.tool_calls)
    tokens = (text,) * len(turn.output_ids)
    return replace(turn, output_tokens=tokens, runner_up_tokens=tokens, tool_calls=calls)


def _grade(episode_id: str, *, passed: bool) -> Grade:
    return Grade(
        run_id=made.RUN, episode_id=episode_id, check=0, kind="answer", passed=passed, reason="so it is", weight=1.0
    )


def _facts(run_id: str, *, promised: bool) -> Iterator[Evidence]:
    """Two clauses with a fact each."""
    kept, other = ClauseVerdict.KEPT, ClauseVerdict.KEPT if promised else ClauseVerdict.NOT_PROMISED
    for clause, fact, expected, observed, verdict in (
        ("cache", "turns that read from the cache", "none" if promised else "any", "0 of 4", kept),
        ("repeats", "repeats compared at logprobs", "all 1 pairs agree", "0 of 1 pairs differ", other),
    ):
        yield Evidence(
            run_id=run_id, clause=clause, fact=fact, verdict=verdict, expected=expected, observed=observed, detail={}
        )
