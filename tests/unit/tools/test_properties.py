"""Mocks are pure: equal state and call give equal bytes, in this process and in another, whatever the model writes."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mock_cases
import pytest
import strategies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.digest import canonical_json
from agenteval.tools import State, call_tool, world_patch

TESTS = Path(__file__).parents[2]


@settings(deadline=None)
@given(strategies.mock_cases())
def test_equal_states_and_calls_give_equal_bytes(case: dict[str, Any]) -> None:
    first, second = ([mock_cases.bytes_of(outcome) for outcome in mock_cases.outcomes_of(case)] for _ in range(2))
    assert first == second


@settings(deadline=None)
@given(strategies.mock_cases())
def test_no_call_raises_or_changes_what_it_was_given(case: dict[str, Any]) -> None:
    kit, state = mock_cases.kit_of(case), State.begin(world=case["world"], clock=mock_cases.CLOCK)
    for name, arguments in case["calls"]:
        before = copy.deepcopy(state)
        outcome = call_tool(kit, name, arguments, state)
        assert canonical_json(state.world) == canonical_json(before.world)
        assert (state.digest(), state.calls, state.fired) == (before.digest(), before.calls, before.fired)
        world_patch(state, outcome.state)
        state = outcome.state


@settings(deadline=None)
@given(strategies.mock_cases())
def test_every_result_can_be_sent_and_every_state_stored(case: dict[str, Any]) -> None:
    for outcome in mock_cases.outcomes_of(case):
        outcome.result.encode()
        canonical_json(outcome.state.world).encode()
        assert outcome.state.digest()
        if outcome.error is not None and outcome.fault is None:
            assert set(json.loads(outcome.result)) == {"error"}


@settings(deadline=None)
@given(strategies.mock_cases(), st.randoms())
def test_the_order_of_keys_in_a_world_never_shows(case: dict[str, Any], random: Any) -> None:
    other = {**case, "world": shuffled(case["world"], random), "vars": shuffled(case["vars"], random)}
    first, second = mock_cases.outcomes_of(case), mock_cases.outcomes_of(other)
    assert [(o.result, o.error, o.fault, o.state.digest()) for o in first] == [
        (o.result, o.error, o.fault, o.state.digest()) for o in second
    ]


def shuffled(value: Any, random: Any) -> Any:
    """The same value with the keys of its objects in another order."""
    if isinstance(value, dict):
        keys = list(value)
        random.shuffle(keys)
        return {key: shuffled(value[key], random) for key in keys}
    return [shuffled(item, random) for item in value] if isinstance(value, list) else value


def cases(count: int) -> list[dict[str, Any]]:
    """So many generated cases."""
    found: list[dict[str, Any]] = []

    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategies.mock_cases())
    def collect(case: dict[str, Any]) -> None:
        found.append(case)

    collect()
    return found


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_with_another_hash_seed_gives_the_same_bytes(seed: str) -> None:
    batch = cases(150)
    done = subprocess.run(
        [sys.executable, "-m", "mock_cases"],
        input=json.dumps(batch),
        capture_output=True,
        text=True,
        check=True,
        cwd=TESTS,
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])},
    )
    here = [mock_cases.digest_of(case) for case in batch]
    differing = [case for case, a, b in zip(batch, here, json.loads(done.stdout), strict=True) if a != b]
    assert differing == []
