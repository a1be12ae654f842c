"""A whole run: episodes over boots, then comparison, evidence and verdict."""

from __future__ import annotations

import itertools
import os
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import agenteval
from agenteval.agent import load_factory
from agenteval.contract import Contract
from agenteval.errors import AgentevalError, RunStoppedError, ServerDiedError, ServerError
from agenteval.judge import judge_run
from agenteval.lock import (
    ContractSection,
    EngineSection,
    Lock,
    MachineSection,
    ModelSection,
    ProgramSection,
    ServerSection,
    SuiteSection,
    lock_path,
    write_lock,
)
from agenteval.loop.boots import Engine, ManagedEngine, OutsideEngine, open_boot
from agenteval.loop.episode import Attempt, BootSession, EpisodeSetting, run_episode, server_died
from agenteval.loop.observer import Observer
from agenteval.loop.plan import plan_episodes
from agenteval.loop.stop import StoppedError, StopSwitch
from agenteval.records import (
    OWN_AGENT,
    UNKNOWN_DIGEST,
    EpisodePlan,
    EpisodeStatus,
    Model,
    Run,
    RunEnd,
    RunStatus,
    TaskRecord,
    Verdict,
)
from agenteval.spec import Suite, TaskVariant
from agenteval.store import RunWriter, files_folder

MAX_BOOTS = 3
"""A server that dies more often than this has a fault that another start does not mend."""
FORCED_WAIT_S = 5.0
"""After a second Ctrl-C, an agent that is busy with something else than our server gets so long to notice."""
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Everything that decides what a run does."""

    suite: Suite
    variants: tuple[TaskVariant, ...]
    """Those of the suite that run."""
    contract: Contract
    model: Model | None
    """None where someone else runs the server."""
    engine: Engine
    samples: int
    agent: str | None
    """A graph of one's own, as `package.module:factory`; None is the suite's."""
    facts: dict[str, Any]
    """Machine, engine and command line, for the record."""

    @property
    def agent_name(self) -> str:
        """The graph that runs; `agenteval` is the one that comes with it."""
        return self.agent or self.suite.agent.graph or OWN_AGENT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a run came to."""

    run_id: str
    verdict: Verdict


def execute_run(request: RunRequest, path: Path, observer: Observer, stop: StopSwitch) -> RunResult:
    """Run every planned episode, judge the run, and store all of it.

    Args:
        request: What to run.
        path: The database.
        observer: Told of progress.
        stop: The user's wish to stop.

    Raises:
        AgentevalError: If the run could not come to a verdict; whatever had finished is stored, and the run's record
            says why.
    """
    # Before anything is written or started: a wrong name must cost nothing.
    factory = load_factory(request.agent or request.suite.agent.graph)
    lock = lock_of(request, os.environ)
    run = _new_run(request, lock)
    plans = plan_episodes(run.run_id, request.contract, request.variants, samples=request.samples)
    with RunWriter(path, run) as writer:
        for variant in request.variants:
            writer.append(_task_record(run.run_id, variant))
        observer.planned(run.run_id, len(plans))
        setting = EpisodeSetting(contract=request.contract, factory=factory, writer=writer, stop=stop)
        try:
            _lock_run(run.run_id, lock, path, observer)
            _run_plans(run, plans, request, setting, observer)
            observer.judging()
            writer.flush()
            verdict = judge_run(path, run.run_id, writer)
        except AgentevalError as error:
            status: RunStatus = "stopped" if isinstance(error, RunStoppedError) else "failed"
            writer.append(_end(run.run_id, status, None, str(error)))
            raise
        except BaseException as error:
            writer.append(_end(run.run_id, "failed", None, f"{type(error).__name__}: {error}"))
            raise
        writer.append(_end(run.run_id, "finished", verdict, None))
    return RunResult(run_id=run.run_id, verdict=verdict)


def _run_plans(
    run: Run, plans: Sequence[EpisodePlan], request: RunRequest, setting: EpisodeSetting, observer: Observer
) -> None:
    """All episodes, on as many boots as it takes.

    A server that dies costs the episodes in flight; they are not attempted again, since their turns are stored.

    Raises:
        RunStoppedError: If the user stopped the run.
        ServerError: If the server keeps dying.
    """
    variants = {(variant.task, variant.variant): variant for variant in request.variants}
    left: Sequence[EpisodePlan] = plans
    finished = 0
    for number in range(MAX_BOOTS):
        boot = open_boot(run, number, request.engine, setting=setting, observer=observer)
        try:
            with boot as session:
                for plans_of_pass in _passes(left):
                    workers = _run_on_boot(plans_of_pass, variants, setting, session, observer)
                    left, finished = left[workers.started :], finished + workers.finished
                    if workers.has_halted:
                        break
        except (StoppedError, ServerError):
            # A server that was ended because the user asked twice has not failed.
            if not setting.stop.is_asked:
                raise
        if setting.stop.is_asked and finished < len(plans):
            raise RunStoppedError(run_id=run.run_id, finished=finished, planned=len(plans))
        if not left:
            return
        observer.warned(f"the server died; {len(left)} episodes are left")
        if isinstance(request.engine, OutsideEngine):
            break
    raise ServerDiedError(
        base_url=session.server.base_url, reason=f"{len(left)} of {len(plans)} episodes could not be run"
    )


def _passes(plans: Sequence[EpisodePlan]) -> list[list[EpisodePlan]]:
    """The repeats, which follow one another even where many episodes run at once (DECISIONS 11)."""
    return [list(group) for _, group in itertools.groupby(plans, key=lambda plan: plan.repeat)]


