"""Imports of the two made-up sources beside this file, and episodes that make given calls."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import run_records as made

from agenteval.grade import Played, grade_episode
from agenteval.interchange import ImportReport, import_suite
from agenteval.spec import Suite, TaskVariant, load_suite
from agenteval.tools import State, ToolKit, call_tool

SOURCES = Path(__file__).with_name("sources")
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Imported:
    """A report and the suite that it is about."""

    report: ImportReport
    suite: Suite

    def task(self, source: str) -> TaskVariant:
        """The variant of the task with this id in the source."""
        names = {identity: name for name, identity in self.report.ids.items()}
        return next(variant for variant in self.suite.variants if variant.task == names[source])

    def reasons(self, source: str, field: str) -> list[str]:
        """Why a field of a source is not mapped."""
        return [row.reason for row in self.report.unmapped if (row.source, row.field) == (source, field)]


def imported(source_format: str, source: Path, folder: Path) -> Imported:
    """Import and load."""
    report = import_suite(source_format, source, folder)
    return Imported(report=report, suite=load_suite(folder))


@pytest.fixture
def library(tmp_path: Path) -> Imported:
    """The tau2-bench domain of a library, with its tools.py."""
    return imported("tau2", SOURCES / "library", tmp_path / "suite")


@pytest.fixture
def kitchen(tmp_path: Path) -> Imported:
    """The leaderboard's file of a kitchen."""
    return imported("bfcl-multi-turn", SOURCES / "kitchen", tmp_path / "suite")


@pytest.fixture
def import_tasks(tmp_path: Path) -> Callable[..., Imported]:
    """Import tau2-bench tasks given as JSON, with other files of the library beside them."""

    def run(*tasks: dict[str, Any], beside: Sequence[str] = ()) -> Imported:
        folder = tmp_path / "domain"
        folder.mkdir()
        for name in beside:
            shutil.copy(SOURCES / "library" / name, folder / name)
        (folder / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
        return imported("tau2", folder, tmp_path / "suite")

    return run


def failed_checks(variant: TaskVariant, calls: Sequence[Call], answer: str = "done") -> list[str]:
    """Kinds of the checks that an episode with these calls and this answer fails."""
    kit, state = ToolKit.of(variant), State.begin(world=variant.world, clock="2026-01-15T09:00:00Z")
    placed = []
    for turn, (tool, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        outcome = call_tool(kit, tool, text, state)
        placed.append((turn, made.call(turn, tool=tool, arguments=text, error=outcome.error, result=outcome.result)))
        state = outcome.state
    episode = made.episode(made.plan(), answer=answer, world=state.world)
    played = Played.of(episode, calls=placed, output_tokens=1)
    return [grade.kind for grade in grade_episode(variant, played) if not grade.passed]
