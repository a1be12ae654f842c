"""What a report shows, as values: runs, comparisons and examples; reads the store, makes no markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from agenteval.audit import clause_verdicts
from agenteval.compare import (
    Mean,
    Rate,
    Trajectory,
    Variety,
    margin_at,
    pass_at_k,
    pass_hat_k,
    rate,
    varieties,
)
from agenteval.diff import Pair, RunDiff, diff_runs, trajectories_of
from agenteval.log import printable
from agenteval.records import Evidence, Level, RunCosts, ToolCall, Turn
from agenteval.report.sides import aftermath_text
from agenteval.report.summary import RunSummary, summarize
from agenteval.report.text import divergence_place
from agenteval.store import RunReader

EXAMPLES = 5
"""Divergences of each comparison that are shown from both sides."""
_BEFORE, _AFTER, _LONG = 160, 160, 600
"""Characters shown before and after the token that differs, and of a call or result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One clause with every fact about it."""

    name: str
    verdict: str
    facts: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRate:
    """How often one task passed."""

    task: str
    passed: Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRate:
    """What k samples of a task variant come to."""

    k: int
    any_passes: Mean
    """pass@k: at least one of k passes."""
    all_pass: Mean
    """pass^k: all of k pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """One run of the report."""

    summary: RunSummary
    clauses: tuple[Clause, ...]
    passed: Rate
    tasks: tuple[TaskRate, ...]
    by_samples: tuple[SampleRate, ...]
    """For each k up to the number of samples; empty where there is one sample."""
    varieties: tuple[Variety, ...]
    """Task variants that were attempted more than once."""
    costs: RunCosts
    elapsed_s: float | None
    """From its start to its verdict; None where it has no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideText:
    """One side of an example, around the token that differs."""

    before: str
    token: str
    after: str
    logprob: float | None
    runner_up: str | None
    margin: float | None
    cached_tokens: int | None
    requests_in_flight: int
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One divergence from both sides."""

    label: str
    place: str
    signs: tuple[str, ...]
    aftermath: str
    sides: tuple[SideText, SideText] | None
    """None where one side has no such turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPart:
    """Two runs, or the repeats of one, beside each other."""

    name: str
    diff: RunDiff
    level: Level
    """The level of which turns, margins and causes are told: tokens, or logprobs where no token differs."""
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a report shows."""

    runs: tuple[RunPart, ...]
    comparisons: tuple[ComparisonPart, ...]


def make_report(readers: Sequence[RunReader]) -> Report:
    """Read what a report of some runs shows; every run after the first is compared with the first.

    Args:
        readers: Of one database or several; the first is the reference.

    Raises:
        UnknownNameError: If there is no such run.
        StoreError: If a database cannot be read.
    """
    runs = tuple(_run_part(reader) for reader in readers)
    first = readers[0]
    comparisons = [
        _comparison(f"{part.summary.run.contract}: repeats", reader, None)
        for reader, part in zip(readers, runs, strict=True)
        if part.summary.pairs
    ]
    names = [part.summary.run.contract for part in runs]
    comparisons += [
        _comparison(f"{name} against {names[0]}", first, reader)
        for name, reader in zip(names[1:], readers[1:], strict=True)
    ]
    return Report(runs=runs, comparisons=tuple(comparisons))


def _run_part(reader: RunReader) -> RunPart:
    summary = summarize(reader)
    verdicts = clause_verdicts(summary.evidence) if summary.is_judged else {}
    clauses = tuple(
        Clause(
            name=name,
            verdict=verdict.value,
            facts=tuple(row for row in summary.evidence if row.clause == name),
        )
        for name, verdict in verdicts.items()
    )
    by_task: dict[str, list[bool]] = {}
    for episode in summary.episodes:
        passed = summary.passed.get(episode.plan.episode_id)
        if passed is not None:
            by_task.setdefault(episode.plan.task, []).append(passed)
    end = summary.end
    return RunPart(
        summary=summary,
        clauses=clauses,
        passed=rate(summary.passing, summary.passing + summary.failing),
        tasks=tuple(TaskRate(task=task, passed=rate(sum(found), len(found))) for task, found in by_task.items()),
        by_samples=_by_samples(summary),
        varieties=_varieties(reader, summary) if summary.run.samples * summary.run.repeats > 1 else (),
        costs=reader.costs(),
        elapsed_s=None if end is None else (end.ended_at - summary.run.started_at).total_seconds(),
    )


