"""Boots of a run: a server is started or reached, checked, probed, used, and its end recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agenteval.audit import start_breaches
from agenteval.client import Gate, RequestRules, check_accepted, open_connection
from agenteval.contract import Contract
from agenteval.errors import InputError, ModelError, ServerError, UnsupportedClauseError
from agenteval.launch import EngineFacts, LaunchPlan, advice
from agenteval.log import printable
from agenteval.loop.episode import BootSession, EpisodeSetting
from agenteval.loop.observer import Observer
from agenteval.loop.probes import BootProber
from agenteval.loop.stop import StoppedError, StopSwitch
from agenteval.models import digest_folder
from agenteval.records import Boot, BootEnd, EpisodePlan, Evidence, Model, Run
from agenteval.server import ManagedServer, OutsideServer, Server, ServerKeeper, StartOptions

_KEPT_LOG_CHARACTERS = 2_000
"""Of a dead server's log; the whole is in its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedEngine:
    """An engine of ours, and how the contract wants it started."""

    facts: EngineFacts
    plan: LaunchPlan
    model: Model
    cache_dir: Path
    logs: Path
    """Folder of the server logs."""
    port: int | None = None
    keeper: ServerKeeper | None = None
    """Takes the server when the run is over, and gives one that an equal run has left; None starts and stops it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideEngine:
    """A server that someone else runs."""

    base_url: str
    model: str
    """Its served name."""


Engine = ManagedEngine | OutsideEngine


@contextmanager
def open_boot(
    run: Run, number: int, engine: Engine, *, setting: EpisodeSetting, observer: Observer
) -> Iterator[BootSession]:
    """A server that is healthy, accepts the contract's fields and has been probed; its end is probed and recorded.

    Args:
        run: Whose boot.
        number: Boots of the run before this one.
        engine: What to start or to reach.
        setting: The run's contract, where to write, and the user's wish to stop.
        observer: Told of the start.

    Raises:
        InputError: If the port is taken, or an outside server does not serve the model.
        ServerError: If it cannot be started or reached, or dies during its probes.
        StoreError: If the boot cannot be recorded.
        UnsupportedClauseError: If it lacks a request field that the contract writes, or a clause is broken already.
        StoppedError: If the user asks for a stop before the probes are done.
    """
    contract, writer, stop = setting.contract, setting.writer, setting.stop
    boot_id = f"{run.run_id}/boot-{number}"
    started_at = datetime.now(UTC)
    kept = engine.keeper.take(engine.plan) if isinstance(engine, ManagedEngine) and engine.keeper else None
    server = kept or _open_server(boot_id, contract, engine, _or_stop(stop, observer.starting))
    connection = open_connection(contract.batching.concurrency)
    is_over = False
    try:
        stop.on_second(server.kill if isinstance(server, ManagedServer) else None)
        session = BootSession(
            boot_id=boot_id,
            server=server,
            model_name=_served_name(server),
            gate=Gate(contract.batching.concurrency),
            connection=connection,
        )
        _check_request_fields(contract, session)
        boot = _record(boot_id, run.run_id, server, started_at, served_before=server is kept)
        writer.append(boot)()
        observer.probing()
        prober = BootProber(contract, session, hand_over=writer.append, check_over=stop.check)
        prober.probe_start()
        _check_kept_so_far(start_breaches(run, contract, boot, prober.turns.values()), contract, engine)
        yield session
        # A server that has died, or a user who wants no more, ends the boot without them; the auditors see that.
        with suppress(ServerError, StoppedError):
            prober.probe_end()
            is_over = True
    finally:
        connection.close()
        metrics = server.metrics()
        # A dying process of ours looks alive for a moment after it has stopped answering; others' may publish none.
        was_alive = bool(metrics) if isinstance(server, ManagedServer) else server.is_alive()
        keeper = engine.keeper if isinstance(engine, ManagedEngine) and is_over and was_alive else None
        reason = server.stop() if keeper is None or not isinstance(server, ManagedServer) else keeper.keep(server)
        stop.on_second(None)
        if not was_alive and not stop.is_forced:
            reason = f"no longer answered: {server.last_log_lines()[-_KEPT_LOG_CHARACTERS:]}"
        writer.append(
            BootEnd(
                boot_id=boot_id,
                run_id=run.run_id,
                ended_at=datetime.now(UTC),
                reason=reason,
                metrics=metrics,
                model_digest=_digest_after(engine),
            )
        )


def _check_kept_so_far(breaches: Sequence[Evidence], contract: Contract, engine: Engine) -> None:
    """End a run before its first episode where the probes have shown that its contract does not hold here.

    Raises:
        UnsupportedClauseError: With each fact that breaks a clause.
    """
    reasons = [printable(f"{row.clause}: {row.fact}: {row.observed}; expected {row.expected}") for row in breaches]
    if reasons:
        facts = engine.facts if isinstance(engine, ManagedEngine) else None
        broken = {row.clause for row in breaches}
        # The probes of sampling are sent under every contract.
        broken = set() if "sampling" in broken else broken
        raise UnsupportedClauseError(
            contract=contract.name, reasons=reasons, advice=advice(contract, facts, broken), was_started=True
        )


def _digest_after(engine: Engine) -> str | None:
    """What the model's folder holds now: a folder that changed after it was hashed was not what answered."""
    if isinstance(engine, OutsideEngine):
        return None
    try:
        return digest_folder(engine.model.folder, cache_dir=engine.cache_dir)
    except (OSError, ModelError):
        # Gone or unreadable; the auditor then has nothing to compare.
        return None


def _or_stop(stop: StopSwitch, report: Callable[[str, float], None]) -> Callable[[str, float], None]:
    """The same report, which ends a start that the user no longer wants: it can take minutes."""

    def report_or_stop(phase: str, elapsed_s: float) -> None:
        stop.check()
        report(phase, elapsed_s)

    return report_or_stop


def _open_server(boot_id: str, contract: Contract, engine: Engine, on_phase: Callable[[str, float], None]) -> Server:
    if isinstance(engine, OutsideEngine):
        return OutsideServer(engine.base_url, engine.model)
    options = StartOptions(
        python=engine.facts.python,
        log_path=engine.logs / f"{boot_id.replace('/', '-')}.log",
        cache_dir=engine.cache_dir,
        timeout_s=contract.engine.start_timeout_s,
        port=engine.port,
    )
    return ManagedServer(engine.plan, options, on_phase)


def _served_name(server: Server) -> str:
    if isinstance(server, OutsideServer):
        return server.model_name
    if not server.facts.served_models:
        raise InputError(f"The server at {server.base_url} serves no model. Look at its log.")
    return server.facts.served_models[0]


def _check_request_fields(contract: Contract, session: BootSession) -> None:
    any_plan = EpisodePlan(run_id="", position=0, task="", variant="", sample=0, repeat=0, seed=0, cache_salt="any")
    rules = RequestRules.of(contract, any_plan, model_name=session.model_name, max_tokens=1)
    check_accepted(rules, session.server.facts.request_fields, contract.name)


def _record(boot_id: str, run_id: str, server: Server, started_at: datetime, *, served_before: bool) -> Boot:
    managed = server if isinstance(server, ManagedServer) else None
    return Boot(
        boot_id=boot_id,
        run_id=run_id,
        is_managed=managed is not None,
        started_at=started_at,
        ready_s=0.0 if managed is None else managed.ready_s,
        base_url=server.base_url,
        argv=() if managed is None else managed.plan.argv,
        env={} if managed is None else dict(managed.plan.env),
        facts={**server.facts.as_json(), "metrics": server.metrics(), "served_before": served_before},
    )
