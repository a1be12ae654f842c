"""Runs the cells of a sweep, as many beside each other as fit; one that has been run already is taken as it is."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

import pydantic

from agenteval.digest import canonical_json
from agenteval.errors import AgentevalError, RunStoppedError, UnsupportedClauseError
from agenteval.launch import EngineFacts, plan_launch
from agenteval.lock import Lock, compare_locks
from agenteval.loop import ManagedEngine, Observer, RunRequest, StopSwitch, execute_run, lock_of
from agenteval.records import CellOutcome, CellStatus, Model
from agenteval.spec import Selection, Suite, load_suite, select_variants
from agenteval.store import files_folder, finished_runs
from agenteval.sweep.cells import Cell, Sweep
from agenteval.sweep.packing import Budget, budget_of, server_bytes

_POLL_S = 0.2


class SweepObserver(Protocol):
    """Told of progress; calls may come from any thread."""

    def watch(self, cell: Cell) -> Observer:
        """A cell starts to run; who is told of its progress."""

    def cell_ended(self, outcome: CellOutcome) -> None:
        """A cell has an outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSetting:
    """Where a sweep runs."""

    facts: EngineFacts
    cache_dir: Path
    database: Path
    resolve: Callable[[str], Model]
    """A model's name to its folder."""
    machine: dict[str, Any]
    """What a run records of the machine and the command."""
    only: tuple[str, ...] = ("*",)
    """Patterns of the names of cells that may be run now, as a shell has them."""


