"""Databases that the tests browse."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agenteval.records import Verdict

from .builders import START, make_run, make_trajectory, make_turn, plain_trajectories, write_run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test puts its database."""
    return tmp_path / "runs.duckdb"


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four tasks with two diverged pairs, and a later one that was kept and has nothing to compare."""
    path = tmp_path_factory.mktemp("two") / "runs.duckdb"
    run = make_run("first", planned_episodes=8)
    write_run(path, run, plain_trajectories(run))
    later = make_run("second", contract="strict", repeats=1, started_at=START + timedelta(hours=1))
    write_run(path, later, [make_trajectory(later, 0, "rent", 0, [make_turn()])], verdict=Verdict.KEPT)
    return path
