"""A whole run: episodes over boots, then comparison, evidence and verdict."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import agenteval
from agenteval.agent import load_factory
from agenteval.contract import Contract
from agenteval.errors import AgentevalError, RunStoppedError, ServerDiedError
from agenteval.loop.boots import Engine, OutsideEngine, open_boot
from agenteval.loop.episode import Attempt, BootSession, EpisodeSetting, run_episode, server_died
from agenteval.loop.judge import judge_run
from agenteval.loop.observer import Observer
from agenteval.loop.plan import plan_episodes
from agenteval.loop.stop import StopSwitch
from agenteval.records import EpisodePlan, EpisodeStatus, Model, Run, RunEnd, RunStatus, Verdict
from agenteval.spec import Suite, TaskVariant
from agenteval.store import RunWriter

MAX_BOOTS = 3
"""A server that dies more often than this has a fault that another start does not mend."""
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
    run = _new_run(request)
    plans = plan_episodes(run.run_id, request.contract, request.variants, samples=request.samples)
    with RunWriter(path, run) as writer:
        observer.planned(run.run_id, len(plans))
        setting = EpisodeSetting(
            contract=request.contract, agent=request.suite.agent, factory=factory, writer=writer, stop=stop
        )
        try:
            _run_plans(plans, request, setting, observer)
            observer.judging()
            writer.flush()
            verdict = judge_run(path, run.run_id, request.contract, writer)
        except AgentevalError as error:
            status: RunStatus = "stopped" if isinstance(error, RunStoppedError) else "failed"
            writer.append(_end(run.run_id, status, None, str(error)))
            raise
        except BaseException as error:
            writer.append(_end(run.run_id, "failed", None, f"{type(error).__name__}: {error}"))
            raise
        writer.append(_end(run.run_id, "finished", verdict, None))
    return RunResult(run_id=run.run_id, verdict=verdict)


def _run_plans(plans: Sequence[EpisodePlan], request: RunRequest, setting: EpisodeSetting, observer: Observer) -> None:
    """All episodes, on as many boots as it takes.

    A server that dies costs the episodes in flight; they are not attempted again, since their turns are stored.

    Raises:
        RunStoppedError: If the user stopped the run.
        ServerError: If the server keeps dying.
    """
    variants = {(variant.task, variant.variant): variant for variant in request.variants}
    left: list[EpisodePlan] = list(plans)
    for number in range(MAX_BOOTS):
        boot_id = f"{plans[0].run_id}/boot-{number}"
        with open_boot(
            boot_id,
            request.contract,
            request.engine,
            writer=setting.writer,
            observer=observer,
            stop=setting.stop,
        ) as boot:
            left = _run_on_boot(left, variants, setting, boot, observer)
        if setting.stop.is_asked:
            raise RunStoppedError(run_id=plans[0].run_id, finished=len(plans) - len(left), planned=len(plans))
        if not left:
            return
        observer.warned(f"the server died; {len(left)} episodes are left")
        if isinstance(request.engine, OutsideEngine):
            break
    raise ServerDiedError(
        base_url=boot.server.base_url, reason=f"{len(left)} of {len(plans)} episodes could not be run"
    )


def _run_on_boot(
    plans: Sequence[EpisodePlan],
    variants: dict[tuple[str, str], TaskVariant],
    setting: EpisodeSetting,
    boot: BootSession,
    observer: Observer,
) -> list[EpisodePlan]:
    """Episodes in order, as many at once as the contract allows; returns those that were not started."""
    workers = _Workers(plans, variants, setting, boot, observer)
    count = min(setting.contract.batching.concurrency, len(plans))
    threads = [threading.Thread(target=workers.work, name=f"episode-{n}", daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    # Polled rather than joined, so that a signal reaches the main thread at once.
    while any(thread.is_alive() for thread in threads):
        time.sleep(_POLL_S)
    if workers.failure is not None:
        raise workers.failure
    return workers.left()


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
        self._plans: queue.SimpleQueue[EpisodePlan] = queue.SimpleQueue()
        for plan in plans:
            self._plans.put(plan)
        self._variants, self._setting, self._boot, self._observer = variants, setting, boot, observer
        self._lock = threading.Lock()
        self._halted = threading.Event()
        self.failure: BaseException | None = None

    def work(self) -> None:
        while not self._halted.is_set() and not self._setting.stop.is_asked:
            try:
                plan = self._plans.get_nowait()
            except queue.Empty:
                return
            with self._lock:
                self._observer.episode_started(plan)
            try:
                attempt = run_episode(plan, self._variants[plan.task, plan.variant], self._setting, self._boot)
            # A thread cannot raise to anyone; the main thread raises it again.
            except BaseException as error:
                self.failure = self.failure or error
                self._halted.set()
                return
            self._note(attempt)

    def left(self) -> list[EpisodePlan]:
        """Plans that no thread has taken."""
        plans = []
        while not self._plans.empty():
            plans.append(self._plans.get())
        return plans

    def _note(self, attempt: Attempt) -> None:
        with self._lock:
            self._observer.episode_ended(attempt.episode, attempt.passed)
        if attempt.episode.status is EpisodeStatus.NOT_RUN and server_died(attempt, self._boot):
            self._halted.set()


def _new_run(request: RunRequest) -> Run:
    now = datetime.now(UTC)
    contract = request.contract
    engine = request.engine
    outside = engine.model or "the only one served" if isinstance(engine, OutsideEngine) else ""
    return Run(
        run_id=f"{now:%Y%m%d-%H%M%S}-{contract.name}-{secrets.token_hex(2)}",
        suite=request.suite.name,
        suite_digest=request.suite.digest(),
        contract=contract.name,
        contract_digest=contract.digest(),
        contract_fields=contract.fields(),
        model=outside if request.model is None else request.model.name,
        model_digest="unknown" if request.model is None else request.model.digest,
        samples=request.samples,
        repeats=contract.repeats.count,
        planned_episodes=len(request.variants) * request.samples * contract.repeats.count,
        started_at=now,
        agenteval_version=agenteval.__version__,
        facts=request.facts,
    )


def _end(run_id: str, status: RunStatus, verdict: Verdict | None, message: str | None) -> RunEnd:
    return RunEnd(run_id=run_id, ended_at=datetime.now(UTC), status=status, verdict=verdict, message=message)
