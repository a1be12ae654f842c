"""What a report shows, as values: runs, comparisons and examples; reads the store, makes no markup."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agenteval.audit import clause_verdicts
from agenteval.compare import ORDER, Mean, Rate, Trajectory, Variety, pass_at_k, pass_hat_k, rate, varieties
from agenteval.diff import Pair, RunDiff, diff_runs, trajectories_of
from agenteval.records import Evidence, Level, Run, RunCosts
from agenteval.report.page.examples import Example, make_example
from agenteval.report.page.origin import engine_text, machine_text
from agenteval.report.summary import RunSummary, summarize
from agenteval.store import RunReader

EXAMPLES = 5
"""Divergences of each comparison that are shown from both sides."""
MARGIN_EDGES = {0.0: "0, a tie", 1 / 16: "to 1/16", 1 / 8: "to 1/8", 1 / 4: "to 1/4", 1 / 2: "to 1/2", 1.0: "to 1"}
"""Upper bound in nats of each group of margins, and its name; in half precision logits lie such steps apart."""


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

    name: str
    """Its contract, with the end of its id where several runs of the report have that contract."""
    summary: RunSummary
    engine: str
    machine: str
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
class MarginCount:
    """Pairs whose margin, where they part, lies in one range."""

    text: str
    """The range, such as `to 1/8`."""
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPart:
    """Two runs, or the repeats of one, beside each other."""

    name: str
    names: tuple[str, str] | None
    """Of the two runs; None for the repeats of one."""
    diff: RunDiff
    level: Level
    """The level of which turns, margins and causes are told: tokens, or logprobs where no token differs."""
    margins: tuple[MarginCount, ...]
    """Every group, also the empty ones."""
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
    summaries = [summarize(reader) for reader in readers]
    names = run_names([summary.run for summary in summaries])
    runs = tuple(map(_run_part, readers, summaries, names))
    first = readers[0]
    comparisons = [
        _comparison(f"{part.name}: repeats", reader, None)
        for reader, part in zip(readers, runs, strict=True)
        if part.summary.pairs
    ]
    comparisons += [
        _comparison(f"{name} against {names[0]}", first, reader, names=(names[0], name))
        for name, reader in zip(names[1:], readers[1:], strict=True)
    ]
    return Report(runs=runs, comparisons=tuple(comparisons))


def run_names(runs: Sequence[Run]) -> list[str]:
    """What each run is called in a report: its contract, as far as that tells it from the others.

    Args:
        runs: Different ones.
    """
    contracts = Counter(run.contract for run in runs)
    ends = [f"{run.contract} {run.run_id.rpartition('-')[2]}" for run in runs]
    return [
        run.contract
        if contracts[run.contract] == 1
        else end
        if ends.count(end) == 1
        else f"{run.contract} {run.run_id}"
        for run, end in zip(runs, ends, strict=True)
    ]


def margin_counts(margins: Iterable[float]) -> tuple[MarginCount, ...]:
    """Margins in groups that are the same in every report, so that reports can be laid beside each other.

    The group below 0 is left out where it is empty, as it is wherever the likeliest token was drawn.

    Args:
        margins: Nats; below 0 where sampling drew another token than the likeliest.
    """
    texts = ["below 0", *MARGIN_EDGES.values(), "above 1"]
    counts = Counter(0 if margin < 0 else 1 + bisect_left(list(MARGIN_EDGES), margin) for margin in margins)
    first = 0 if counts[0] else 1
    return tuple(MarginCount(text=texts[place], pairs=counts[place]) for place in range(first, len(texts)))


def _run_part(reader: RunReader, summary: RunSummary, name: str) -> RunPart:
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
        name=name,
        summary=summary,
        engine=engine_text(summary.run, [boot for boot, _ in reader.boots()]),
        machine=machine_text(summary.run),
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


def _comparison(
    name: str, a: RunReader, b: RunReader | None, *, names: tuple[str, str] | None = None
) -> ComparisonPart:
    """Two runs beside each other, or the repeats of one, which have no names of their own."""
    diff = diff_runs(a, b)
    level = Level.TOKENS if diff.diverging(Level.TOKENS) else Level.LOGPROBS
    return ComparisonPart(
        name=name,
        names=names,
        diff=diff,
        level=level,
        margins=margin_counts(diff.margins(level)),
        examples=tuple(
            make_example(pair, *trajectories_of(a, b, pair), names=names)
            for pair in most_telling(diff.diverging(level))[:EXAMPLES]
        ),
    )


def most_telling(pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs that differ, the loosest level first, and at each level one of every task variant before a second one."""
    seen: Counter[tuple[Level, str, str]] = Counter()
    ranks: list[tuple[int, int, int, Pair]] = []
    for pair in pairs:
        assert pair.divergence is not None
        key = (pair.divergence.level, pair.task, pair.variant)
        ranks.append((-ORDER.index(pair.divergence.level), seen[key], len(ranks), pair))
        seen[key] += 1
    return [pair for *_, pair in sorted(ranks, key=lambda rank: rank[:3])]
