"""Runs the cells of a sweep, as many beside each other as fit; one that has been run already is taken as it is."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

import pydantic

from agenteval.digest import canonical_json, digest_json
from agenteval.errors import AgentevalError, RunStoppedError, UnsupportedClauseError
from agenteval.launch import EngineFacts, plan_launch
from agenteval.lock import Lock, compare_locks
from agenteval.loop import ManagedEngine, Observer, RunRequest, StopSwitch, execute_run, lock_of
from agenteval.records import CellOutcome, CellStatus, Model
from agenteval.server import ServerKeeper
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
    engine: ManagedEngine
    """The request's."""
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
    outcomes |= {outcome.cell: outcome for outcome in crew.run(_groups(jobs))}
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
    memory_bytes = server_bytes(cell.contract, model, setting.facts)
    return _Job(cell=cell, request=request, engine=engine, memory_bytes=memory_bytes)


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


def _groups(jobs: Sequence[_Job]) -> list[list[_Job]]:
    """Jobs whose server is started in the same way and can go on from one to the next, in order of the first of each.

    A cache that is shared would carry what one cell left behind into the next, so such a cell has a server of its own.
    """
    groups: dict[str, list[_Job]] = {}
    for job in jobs:
        plan, contract = job.engine.plan, job.cell.contract
        alone = job.cell.name if contract.cache.mode == "shared" else None
        key = digest_json([list(plan.argv), plan.env, job.engine.model.digest, alone])
        groups.setdefault(key, []).append(job)
    return list(groups.values())


class _Crew:
    """One thread a running server."""

    def __init__(self, budget: Budget, setting: SweepSetting, observer: SweepObserver, stop: SweepStop) -> None:
        self._budget, self._setting, self._observer, self._stop = budget, setting, observer, stop
        self._outcomes: dict[str, CellOutcome] = {}
        self._crash: BaseException | None = None

    def run(self, groups: Sequence[Sequence[_Job]]) -> list[CellOutcome]:
        """Run all groups, in order as far as memory admits, each one's jobs one after another on one server.

        Raises:
            BaseException: Whatever a thread met that is no error of a run.
        """
        waiting, running = list(groups), dict[threading.Thread, int]()
        while waiting or running:
            running = {thread: taken for thread, taken in running.items() if thread.is_alive()}
            if self._crash is not None:
                self._stop.ask()
                waiting.clear()
            admitted = (group for group in waiting if self._budget.admits([*running.values()], group[0].memory_bytes))
            group = next(admitted, None)
            if group is None:
                # Polled rather than joined, so that a signal reaches the main thread at once.
                time.sleep(_POLL_S)
                continue
            waiting.remove(group)
            thread = threading.Thread(target=self._work, args=(group,), name=f"cell-{group[0].cell.name}", daemon=True)
            running[thread] = group[0].memory_bytes
            thread.start()
        if self._crash is not None:
            raise self._crash
        return [self._outcomes[job.cell.name] for group in groups for job in group]

    def _work(self, group: Sequence[_Job]) -> None:
        keeper = ServerKeeper()
        try:
            for job in group:
                outcome = self._attempt(job, keeper if len(group) > 1 else None)
                self._outcomes[job.cell.name] = outcome
                self._observer.cell_ended(outcome)
        # A thread cannot raise to anyone; the main thread raises it again.
        except BaseException as error:
            self._crash = self._crash or error
        finally:
            keeper.close()

    def _attempt(self, job: _Job, keeper: ServerKeeper | None) -> CellOutcome:
        if self._stop.is_asked:
            return _outcome(job.cell, "stopped", message="the sweep was stopped")
        started = time.monotonic()
        status: CellStatus = "run"
        run_id = message = None
        try:
            request = replace(job.request, engine=replace(job.engine, keeper=keeper))
            observer = self._observer.watch(job.cell)
            run_id = execute_run(request, self._setting.database, observer, self._stop.switch()).run_id
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