def _run_on_boot(
    plans: Sequence[EpisodePlan],
    variants: dict[tuple[str, str], TaskVariant],
    setting: EpisodeSetting,
    boot: BootSession,
    observer: Observer,
) -> _Workers:
    """Episodes in order, as many at once as the contract allows; the workers know which were not started."""
    workers = _Workers(plans, variants, setting, boot, observer)
    count = min(setting.contract.batching.concurrency, len(plans))
    threads = [threading.Thread(target=workers.work, name=f"episode-{n}", daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    forced_wait_s = 0.0
    # Polled rather than joined, so that a signal reaches the main thread at once.
    while any(thread.is_alive() for thread in threads) and forced_wait_s < FORCED_WAIT_S:
        time.sleep(_POLL_S)
        forced_wait_s += _POLL_S if setting.stop.is_forced else 0.0
    if workers.failure is not None:
        raise workers.failure
    return workers


class _Workers:
    """Threads that take the next plan until none is left, the server has died, or something is wrong for all."""

    def __init__(
        self,
        plans: Sequence[EpisodePlan],
        variants: dict[tuple[str, str], TaskVariant],
        setting: EpisodeSetting,
        boot: BootSession,
        observer: Observer,
    ) -> None:
        self._plans, self._variants = plans, variants
        self._setting, self._boot, self._observer = setting, boot, observer
        self._lock = threading.Lock()
        self._halted = threading.Event()
        self.failure: BaseException | None = None
        """What no other episode would be spared either."""
        self.started = 0
        """Plans that a thread has taken, the first ones in order."""
        self.finished = 0
        """Episodes that came to an end that can be graded."""

    def work(self) -> None:
        """Attempt one plan after another; what each thread of the boot runs."""
        try:
            while not self.has_halted and (plan := self._next()) is not None:
                attempt = run_episode(plan, self._variants[plan.task, plan.variant], self._setting, self._boot)
                self._note(attempt)
        # A thread cannot raise to anyone; the main thread raises it again.
        except BaseException as error:
            self.failure = self.failure or error
            self._halted.set()

    @property
    def has_halted(self) -> bool:
        """Whether no further plan is to be started, on the user's wish or for want of a server."""
        return self._halted.is_set() or self._setting.stop.is_asked

    def _next(self) -> EpisodePlan | None:
        """The next plan in order; None where none is left."""
        with self._lock:
            if self.started == len(self._plans):
                return None
            plan = self._plans[self.started]
            self.started += 1
            self._observer.episode_started(plan)
            return plan

    def _note(self, attempt: Attempt) -> None:
        with self._lock:
            self.finished += attempt.episode.status is EpisodeStatus.FINISHED
            self._observer.episode_ended(attempt.episode, attempt.passed)
        if attempt.episode.status is EpisodeStatus.NOT_RUN and server_died(attempt, self._boot):
            self._halted.set()


def lock_of(request: RunRequest, environ: Mapping[str, str]) -> Lock:
    """What the numbers of a run depend on, as far as it is known.

    Args:
        request: What to run.
        environ: The runner's variables, some of which reach the server.
    """
    engine = request.engine
    ours = engine if isinstance(engine, ManagedEngine) else None
    return Lock(
        agenteval=ProgramSection.here(),
        engine=None if ours is None else EngineSection.of(ours.facts),
        machine=None if ours is None else MachineSection.of(ours.facts),
        model=_model_section(engine),
        suite=SuiteSection.of(request.suite, request.variants, samples=request.samples),
        agent=request.agent_name,
        contract=ContractSection.of(request.contract),
        server=None if ours is None else ServerSection.of(ours.plan, ours.facts, environ),
    )


def _model_section(engine: Engine) -> ModelSection:
    if isinstance(engine, OutsideEngine):
        return ModelSection(name=engine.model, digest=None)
    return ModelSection(name=engine.model.name, digest=engine.model.digest)


def _lock_run(run_id: str, lock: Lock, path: Path, observer: Observer) -> None:
    """Write the lock beside the database before anything starts, so that a run that is killed has one."""
    file = lock_path(files_folder(path), run_id)
    write_lock(file, lock)
    observer.locked(file)


def _new_run(request: RunRequest, lock: Lock) -> Run:
    now = datetime.now(UTC)
    contract = request.contract
    engine = request.engine
    outside = engine.model if isinstance(engine, OutsideEngine) else ""
    return Run(
        run_id=f"{now:%Y%m%d-%H%M%S}-{contract.name}-{secrets.token_hex(2)}",
        suite=request.suite.name,
        suite_digest=request.suite.digest(),
        contract=contract.name,
        contract_digest=contract.digest(),
        contract_fields=contract.fields(),
        model=outside if request.model is None else request.model.name,
        model_digest=UNKNOWN_DIGEST if request.model is None else request.model.digest,
        agent=request.agent_name,
        samples=request.samples,
        repeats=contract.repeats.count,
        planned_episodes=len(request.variants) * request.samples * contract.repeats.count,
        started_at=now,
        agenteval_version=agenteval.__version__,
        facts={**request.facts, "lock": lock.as_json()},
    )


def _task_record(run_id: str, variant: TaskVariant) -> TaskRecord:
    return TaskRecord(
        run_id=run_id, task=variant.task, variant=variant.variant, tags=variant.tags, definition=variant.fields()
    )


def _end(run_id: str, status: RunStatus, verdict: Verdict | None, message: str | None) -> RunEnd:
    return RunEnd(run_id=run_id, ended_at=datetime.now(UTC), status=status, verdict=verdict, message=message)
