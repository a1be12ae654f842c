"""`agenteval check`: every problem of suites and contracts, and what looks like a slip."""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.cli.common import emit
from agenteval.contract import load_contract
from agenteval.errors import FileProblemsError, InputError, Problem
from agenteval.lint import inspect_suite
from agenteval.log import printable
from agenteval.spec.file_patterns import matching_files
from agenteval.spec.files import SUITE_FILE

_MANY, _CHUNK = 16, 4
"""From so many suites on, they are shared among processes, so many at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """What was found of one suite or contract."""

    path: Path
    what: str
    """Its name and size, or that it does not load."""
    digest: str | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def check(arguments: argparse.Namespace) -> int:
    """Look at every path; the exit status is 2 where one has a problem, and 0 where there are warnings at most."""
    reports = _reports(list(_targets(arguments.paths)))
    emit(json.dumps([_as_json(report) for report in reports], indent=2) if arguments.json else _as_text(reports))
    return 2 if any(report.problems for report in reports) else 0


def _targets(paths: list[Path]) -> Iterator[Path]:
    """The suites and contracts that the paths name.

    A folder without a suite.yaml stands for the suites below it, and a file beside one for its suite.
    """
    for path in paths:
        path = path.parent if path.is_file() and (path.parent / SUITE_FILE).is_file() else path
        is_looked_through = path.is_dir() and not (path / SUITE_FILE).is_file()
        below = matching_files(path, [f"**/{SUITE_FILE}"]) if is_looked_through else []
        yield from (file.parent for file in below) if below else [path]


def _reports(paths: list[Path]) -> list[_Report]:
    """What was found of each path, in order; many are shared among the processors."""
    if len(paths) < _MANY:
        return [_check(path) for path in paths]
    # Forked, since a new interpreter takes longer to start than several suites to check.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        return list(pool.map(_check, paths, chunksize=_CHUNK))


def _check(path: Path) -> _Report:
    try:
        return _contract_report(path) if path.is_file() else _suite_report(path)
    except FileProblemsError as error:
        return _Report(path=path, what="does not load", digest=None, problems=error.problems)
    except InputError as error:
        problem = Problem(path=path, line=None, key="", message=str(error))
        return _Report(path=path, what="does not load", digest=None, problems=(problem,))


def _contract_report(path: Path) -> _Report:
    contract = load_contract(str(path)).contract
    return _Report(path=path, what=f"contract {contract.name}", digest=contract.digest())


def _suite_report(path: Path) -> _Report:
    inspection = inspect_suite(path)
    suite = inspection.suite
    tasks = len({variant.task for variant in suite.variants})
    counts = (_count(tasks, "task"), _count(len(suite.variants), "variant"), _count(len(suite.tools), "tool"))
    what = f"suite {suite.name}: {', '.join(counts)}"
    return _Report(path=path, what=what, digest=suite.digest(), warnings=inspection.warnings)


def _as_text(reports: list[_Report]) -> str:
    lines = []
    for report in reports:
        digest = "" if report.digest is None else f", {report.digest}"
        lines.append(f"{printable(str(report.path))}  {report.what}{digest}")
        lines += [f"  problem  {printable(str(problem))}" for problem in report.problems]
        lines += [f"  warning  {printable(str(warning))}" for warning in report.warnings]
    problems = sum(len(report.problems) for report in reports)
    warnings = sum(len(report.warnings) for report in reports)
    return "\n".join([*lines, f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}"])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _as_json(report: _Report) -> dict[str, Any]:
    return {
        "path": str(report.path),
        "what": report.what,
        "digest": report.digest,
        "problems": [_problem_json(problem) for problem in report.problems],
        "warnings": [_problem_json(problem) for problem in report.warnings],
    }


def _problem_json(problem: Problem) -> dict[str, Any]:
    return {"path": str(problem.path), "line": problem.line, "key": problem.key, "message": problem.message}
