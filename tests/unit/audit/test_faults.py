"""Evidence on declared faults: which happened, and that one which did not is the agent's doing and no breach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import run_records as made

from agenteval.audit import audit_run, clause_verdicts
from agenteval.records import ClauseVerdict, Evidence

DECLARED = [{"kind": "error", "tool": "look"}, {"kind": "stale", "tool": "look"}]


def evidence(faults: Sequence[dict[str, str]], fired: Sequence[Sequence[str | None]]) -> tuple[Evidence, ...]:
    """The evidence of a strict run whose episodes met these faults, one a turn."""
    facts, turns = made.kept_run(made.contract())
    labels = [label for episode in fired for label in episode]
    played = [item for item in turns if item.kind == "episode"]
    met = [
        replace(item, tool_calls=(made.call(item.turn, fault=label),))
        for item, label in zip(played, labels, strict=True)
    ]
    probes = [item for item in turns if item.kind == "probe"]
    return audit_run(replace(facts, tasks=(made.task_record(faults=list(faults)),)), [*probes, *met])


def fault_row(rows: Sequence[Evidence]) -> Evidence | None:
    return next((row for row in rows if row.fact == "declared faults that fired"), None)


@pytest.mark.parametrize(
    ("fired", "verdict", "observed", "silent"),
    [
        pytest.param([["error#0", "stale#1"]] * 2, ClauseVerdict.KEPT, "4 of 4", [], id="all"),
        pytest.param([["error#0", "error#0"]] * 2, ClauseVerdict.NOT_PROMISED, "2 of 4", ["stale#1"], id="one-kind"),
        pytest.param(
            [["error#0", "stale#1"], ["error#0", None]],
            ClauseVerdict.NOT_PROMISED,
            "3 of 4",
            ["stale#1"],
            id="one-repeat",
        ),
        pytest.param([[None, None]] * 2, ClauseVerdict.NOT_PROMISED, "0 of 4", ["error#0", "stale#1"], id="none"),
    ],
)
def test_faults_that_never_fired_are_named_and_break_no_clause(
    fired: list[list[str | None]], verdict: ClauseVerdict, observed: str, silent: list[str]
) -> None:
    rows = evidence(DECLARED, fired)
    row = fault_row(rows)
    assert row is not None
    assert (row.clause, row.verdict, row.observed) == ("tools", verdict, observed)
    assert row.detail["never_fired"] == ", ".join(f"task/base {label}" for label in silent)
    assert clause_verdicts(rows)["tools"] is ClauseVerdict.KEPT


def test_a_task_without_faults_says_nothing_of_them() -> None:
    assert fault_row(evidence([], [[None, None]] * 2)) is None


def test_a_run_of_an_older_version_without_its_tasks_says_nothing_of_faults() -> None:
    facts, turns = made.kept_run(made.contract())
    assert fault_row(audit_run(replace(facts, tasks=()), turns)) is None


def test_equal_calls_in_states_that_differ_by_fired_faults_may_differ() -> None:
    """The same call met a fault once: its state says so, and nothing is unequal."""
    facts, turns = made.kept_run(made.contract())
    changed = [
        replace(item, tool_calls=(made.call(item.turn, state_digest=f"s{place}", result=f"{place}"),))
        if item.kind == "episode"
        else item
        for place, item in enumerate(turns)
    ]
    assert clause_verdicts(audit_run(facts, changed))["tools"] is ClauseVerdict.KEPT