def _by_samples(summary: RunSummary) -> tuple[SampleRate, ...]:
    """pass@k and pass^k over the first repeat of every sample; variants that lack a graded sample are left out."""
    passed: dict[str, list[bool]] = {}
    for episode in summary.episodes:
        found = summary.passed.get(episode.plan.episode_id)
        if episode.plan.repeat == 0 and found is not None:
            passed.setdefault(f"{episode.plan.task}/{episode.plan.variant}", []).append(found)
    samples = summary.run.samples
    whole = {variant: found for variant, found in passed.items() if len(found) == samples}
    if samples == 1 or not whole:
        return ()
    return tuple(
        SampleRate(k=k, any_passes=pass_at_k(whole, k), all_pass=pass_hat_k(whole, k)) for k in range(1, samples + 1)
    )


def _varieties(reader: RunReader, summary: RunSummary) -> tuple[Variety, ...]:
    trajectories = (
        Trajectory(episode=episode, turns=turns, passed=summary.passed.get(episode.plan.episode_id))
        for episode, turns in reader.trajectories()
    )
    return tuple(found for found in varieties(trajectories) if found.episodes > 1)


def _comparison(name: str, a: RunReader, b: RunReader | None) -> ComparisonPart:
    diff = diff_runs(a, b)
    level = Level.TOKENS if diff.diverging(Level.TOKENS) else Level.LOGPROBS
    examples = tuple(_example(pair, *trajectories_of(a, b, pair)) for pair in diff.diverging(level)[:EXAMPLES])
    return ComparisonPart(name=name, diff=diff, level=level, examples=examples)


def _example(pair: Pair, a: Trajectory, b: Trajectory) -> Example:
    found = pair.divergence
    assert found is not None
    assert pair.aftermath is not None
    sides = None
    if found.turn < min(len(a.turns), len(b.turns)):
        left, right = a.turns[found.turn], b.turns[found.turn]
        sides = (_side(left, found.token), _side(right, found.token))
    return Example(
        label=printable(pair.label),
        place=divergence_place(found),
        signs=tuple(map(printable, pair.signs)),
        aftermath=aftermath_text(pair.aftermath, a, b),
        sides=sides,
    )


def _side(turn: Turn, token: int | None) -> SideText:
    place = len(turn.output_tokens) if token is None else token
    is_there = place < len(turn.output_ids)
    return SideText(
        before=_cut("".join(turn.output_tokens[:place]), _BEFORE, from_end=True),
        token=printable(turn.output_tokens[place]) if is_there else "",
        after=_cut("".join(turn.output_tokens[place + 1 :]), _AFTER),
        logprob=turn.logprobs[place] if is_there else None,
        runner_up=printable(turn.runner_up_tokens[place] or "") if is_there else None,
        margin=margin_at(turn, place) if is_there else None,
        cached_tokens=turn.cached_tokens,
        requests_in_flight=turn.requests_in_flight,
        calls=tuple(_call(call) for call in turn.tool_calls),
    )


def _call(call: ToolCall) -> str:
    error = f" (error: {call.error})" if call.error is not None else ""
    return _cut(f"{call.tool}({call.arguments}) → {call.result}{error}", _LONG)


def _cut(text: str, characters: int, *, from_end: bool = False) -> str:
    """A text that fits, safe to show; what is left out is said."""
    if len(text) > characters:
        text = f"… {text[-characters:]}" if from_end else f"{text[:characters]} …"
    return printable(text)


def differing_calls(example: Example) -> Iterator[tuple[str, str]]:
    """Calls of both sides, the nth beside the nth; empty text where a side has none."""
    if example.sides is not None:
        yield from zip_longest(example.sides[0].calls, example.sides[1].calls, fillvalue="")