class SweepStop:
    """The user's wish to stop, passed on to every cell that runs."""

    def __init__(self) -> None:
        self._switches: list[StopSwitch] = []
        self._is_asked = False

    @property
    def is_asked(self) -> bool:
        """Whether no further cell is to start."""
        return self._is_asked

    def ask(self) -> None:
        """Called from the signal handler; those cells that run stop as a run does."""
        self._is_asked = True
        for switch in list(self._switches):
            switch.ask()

    def switch(self) -> StopSwitch:
        """The switch of one more cell."""
        switch = StopSwitch()
        self._switches.append(switch)
        if self.is_asked:
            switch.ask()
        return switch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A cell that is to be run."""

    cell: Cell
    request: RunRequest
    memory_bytes: int


def run_cells(sweep: Sweep, setting: SweepSetting, observer: SweepObserver, stop: SweepStop) -> list[CellOutcome]:
    """Run every wanted cell that has not been run, and give all outcomes in the order of the cells.

    A cell that cannot keep its contract here is `refused`, which is a result; one that breaks off is `failed`, and the
    others go on.

    Raises:
        FileProblemsError: If the suite is wrong.
        UnknownNameError: If a selected task does not exist.
        ModelError: If a model cannot be found.
    """
    suite = load_suite(sweep.suite)
    outcomes: dict[str, CellOutcome] = {}
    jobs = []
    for cell in sweep.cells:
        planned = _plan(cell, sweep, suite, setting)
        if isinstance(planned, _Job) and not any(fnmatchcase(cell.name, pattern) for pattern in setting.only):
            planned = _outcome(cell, "left", message="it was not asked for with --only")
        if isinstance(planned, _Job):
            jobs.append(planned)
        else:
            outcomes[cell.name] = planned
            observer.cell_ended(planned)
    crew = _Crew(budget_of(sweep.file.servers, setting.facts), setting, observer, stop)
    outcomes |= {outcome.cell: outcome for outcome in crew.run(jobs)}
    return [outcomes[cell.name] for cell in sweep.cells]


def _plan(cell: Cell, sweep: Sweep, suite: Suite, setting: SweepSetting) -> _Job | CellOutcome:
    """What a cell would run; its outcome where it cannot, or has been run."""
    model = setting.resolve(cell.model)
    try:
        plan = plan_launch(cell.contract, model, setting.facts)
    except UnsupportedClauseError as error:
        return _outcome(cell, "refused", message=str(error))
    select = sweep.file.select
    engine = ManagedEngine(
        facts=setting.facts,
        plan=plan,
        model=model,
        cache_dir=setting.cache_dir,
        logs=files_folder(setting.database),
    )
    request = RunRequest(
        suite=suite,
        variants=select_variants(suite, Selection(tasks=select.tasks, tags=select.tags, limit=select.limit)),
        contract=cell.contract,
        model=model,
        engine=engine,
        samples=sweep.file.samples,
        agent=sweep.file.agent,
        facts={**setting.machine, "engine": setting.facts.as_json()},
    )
    run_id = _run_before(request, setting.database)
    if run_id is not None:
        return _outcome(cell, "reused", run_id=run_id)
    return _Job(cell=cell, request=request, memory_bytes=server_bytes(cell.contract, model, setting.facts))


def _run_before(request: RunRequest, database: Path) -> str | None:
    """The newest finished run of the database that this one would repeat, by everything that its lock compares."""
    here = lock_of(request, os.environ)
    for run_id, stored in finished_runs(database, contract_digest=request.contract.digest()):
        try:
            lock = Lock.model_validate_json(canonical_json(stored))
        except pydantic.ValidationError:
            # Of another version of agenteval, and so of another run.
            continue
        comparison = compare_locks(lock, here)
        if not comparison.differences and not comparison.unknown:
            return run_id
    return None


class _Crew:
    """One thread a running cell."""

    def __init__(self, budget: Budget, setting: SweepSetting, observer: SweepObserver, stop: SweepStop) -> None:
        self._budget, self._setting, self._observer, self._stop = budget, setting, observer, stop
        self._outcomes: dict[str, CellOutcome] = {}
        self._crash: BaseException | None = None

    def run(self, jobs: Sequence[_Job]) -> list[CellOutcome]:
        """Run all jobs, in order as far as memory admits.

        Raises:
            BaseException: Whatever a thread met that is no error of a run.
        """
        waiting, running = list(jobs), dict[threading.Thread, _Job]()
        while waiting or running:
            running = {thread: job for thread, job in running.items() if thread.is_alive()}
            if self._crash is not None:
                self._stop.ask()
                waiting.clear()
            taken = [job.memory_bytes for job in running.values()]
            fitting = next((job for job in waiting if self._budget.admits(taken, job.memory_bytes)), None)
            if fitting is None:
                # Polled rather than joined, so that a signal reaches the main thread at once.
                time.sleep(_POLL_S)
                continue
            waiting.remove(fitting)
            thread = threading.Thread(target=self._work, args=(fitting,), name=f"cell-{fitting.cell.name}", daemon=True)
            running[thread] = fitting
            thread.start()
        if self._crash is not None:
            raise self._crash
        return [self._outcomes[job.cell.name] for job in jobs]

    def _work(self, job: _Job) -> None:
        try:
            outcome = self._attempt(job)
        # A thread cannot raise to anyone; the main thread raises it again.
        except BaseException as error:
            self._crash = self._crash or error
            return
        self._outcomes[job.cell.name] = outcome
        self._observer.cell_ended(outcome)

    def _attempt(self, job: _Job) -> CellOutcome:
        if self._stop.is_asked:
            return _outcome(job.cell, "stopped", message="the sweep was stopped")
        started = time.monotonic()
        status: CellStatus = "run"
        run_id = message = None
        try:
            run_id = execute_run(
                job.request, self._setting.database, self._observer.watch(job.cell), self._stop.switch()
            ).run_id
        except UnsupportedClauseError as error:
            status, message = "refused", str(error)
        except RunStoppedError as error:
            status, message = "stopped", str(error)
        except AgentevalError as error:
            status, message = "failed", str(error)
        elapsed_s = time.monotonic() - started
        return _outcome(job.cell, status, run_id=run_id, message=message, elapsed_s=elapsed_s)


def _outcome(
    cell: Cell,
    status: CellStatus,
    *,
    run_id: str | None = None,
    message: str | None = None,
    elapsed_s: float = 0.0,
) -> CellOutcome:
    return CellOutcome(
        cell=cell.name,
        values=dict(cell.values),
        reference=cell.reference,
        status=status,
        run_id=run_id,
        message=message,
        elapsed_s=elapsed_s,
    )
