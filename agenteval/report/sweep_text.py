"""A sweep's summary as text for a terminal and as JSON for a machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from agenteval.columns import table
from agenteval.compare import ORDER, Flips
from agenteval.log import printable
from agenteval.records import Verdict
from agenteval.report.diff_text import rate_json, rate_text
from agenteval.sweep import CellSummary, Comparison, SweepSummary

_MESSAGE = 100
"""Characters of a reason that the text shows; --json has all."""


def sweep_text(summary: SweepSummary) -> str:
    """The summary for people: how each cell differs from its reference, then its repeats, then the cells."""
    sweep = summary.sweep
    lines = [f"sweep {sweep.sweep_id}: {len(summary.cells)} cells, {_duration(sweep.elapsed_s)}"]
    for against, title in (
        ("reference", "episodes that differ from the reference's, with 95% interval"),
        ("repeats", "repeats that differ from the first"),
    ):
        chosen = [item for item in summary.comparisons if item.against == against]
        if chosen:
            lines += ["", title, _comparison_table(chosen)]
    lines += ["", "cells", _cell_table(summary.cells)]
    reasons = [
        f"{cell.outcome.cell}: {cell.outcome.status}: {printable(_first_reason(cell.outcome.message))}"
        for cell in summary.cells
        if cell.outcome.message and cell.outcome.status != "left"
    ]
    return "\n".join(lines + (["", *reasons] if reasons else []))


def sweep_json(summary: SweepSummary) -> dict[str, Any]:
    """The summary for machines; keys are stable, unknown is null."""
    sweep = summary.sweep
    return {
        "sweep_id": sweep.sweep_id,
        "name": sweep.name,
        "definition": sweep.definition,
        "started_at": sweep.started_at.isoformat(),
        "elapsed_s": sweep.elapsed_s,
        "exit_code": sweep_exit_code(summary),
        "cells": [
            {
                **dataclasses.asdict(cell.outcome),
                "verdict": None if cell.verdict is None else cell.verdict.value,
                "episodes": cell.episodes,
                "passed": rate_json(cell.passed),
            }
            for cell in summary.cells
        ],
        "comparisons": [
            {
                "cell": item.cell,
                "against": item.against,
                "other": item.other,
                "rates": {level.value: rate_json(found) for level, found in item.rates.items()},
                "flips": dataclasses.asdict(item.flips),
            }
            for item in summary.comparisons
        ],
    }


def sweep_exit_code(summary: SweepSummary) -> int:
    """2 where a cell has no run or could not be told, 1 where one breached its contract, else 0.

    A divergence that a control only measures is what a sweep is for, and so is a contract that cannot be kept here.
    """
    unfinished = any(cell.outcome.status in ("failed", "stopped", "left") for cell in summary.cells)
    verdicts = {cell.verdict for cell in summary.cells}
    if unfinished or Verdict.UNPROVEN in verdicts:
        return 2
    return 1 if Verdict.BREACHED in verdicts else 0


def _comparison_table(comparisons: Sequence[Comparison]) -> str:
    rows = [
        (
            item.cell,
            *([item.other] if item.against == "reference" else []),
            str(item.rates[ORDER[0]].of),
            *(rate_text(item.rates[level]) for level in ORDER),
            *([_flips_text(item.flips)] if item.against == "reference" else []),
        )
        for item in comparisons
    ]
    is_reference = comparisons[0].against == "reference"
    columns = (
        "cell",
        *(["reference"] if is_reference else []),
        "pairs",
        *(level.value for level in ORDER),
        *(["pass ↔ fail"] if is_reference else []),
    )
    return table(columns, rows)


def _cell_table(cells: Sequence[CellSummary]) -> str:
    rows = [
        (
            cell.outcome.cell,
            cell.outcome.status,
            cell.verdict.value if cell.verdict else "-",
            str(cell.episodes),
            "-" if cell.passed is None else rate_text(cell.passed),
            _duration(cell.outcome.elapsed_s) if cell.outcome.elapsed_s else "-",
            cell.outcome.run_id or "-",
        )
        for cell in cells
    ]
    return table(("cell", "status", "verdict", "episodes", "passed", "time", "run"), rows)


def _flips_text(flips: Flips) -> str:
    text = f"{flips.passed_to_failed} lost, {flips.failed_to_passed} won"
    return text if flips.p_value is None else f"{text}, p {flips.p_value:.2g}"


def _first_reason(message: str | None) -> str:
    """The line of a message that says why, on one line."""
    lines = [line.strip() for line in (message or "").splitlines() if line.strip()]
    text = lines[1] if len(lines) > 1 and lines[0].endswith(":") else lines[0]
    return text if len(text) <= _MESSAGE else text[: _MESSAGE - 1] + "…"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
