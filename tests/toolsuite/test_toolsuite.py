"""The suite to measure with, played by scripts: perfect players pass and meet every fault, lazy and wrong ones fail."""

from __future__ import annotations

import functools
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from golden_files import check_golden
from players import Performance, perform, perform_lazily

from agenteval.digest import canonical_json, digest_json
from agenteval.grade import has_passed
from agenteval.loading import read_yaml
from agenteval.spec import TaskVariant, load_suite
from agenteval.tools import UNANSWERED, fault_label, openai_schema

SUITE = load_suite(Path(__file__).parents[2] / "tasks" / "toolsuite")
VARIANTS = {variant.label: variant for variant in SUITE.variants}
DOMAINS = ("banking", "calendar", "conversion", "files", "home", "inventory", "support", "travel")
LENGTH_OF_HEAD = 5_500
"""Characters of system prompt and tools; about four make a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A player that does one plausible thing wrong."""

    label: str
    caught_by: str
    script: list[Any]


def _players() -> tuple[dict[str, list[Any]], dict[str, Wrong]]:
    """(task or label to script, domain/mistake to player)."""
    perfect: dict[str, list[Any]] = {}
    wrong: dict[str, Wrong] = {}
    for path in sorted((Path(__file__).parent / "players").glob("*.yaml")):
        document = read_yaml(path)
        assert document.problems == [], path
        assert not perfect.keys() & document.data["perfect"].keys(), path
        perfect.update(document.data["perfect"])
        for name, player in document.data["wrong"].items():
            wrong[f"{path.stem}/{name}"] = Wrong(
                label=player["task"], caught_by=player["caught_by"], script=player["calls"]
            )
    return perfect, wrong


PERFECT, WRONG = _players()


def script_of(label: str) -> list[Any]:
    """A variant's own script, where it has one, or its task's."""
    return PERFECT[label] if label in PERFECT else PERFECT[VARIANTS[label].task]


@functools.cache
def perfect(label: str) -> Performance:
    """The perfect player of a variant."""
    return perform(VARIANTS[label], script_of(label))


def tasks() -> dict[str, list[TaskVariant]]:
    """Task to its variants, in the suite's order."""
    found: dict[str, list[TaskVariant]] = {}
    for variant in SUITE.variants:
        found.setdefault(variant.task, []).append(variant)
    return found


def tasks_tagged(tag: str) -> set[str]:
    return {variant.task for variant in SUITE.variants if tag in variant.tags}


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_passes_every_check(label: str) -> None:
    assert [(grade.kind, grade.reason) for grade in perfect(label).grades if grade.passed is not True] == []


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_meets_every_declared_fault(label: str) -> None:
    declared = {fault_label(place, fault.kind) for place, fault in enumerate(VARIANTS[label].faults)}
    assert {call.fault for call in perfect(label).calls if call.fault is not None} == declared


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_answers_each_of_the_users_messages_and_ends_with_the_last(label: str) -> None:
    performance = perfect(label)
    assert len(performance.answers) == 1 + len(VARIANTS[label].follow_ups)
    assert [tool for tool, _ in performance.turns[-1]] == [SUITE.agent.finish_tool]


@pytest.mark.parametrize("label", VARIANTS)
def test_a_lazy_player_fails(label: str) -> None:
    assert has_passed(perform_lazily(VARIANTS[label]).grades) is False


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_player_is_caught_by_the_check_that_is_meant_for_it(name: str) -> None:
    player = WRONG[name]
    grades = perform(VARIANTS[player.label], player.script).grades
    assert player.caught_by in {grade.kind for grade in grades if grade.passed is False}


@pytest.mark.parametrize("name", WRONG)
def test_every_check_can_be_evaluated_for_a_wrong_player(name: str) -> None:
    """One that cannot would leave the episode ungraded, where it ought to fail."""
    player = WRONG[name]
    grades = perform(VARIANTS[player.label], player.script).grades
    assert [(grade.kind, grade.reason) for grade in grades if grade.passed is None] == []


@pytest.mark.parametrize("label", VARIANTS)
def test_a_player_that_leaves_out_a_change_of_the_world_fails(label: str) -> None:
    performance = perfect(label)
    for turn, call in performance.placed_calls:
        if call.world_patch:
            script = [list(calls) for calls in performance.turns]
            del script[turn][call.call]
            grades = perform(VARIANTS[label], [calls for calls in script if calls]).grades
            assert has_passed(grades) is False, f"without {call.tool} in turn {turn}"


@pytest.mark.parametrize("label", VARIANTS)
def test_the_same_script_gives_the_same_bytes_again(label: str) -> None:
    again = perform(VARIANTS[label], script_of(label))
    assert again == perfect(label)
    assert all(call.is_repeatable for call in again.calls)


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_needs_three_to_ten_turns_and_no_more_than_it_is_given(label: str) -> None:
    assert 3 <= len(perfect(label).turns) <= min(10, VARIANTS[label].settings.max_turns)


