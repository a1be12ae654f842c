"""The suite that explains the language, played by scripts: a perfect player passes, a lazy and a wrong one fail."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval.grade import Played, grade_episode, has_passed
from agenteval.records import Episode, EpisodePlan, EpisodeStatus, Grade, StopReason, ToolCall
from agenteval.spec import TaskVariant, load_suite
from agenteval.tools import State, ToolKit, call_tool, openai_schema, world_patch

SUITE = load_suite(Path(__file__).parents[2] / "tasks" / "starter")
PLAYERS = yaml.safe_load((Path(__file__).parent / "players.yaml").read_text(encoding="utf-8"))
VARIANTS = {f"{variant.task}/{variant.variant}": variant for variant in SUITE.variants}
CLOCK = "2026-01-15T09:00:00Z"
Script = Sequence[tuple[str, dict[str, Any]]]
LAZY: Script = [("finish", {"answer": "done"})]


def play(variant: TaskVariant, script: Script) -> tuple[Episode, list[ToolCall]]:
    """Make the calls of a script, one a turn, as the loop would."""
    kit = ToolKit.of(variant)
    state, made, answer = State.begin(world=variant.world, clock=CLOCK), list[ToolCall](), None
    for turn, (tool, arguments) in enumerate(script):
        if tool == SUITE.agent.finish_tool:
            answer = arguments["answer"]
            break
        outcome = call_tool(kit, tool, json.dumps(arguments), state)
        made.append(
            ToolCall(
                call=0,
                call_id=f"call_{turn}_0",
                server_call_id="",
                tool=tool,
                arguments=json.dumps(arguments),
                result=outcome.result,
                error=outcome.error,
                state_digest=state.digest(),
                world_patch=world_patch(state, outcome.state),
                is_repeatable=True,
                fault=outcome.fault,
            )
        )
        state = outcome.state
    episode = Episode(
        plan=EpisodePlan(
            run_id="run",
            position=0,
            task=variant.task,
            variant=variant.variant,
            sample=0,
            repeat=0,
            seed=1,
            cache_salt=None,
        ),
        boot_id="boot",
        status=EpisodeStatus.FINISHED,
        stop_reason=StopReason.FINISH_TOOL,
        message=None,
        answer=answer,
        world=state.world,
        turns=len(script),
        started_at=datetime.datetime(2026, 1, 15, tzinfo=datetime.UTC),
        elapsed_s=1.0,
    )
    return episode, made


def grades_of(variant: TaskVariant, script: Script) -> tuple[Grade, ...]:
    episode, made = play(variant, script)
    return grade_episode(variant, Played(episode=episode, calls=list(enumerate(made)), output_tokens=len(script)))


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_passes_every_check(label: str) -> None:
    grades = grades_of(VARIANTS[label], PLAYERS["perfect"][label])
    assert [(grade.kind, grade.reason) for grade in grades if grade.passed is not True] == []


@pytest.mark.parametrize("label", VARIANTS)
def test_a_lazy_player_fails(label: str) -> None:
    assert has_passed(grades_of(VARIANTS[label], LAZY)) is False


@pytest.mark.parametrize("name", PLAYERS["wrong"])
def test_a_wrong_player_is_caught_by_the_check_that_is_meant_for_it(name: str) -> None:
    player = PLAYERS["wrong"][name]
    grades = grades_of(VARIANTS[player["task"]], player["calls"])
    assert player["caught_by"] in {grade.kind for grade in grades if grade.passed is False}


@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_needs_two_to_five_turns_and_no_more_than_it_is_given(label: str) -> None:
    turns = len(PLAYERS["perfect"][label])
    assert 2 <= turns <= min(5, VARIANTS[label].settings.max_turns)


@pytest.mark.parametrize("label", VARIANTS)
def test_the_same_script_gives_the_same_bytes_again(label: str) -> None:
    first, second = (play(VARIANTS[label], PLAYERS["perfect"][label]) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("label", [label for label, variant in VARIANTS.items() if "errors" in variant.tags])
def test_a_perfect_player_of_a_task_tagged_errors_meets_one_and_recovers(label: str) -> None:
    _, made = play(VARIANTS[label], PLAYERS["perfect"][label])
    assert any(call.error for call in made)
    assert made[-1].error is None


@pytest.mark.parametrize("label", VARIANTS)
def test_the_tag_stateful_says_whether_the_world_changes(label: str) -> None:
    _, made = play(VARIANTS[label], PLAYERS["perfect"][label])
    assert any(call.world_patch for call in made) is ("stateful" in VARIANTS[label].tags)


def test_no_mock_is_at_fault_for_any_player() -> None:
    """An error is one that a case declares or the schema finds, never an expression that failed."""
    scripts = [*PLAYERS["perfect"].items(), *((p["task"], p["calls"]) for p in PLAYERS["wrong"].values())]
    errors = [call.error or "" for label, script in scripts for call in play(VARIANTS[label], script)[1]]
    assert [error for error in errors if "could not answer" in error] == []


def test_there_is_a_player_for_every_variant_and_none_besides() -> None:
    assert set(PLAYERS["perfect"]) == set(VARIANTS)


def test_every_tool_is_used_by_a_perfect_player() -> None:
    used = {tool for script in PLAYERS["perfect"].values() for tool, _ in script}
    assert used == {tool.name for tool in SUITE.tools} | {SUITE.agent.finish_tool}


def test_every_kind_of_check_is_shown() -> None:
    kinds = {check.kind for variant in SUITE.variants for check in variant.checks}
    assert kinds == {"answer", "world", "called", "not_called", "order", "turns"}


def test_the_suite_is_small_enough_for_a_small_model_on_a_cpu() -> None:
    """Few tools a task, and neither the prompt's head nor a result is long (about 4 characters a token)."""
    for label, variant in VARIANTS.items():
        head = SUITE.agent.system_prompt + variant.prompt
        head += "".join(json.dumps(openai_schema(tool)) for tool in variant.tools)
        _, made = play(variant, PLAYERS["perfect"][label])
        assert 2 <= len(variant.tools) <= 4, label
        assert len(head) < 1_700, label
        assert max(len(call.result) for call in made) < 240, label


def test_the_first_four_variants_are_the_shortest() -> None:
    assert all(len(PLAYERS["perfect"][label]) <= 3 for label in list(VARIANTS)[:4])


def test_there_are_at_least_twelve_tasks_in_four_domains() -> None:
    assert len({variant.task for variant in SUITE.variants}) >= 12
    assert {variant.tags[0] for variant in SUITE.variants} == {"banking", "calendar", "inventory", "travel"}
