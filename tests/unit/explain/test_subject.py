"""From two stored episodes to the turn that is asked for again, and to the conditions under which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import run_records as made

from agenteval.compare import Trajectory
from agenteval.errors import InputError
from agenteval.explain import (
    Subject,
    company_of,
    conditions_of,
    contract_changes,
    experiment_contract,
    subject_of,
)
from agenteval.explain.subject import request_differences

from .conftest import OTHER

TOKEN = {"output_ids": (11, 99, 13), "output_tokens": ("a", "z", "c"), "logprobs": (-0.25, -0.4, -0.125)}
LOGPROB = {"logprobs": (-0.25, -0.5001, -0.125)}
RUNNER_UP = {"runner_up_logprobs": (-2.25, -1.5, None)}


def pair(*changes: dict[str, Any], **episode: Any) -> tuple[Trajectory, Trajectory]:
    """Two repeats of as many turns as changes; in the second, each turn has its changes."""
    left = [made.turn(number) for number in range(len(changes))]
    right = [replace(made.turn(number, OTHER), **fields) for number, fields in enumerate(changes)]
    return made.trajectory(*left), made.trajectory(*right, of=OTHER, **episode)


def subject(*changes: dict[str, Any], **fields: Any) -> Subject:
    return replace(subject_of(*pair(*changes)), **fields)


@pytest.mark.parametrize(
    ("sides", "reason"),
    [
        (pair({**TOKEN, "prompt_added": (1, 2, 3)}), "their prompts differ before the model was asked"),
        (pair({"tool_calls": (made.call(result="2"),)}, TOKEN), "the tools answered otherwise"),
        ((made.trajectory(made.turn(0)), made.trajectory(made.turn(0), made.turn(1), of=OTHER)), "one has more turns"),
        ((made.trajectory(made.turn(0)), made.trajectory(made.turn(0), of=OTHER, passed=False)), "only their grades"),
    ],
    ids=["prompt", "tools", "length", "grades"],
)
def test_what_lies_before_the_model_cannot_be_replayed(sides: tuple[Trajectory, Trajectory], reason: str) -> None:
    with pytest.raises(InputError, match=reason) as raised:
        subject_of(*sides)
    assert "so there is nothing to replay. The cause: " in str(raised.value)
    assert str(raised.value).endswith("that part in an answer of the model.")


def test_equal_episodes_have_nothing_to_explain() -> None:
    with pytest.raises(InputError, match="they agree in every bit"):
        subject_of(*pair({}))


def test_the_request_is_rebuilt_with_all_its_messages_and_the_prompt_with_all_its_ids() -> None:
    found = subject({}, TOKEN)
    assert (found.turn, found.token, found.candidates) == (1, 1, ("b", "z"))
    assert [message["content"] for message in found.requests[0][0]["messages"]] == ["message 0"]
    assert found.requests[0][1]["messages"][-1]["content"] == "message 1"
    assert found.first_prompt_ids == tuple(range(7))
    assert found.prompt_ids == (*range(7), 11, 12, 13, *range(100, 107))
    assert [answer.token_ids for answer in found.answers] == [(11, 12), (11, 99)]


@pytest.mark.parametrize(("change", "tells"), [(TOKEN, True), (LOGPROB, False), (RUNNER_UP, False)])
def test_answers_are_told_apart_by_tokens_where_these_differ_else_by_every_bit(
    change: dict[str, Any], tells: bool
) -> None:
    found = subject(change)
    assert found.tells_tokens_apart is tells
    for side, answer in zip(("a", "b"), found.answers, strict=True):
        assert [found.difference(answer, side), found.difference(answer, "ba"["ab".index(side)])] == [None, 1]


def test_an_output_that_ended_is_a_candidate_without_text() -> None:
    ended = {
        name: getattr(made.turn(0), name)[:1]
        for name in ("output_ids", "output_tokens", "logprobs", "runner_up_tokens", "runner_up_logprobs")
    }
    assert subject(ended).candidates == ("b", "")


def test_settings_of_two_runs_are_signs_as_what_was_recorded_is() -> None:
    sides = pair({**TOKEN, "cached_tokens": 16})
    found = subject_of(*sides, settings=("cache.mode: disabled against shared",))
    assert found.signs == (
        "settings differ: cache.mode: disabled against shared",
        "cached tokens differ: 0 against 16",
    )


@pytest.mark.parametrize(
    ("fields", "boots", "names"),
    [
        ({}, 1, ["cold", "with 7 others"]),
        ({}, 2, ["cold", "with 7 others", "other boot"]),
        ({"cached_tokens": (0, 48)}, 1, ["cold", "warm, 48 tokens", "with 7 others"]),
        ({"cached_tokens": (None, None)}, 1, ["cold", "with 7 others"]),
        ({"cached_tokens": (32, 48)}, 1, ["cold", "warm, 32 tokens", "warm, 48 tokens", "with 7 others"]),
        ({"cached_tokens": (48, 48)}, 1, ["cold", "warm, 48 tokens", "with 7 others"]),
        ({"requests_in_flight": (1, 4)}, 1, ["cold", "with 3 others"]),
        ({"requests_in_flight": (3, 4)}, 1, ["cold", "with 2 others", "with 3 others"]),
        ({"turn": 1}, 1, ["cold", "after a's turns", "with 7 others"]),
        (
            {"turn": 1, "first_cached_tokens": (0, 32)},
            1,
            ["cold", "after a's turns", "after b's turns (begun warm, 32 tokens)", "with 7 others"],
        ),
    ],
)
def test_the_conditions_are_what_was_recorded(fields: dict[str, Any], boots: int, names: list[str]) -> None:
    assert [condition.name for condition in conditions_of(subject(TOKEN, **fields), boots=boots)] == names


def test_a_request_of_b_that_differs_is_a_condition_whatever_its_salt_and_model_name() -> None:
    same = subject(TOKEN)
    a, b = same.requests
    named = replace(same, requests=(a, ({**b[0], "cache_salt": "x", "model": "y"},)))
    other = replace(same, requests=(a, ({**b[0], "seed": 7},)))
    assert (request_differences(same), request_differences(named), request_differences(other)) == ((), (), ("seed",))
    assert "b's request" in [condition.name for condition in conditions_of(other, boots=1)]


@pytest.mark.parametrize("name", ["strict", "isolated", "invariant", "default"])
def test_the_server_is_the_runs_with_room_and_every_change_has_its_reason(name: str) -> None:
    run = made.contract(name)
    company = company_of(subject(TOKEN))
    experiment = experiment_contract(run, company)
    assert experiment.cache.mode == "per_episode"
    assert experiment.batching.concurrency >= company + 1
    assert (experiment.engine, experiment.sampling) == (run.engine, run.sampling)
    assert (experiment.batching.mode == "invariant") == (run.batching.mode == "invariant")
    assert all(", so that " in change for change in contract_changes(run, experiment))