@pytest.mark.parametrize("label", VARIANTS)
def test_a_turn_has_several_calls_only_where_the_task_allows_it(label: str) -> None:
    assert VARIANTS[label].settings.parallel_tool_calls or max(map(len, perfect(label).turns)) == 1


@pytest.mark.parametrize("label", VARIANTS)
def test_tags_tell_the_truth(label: str) -> None:
    variant, performance = VARIANTS[label], perfect(label)
    is_changed = performance.world != variant.world
    is_parallel = variant.settings.parallel_tool_calls and max(map(len, performance.turns)) > 1
    expected = [
        "stateful" if is_changed else "lookup",
        *(["faults"] if variant.faults else []),
        *(["parallel"] if is_parallel else []),
        *(["follow-up"] if variant.follow_ups else []),
    ]
    assert variant.tags[0] in DOMAINS
    assert sorted(variant.tags[1:]) == sorted(expected)


@pytest.mark.parametrize("label", VARIANTS)
def test_the_head_of_the_prompt_is_long(label: str) -> None:
    variant = VARIANTS[label]
    head = variant.messages[0].content + "".join(json.dumps(openai_schema(tool)) for tool in variant.tools)
    assert len(head) >= LENGTH_OF_HEAD


@pytest.mark.parametrize("label", VARIANTS)
def test_worlds_and_results_are_small(label: str) -> None:
    assert len(canonical_json(VARIANTS[label].world)) <= 3_000
    assert max(len(call.result) for call in perfect(label).calls) <= 600


def test_no_mock_is_at_fault_for_any_player() -> None:
    """An error is one that a case or a fault declares or the schema finds, never an expression that failed."""
    performances = [perfect(label) for label in VARIANTS]
    performances += [perform(VARIANTS[player.label], player.script) for player in WRONG.values()]
    errors = [call.error for performance in performances for call in performance.calls if call.error is not None]
    assert [error for error in errors if error.startswith(UNANSWERED)] == []


def test_there_are_twenty_tasks_of_four_variants_in_eight_domains() -> None:
    assert {task: len(variants) for task, variants in tasks().items()} == dict.fromkeys(tasks(), 4)
    assert len(tasks()) == 20
    assert {variant.tags[0] for variant in SUITE.variants} == set(DOMAINS)


def test_enough_tasks_change_their_world_meet_faults_or_call_in_parallel() -> None:
    assert len(tasks_tagged("stateful")) >= 12
    assert len(tasks_tagged("faults")) >= 10
    assert len(tasks_tagged("parallel")) >= 6


def test_the_tools_of_a_domain_are_the_same_in_the_same_order() -> None:
    """So that the heads of its prompts are the same too."""
    heads: dict[str, set[tuple[str, ...]]] = {}
    for variant in SUITE.variants:
        heads.setdefault(variant.tags[0], set()).add(tuple(tool.name for tool in variant.tools))
    assert {domain: len(lists) for domain, lists in heads.items()} == dict.fromkeys(heads, 1)


def test_a_tool_asks_for_a_text_in_the_models_own_words() -> None:
    free = {"note", "reason"}
    assert [tool.name for tool in SUITE.tools if not free & set(tool.parameters["required"])] == []


def test_there_are_scripts_for_every_variant_and_for_nothing_else() -> None:
    assert PERFECT.keys() <= VARIANTS.keys() | tasks().keys()
    assert [label for label, variant in VARIANTS.items() if not {label, variant.task} & PERFECT.keys()] == []
    assert {player.label for player in WRONG.values()} <= VARIANTS.keys()


def test_every_task_has_a_wrong_player() -> None:
    assert {VARIANTS[player.label].task for player in WRONG.values()} == tasks().keys()


def test_every_tool_is_used_by_a_perfect_player() -> None:
    used = {call.tool for label in VARIANTS for call in perfect(label).calls}
    assert used == {tool.name for tool in SUITE.tools}


def test_golden_table_of_the_episodes() -> None:
    heads = ("domain", "task", "variant", "turns", "calls", "stateful", "faults", "parallel", "checks")
    rows = [heads]
    for label, variant in VARIANTS.items():
        performance = perfect(label)
        kinds = Counter(check.kind for check in variant.checks)
        rows.append(
            (
                variant.tags[0],
                variant.task,
                variant.variant,
                str(len(performance.turns)),
                str(len(performance.calls)),
                "yes" if "stateful" in variant.tags else "-",
                " ".join(fault.kind for fault in variant.faults) or "-",
                "yes" if "parallel" in variant.tags else "-",
                " ".join(f"{kind}:{count}" for kind, count in sorted(kinds.items())),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    check_golden("toolsuite.txt", "\n".join(lines) + "\n")


def test_golden_digests_of_the_trajectories() -> None:
    """What the tools answered and left behind: the same on every machine and Python."""
    lines = []
    for task, variants in tasks().items():
        seen = {
            variant.variant: {
                "results": [call.result for call in perfect(variant.label).calls],
                "world": perfect(variant.label).world,
            }
            for variant in variants
        }
        lines.append(f"{task} {digest_json(seen)}")
    check_golden("toolsuite-trajectories.txt", "\n".join(lines) + "\n")
