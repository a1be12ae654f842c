"""What a sweep's cells come to: each compared with its reference and with its own first repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agenteval.compare import ORDER, Flips, Rate, flips, rate
from agenteval.diff import Pair, RunDiff, diff_runs
from agenteval.errors import DamagedRecordError
from agenteval.records import CellOutcome, ComparedPair, Level, SweepRecord, Verdict
from agenteval.store import RunReader, list_runs, read_sweep

Against = Literal["reference", "repeats"]


def compare_cells(path: Path, outcomes: Sequence[CellOutcome]) -> Iterator[ComparedPair]:
    """Every pair of episodes: of each cell and its reference, and of each cell's repeats.

    Args:
        path: The database that holds the runs.
        outcomes: Of all cells; those without a run have no pairs.

    Raises:
        StoreError: If the database cannot be read.
    """
    readers = {
        outcome.cell: RunReader(path=path, run_id=outcome.run_id) for outcome in outcomes if outcome.run_id is not None
    }
    for outcome in outcomes:
        reader, reference = readers.get(outcome.cell), readers.get(outcome.reference)
        if reader is None:
            continue
        if reference is not None and outcome.cell != outcome.reference:
            yield from _pairs(outcome.cell, "reference", diff_runs(reference, reader))
        yield from _pairs(outcome.cell, "repeats", diff_runs(reader, None))


def _pairs(cell: str, against: Against, diff: RunDiff) -> Iterator[ComparedPair]:
    for pair in diff.pairs:
        yield _compared(cell, against, pair)


def _compared(cell: str, against: Against, pair: Pair) -> ComparedPair:
    found = pair.divergence
    return ComparedPair(
        cell=cell,
        against=against,
        task=pair.task,
        variant=pair.variant,
        sample=pair.sample,
        repeat_a=pair.repeat_a,
        repeat_b=pair.repeat_b,
        episode_a=pair.episode_a,
        episode_b=pair.episode_b,
        passed_a=pair.passed_a,
        passed_b=pair.passed_b,
        level=None if found is None else found.level,
        turn=None if found is None else found.turn,
        token=None if found is None else found.token,
        margin_a=None if found is None else found.margin_a,
        margin_b=None if found is None else found.margin_b,
        cause_kind=None if found is None else found.cause_kind,
        cause=None if found is None else found.cause,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One line of a sweep's table."""

    cell: str
    against: Against
    other: str
    """Name of the cell that it is compared with; its own for its repeats."""
    rates: Mapping[Level, Rate]
    """Level to the pairs that differ there."""
    flips: Flips


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """One cell's outcome beside what its run came to."""

    outcome: CellOutcome
    verdict: Verdict | None
    episodes: int
    passed: Rate | None
    """Of the graded episodes; None where there is no run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSummary:
    """A sweep as a person wants to see it."""

    sweep: SweepRecord
    cells: tuple[CellSummary, ...]
    comparisons: tuple[Comparison, ...]
    """With the reference first, then the repeats, each in the order of the cells."""


def summarize_sweep(path: Path, sweep_id: str) -> SweepSummary:
    """Read a sweep's summary from the database.

    Raises:
        UnknownNameError: If there is no such sweep.
        StoreError: If it cannot be read.
    """
    sweep, outcomes, pairs = read_sweep(path, sweep_id)
    groups: dict[tuple[str, str], list[ComparedPair]] = {}
    for pair in pairs:
        groups.setdefault((pair.cell, pair.against), []).append(pair)
    against: tuple[Against, ...] = ("reference", "repeats")
    comparisons = [
        _comparison(outcome, side, groups[outcome.cell, side])
        for side in against
        for outcome in outcomes
        if (outcome.cell, side) in groups
    ]
    runs = {row["run_id"]: row for row in list_runs(path)}
    cells = []
    for outcome in outcomes:
        row = runs.get(outcome.run_id)
        cells.append(
            CellSummary(
                outcome=outcome,
                verdict=_verdict(row) if row else None,
                episodes=row["finished_episodes"] if row else 0,
                passed=rate(row["passed"], row["graded"]) if row else None,
            )
        )
    return SweepSummary(sweep=sweep, cells=tuple(cells), comparisons=tuple(comparisons))


def _verdict(run: Mapping[str, Any]) -> Verdict | None:
    if run["verdict"] is None:
        return None
    try:
        return Verdict(run["verdict"])
    except ValueError as error:
        raise DamagedRecordError(run_id=run["run_id"], table="runs", reason=str(error)) from error


def _comparison(outcome: CellOutcome, against: Against, pairs: Sequence[ComparedPair]) -> Comparison:
    return Comparison(
        cell=outcome.cell,
        against=against,
        other=outcome.reference if against == "reference" else outcome.cell,
        rates={level: rate(sum(_differs(pair, level) for pair in pairs), len(pairs)) for level in ORDER},
        flips=flips((pair.passed_a, pair.passed_b) for pair in pairs),
    )


def _differs(pair: ComparedPair, level: Level) -> bool:
    return pair.level is not None and ORDER.index(pair.level) >= ORDER.index(level)
