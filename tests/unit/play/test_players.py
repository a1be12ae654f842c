"""A script that passes in a run passes when its calls are typed, in either form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval.play import PlaySession
from agenteval.spec import load_suite

TESTS = Path(__file__).parents[2]
PERFECT = yaml.safe_load((TESTS / "starter" / "players.yaml").read_text(encoding="utf-8"))["perfect"]
VARIANTS = {variant.label: variant for variant in load_suite(TESTS.parent / "tasks" / "starter").variants}


def as_json(tool: str, arguments: dict[str, Any]) -> str:
    return f"{tool} {json.dumps(arguments)}"


def as_pairs(tool: str, arguments: dict[str, Any]) -> str:
    return " ".join([tool, *(f"{key}={json.dumps(value)}" for key, value in arguments.items())])


@pytest.mark.parametrize("written", [as_json, as_pairs])
@pytest.mark.parametrize("label", VARIANTS)
def test_a_perfect_player_passes(label: str, written: Callable[[str, dict[str, Any]], str]) -> None:
    session = PlaySession(VARIANTS[label], clock="2026-01-15T09:00:00Z")
    for tool, arguments in PERFECT[label]:
        assert not session.is_over
        session.take(written(tool, arguments))
    assert (session.is_over, session.exit_status) == (True, 0), session.closing()
