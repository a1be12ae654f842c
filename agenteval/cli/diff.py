"""`agenteval diff`: two runs beside each other, or the repeats of one."""

from __future__ import annotations

import argparse
import json

from agenteval.cli.common import emit
from agenteval.cli.database import find_run
from agenteval.diff import Pair, RunDiff, diff_runs, trajectories_of
from agenteval.errors import UnknownNameError
from agenteval.records import Level
from agenteval.report.diff_text import diff_exit_code, diff_json, diff_text
from agenteval.report.sides import sides_text
from agenteval.store import RunReader


def diff(arguments: argparse.Namespace) -> int:
    """Compare, print, and say by the exit status whether the asked level agrees."""
    level = Level(arguments.level)
    a = RunReader(path=arguments.db, run_id=find_run(arguments.db, arguments.a))
    b = None
    if arguments.b is not None or arguments.db_b is not None:
        path = arguments.db_b or arguments.db
        b = RunReader(path=path, run_id=find_run(path, arguments.b))
    found = diff_runs(a, b)
    if arguments.json:
        emit(json.dumps(diff_json(found, level), indent=2))
    elif arguments.episode is not None:
        pairs = _named(found, arguments.episode)
        emit("\n\n".join(sides_text(pair, *trajectories_of(a, b, pair)) for pair in pairs))
        return 1 if any(pair.differs(level) for pair in pairs) else 0
    else:
        emit(diff_text(found, level))
    return diff_exit_code(found, level)


def _named(found: RunDiff, name: str) -> list[Pair]:
    """The pairs of an episode: by its id, or by task/variant, with sample and repeat where they are given.

    Raises:
        UnknownNameError: If there is none.
    """
    pairs = [
        pair
        for pair in found.pairs
        if name in (pair.episode_a, pair.episode_b)
        or name
        in (
            f"{pair.task}/{pair.variant}",
            f"{pair.task}/{pair.variant}/{pair.sample}",
            f"{pair.task}/{pair.variant}/{pair.sample}/{pair.repeat_b}",
        )
    ]
    if not pairs:
        known = list(dict.fromkeys(f"{pair.task}/{pair.variant}" for pair in found.pairs))
        raise UnknownNameError(
            what="compared episode",
            name=name,
            known=known,
            advice="Name one as task/variant, task/variant/sample/repeat, or by its id.",
        )
    return pairs
