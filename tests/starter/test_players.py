"""The suite that explains the language, played by scripts: a perfect player passes, a lazy and a wrong one fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from players import perform, perform_lazily

from agenteval.grade import has_passed
from agenteval.spec import load_suite
from agenteval.tools import UNANSWERED, fault_label, openai_schema

SUITE = load_suite(Path(__file__).parents[2] / "tasks" / "starter")
PLAYERS = yaml.safe_load((Path(__file__).parent / "players.yaml").read_text(encoding="utf-8"))
VARIANTS = {variant.label: variant for variant in SUITE.variants}


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_passes_every_check(label: str) -> None:
    grades = perform(VARIANTS[label], PLAYERS["perfect"][label]).grades
    assert [(grade.kind, grade.reason) for grade in grades if grade.passed is not True] == []


@pytest.mark.parametrize("label", VARIANTS)
def test_a_lazy_player_fails(label: str) -> None:
    assert has_passed(perform_lazily(VARIANTS[label]).grades) is False


@pytest.mark.parametrize("name", PLAYERS["wrong"])
def test_a_wrong_player_is_caught_by_the_check_that_is_meant_for_it(name: str) -> None:
    player = PLAYERS["wrong"][name]
    grades = perform(VARIANTS[player["task"]], player["calls"]).grades
    assert player["caught_by"] in {grade.kind for grade in grades if grade.passed is False}


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_needs_two_to_five_turns_and_no_more_than_it_is_given(label: str) -> None:
    turns = len(PLAYERS["perfect"][label])
    assert 2 <= turns <= min(5, VARIANTS[label].settings.max_turns)


@pytest.mark.parametrize("label", VARIANTS)
def test_the_same_script_gives_the_same_bytes_again(label: str) -> None:
    first, second = (perform(VARIANTS[label], PLAYERS["perfect"][label]) for _ in range(2))
    assert first == second
    assert all(call.is_repeatable for call in first.calls)


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_meets_every_declared_fault(label: str) -> None:
    declared = {fault_label(place, fault.kind) for place, fault in enumerate(VARIANTS[label].faults)}
    met = {call.fault for call in perform(VARIANTS[label], PLAYERS["perfect"][label]).calls}
    assert met - {None} == declared


@pytest.mark.parametrize("label", [label for label, variant in VARIANTS.items() if "errors" in variant.tags])
def test_a_perfect_player_of_a_task_tagged_errors_meets_one_and_recovers(label: str) -> None:
    calls = perform(VARIANTS[label], PLAYERS["perfect"][label]).calls
    assert any(call.error for call in calls)
    assert calls[-1].error is None


@pytest.mark.parametrize("label", VARIANTS)
def test_the_tag_stateful_says_whether_the_world_changes(label: str) -> None:
    calls = perform(VARIANTS[label], PLAYERS["perfect"][label]).calls
    assert any(call.world_patch for call in calls) is ("stateful" in VARIANTS[label].tags)


def test_no_mock_is_at_fault_for_any_player() -> None:
    """An error is one that a case declares or the schema finds, never an expression that failed."""
    scripts = [*PLAYERS["perfect"].items(), *((p["task"], p["calls"]) for p in PLAYERS["wrong"].values())]
    errors = [call.error or "" for label, script in scripts for call in perform(VARIANTS[label], script).calls]
    assert [error for error in errors if error.startswith(UNANSWERED)] == []


def test_there_is_a_player_for_every_variant_and_none_besides() -> None:
    assert set(PLAYERS["perfect"]) == set(VARIANTS)


def test_every_tool_is_used_by_a_perfect_player() -> None:
    used = {tool for script in PLAYERS["perfect"].values() for tool, _ in script}
    assert used == {tool.name for tool in SUITE.tools} | {SUITE.agent.finish_tool}


def test_it_shows_the_kinds_of_check_that_most_tasks_need_and_a_fault() -> None:
    kinds = {check.kind for variant in SUITE.variants for check in variant.checks}
    assert kinds == {"answer", "world", "called", "not_called", "order", "turns"}
    assert [variant.label for variant in SUITE.variants if variant.faults] == ["busy-bank/base"]


def test_the_suite_is_small_enough_for_a_small_model_on_a_cpu() -> None:
    """Few tools a task, and neither the prompt's head nor a result is long (about 4 characters a token)."""
    for label, variant in VARIANTS.items():
        head = SUITE.agent.system_prompt + variant.prompt
        head += "".join(json.dumps(openai_schema(tool)) for tool in variant.tools)
        calls = perform(variant, PLAYERS["perfect"][label]).calls
        assert 2 <= len(variant.tools) <= 4, label
        assert len(head) < 1_700, label
        assert max(len(call.result) for call in calls) < 240, label


def test_the_first_four_variants_are_the_shortest() -> None:
    assert all(len(PLAYERS["perfect"][label]) <= 3 for label in list(VARIANTS)[:4])


def test_there_are_at_least_twelve_tasks_in_four_domains() -> None:
    assert len({variant.task for variant in SUITE.variants}) >= 12
    assert {variant.tags[0] for variant in SUITE.variants} == {"banking", "calendar", "inventory", "travel"}
