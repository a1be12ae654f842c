"""What a report calls its runs, how it groups margins, and which divergences it shows first."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_records as made
import run_records

from agenteval.diff import Pair
from agenteval.records import Level
from agenteval.report.page.origin import engine_text, machine_text
from agenteval.report.page.values import margin_counts, most_telling, run_names


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        pytest.param([("1-strict-aa", "strict"), ("2-b-bb", "b")], ["strict", "b"], id="contracts-tell"),
        pytest.param([("1-b-aa", "b"), ("2-b-bb", "b"), ("3-c-cc", "c")], ["b aa", "b bb", "c"], id="ends-of-ids"),
        pytest.param([("1-b-aa", "b"), ("2-b-aa", "b")], ["b 1-b-aa", "b 2-b-aa"], id="whole-ids"),
    ],
)
def test_runs_have_names_of_their_own(runs: list[tuple[str, str]], names: list[str]) -> None:
    one = run_records.run(run_records.contract())
    assert run_names([replace(one, run_id=run_id, contract=contract) for run_id, contract in runs]) == names


def test_margins_fall_into_groups_whose_upper_bound_is_theirs() -> None:
    found = {group.text: group.pairs for group in margin_counts([0.0, 0.0, 0.0625, 0.1, 0.125, 1.0, 1.5])}
    assert found == {
        "0, a tie": 2,
        "to 1/16": 1,
        "to 1/8": 2,
        "to 1/4": 0,
        "to 1/2": 0,
        "to 1": 1,
        "above 1": 1,
    }


def test_a_margin_below_zero_has_a_group_where_there_is_one() -> None:
    assert margin_counts([-0.5])[0].text == "below 0"
    assert margin_counts([])[0].text == "0, a tie"


def test_the_loosest_level_and_different_tasks_come_first() -> None:
    base = made.pair(*made.sides())
    assert base.divergence is not None

    def pair(task: str, level: Level) -> Pair:
        assert base.divergence is not None
        return replace(base, task=task, divergence=replace(base.divergence, level=level))

    pairs = [
        pair("x", Level.CALLS),
        pair("x", Level.CALLS),
        pair("y", Level.CALLS),
        pair("z", Level.TOKENS),
        pair("x", Level.OUTCOME),
    ]
    assert most_telling(pairs) == [pairs[4], pairs[0], pairs[2], pairs[1], pairs[3]]


def test_engine_and_machine_are_those_of_the_lock() -> None:
    gpu = {"name": "a GPU", "memory_bytes": 80 * 2**30}
    lock = {
        "engine": {"vllm": "0.32.0", "torch": "2.11", "cuda": None, "device": "cuda"},
        "machine": {"gpus": [gpu, gpu], "driver": "580", "cpu": "a processor", "processors": 16},
    }
    run = run_records.run(run_records.contract(), facts={"lock": lock})
    assert engine_text(run, []) == "vLLM 0.32.0, torch 2.11, cuda"
    assert machine_text(run) == "2 of a GPU, 80 GiB; driver 580; a processor, 16 processors"


@pytest.mark.parametrize("facts", [{}, {"lock": None}, {"lock": "?"}, {"lock": {"engine": None, "machine": None}}])
def test_what_is_not_recorded_is_said_to_be_unknown(facts: dict[str, object]) -> None:
    of = run_records.contract()
    run = run_records.run(of, facts=facts)
    assert engine_text(run, [run_records.boot(of, is_managed=False)]) == "someone else's server, version 0.32.0"
    assert engine_text(run, []) == "version not known"
    assert machine_text(run).startswith("not known")
