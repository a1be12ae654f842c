"""`agenteval explain`: why two episodes part, asked of a live server."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from agenteval import models
from agenteval.cli.common import emit, say, stop_on_signals
from agenteval.cli.progress import StatusLine, StepLine
from agenteval.client import Exchange
from agenteval.compare import Trajectory, passed_by_episode
from agenteval.contract import load_contract
from agenteval.diff import settings_of
from agenteval.errors import InputError, ModelError, ServerError, UnknownNameError
from agenteval.explain import (
    Explanation,
    Replayer,
    Subject,
    Trial,
    company_of,
    contract_changes,
    experiment_contract,
    explain,
    subject_of,
)
from agenteval.judge import contract_of
from agenteval.launch import LaunchPlan, plan_launch
from agenteval.log import printable
from agenteval.loop import StoppedError, StopSwitch
from agenteval.records import UNKNOWN_DIGEST, Model, Run
from agenteval.report.explanation import (
    explanation_exit_code,
    explanation_json,
    explanation_text,
    trial_result,
)
from agenteval.server import ManagedServer, OutsideServer, Server, StartOptions, end_orphans, read_engine_facts
from agenteval.store import RunReader, files_folder, run_ids

_EXCHANGES = ".ndjson"
"""End of the name of a file of exchanges; journals of runs end otherwise."""
_BOOTS = 2
"""Starts of the server where --boots does not say."""


def explain_divergence(arguments: argparse.Namespace) -> int:
    """Replay the turn where two episodes part, print what flips it, and say so by the exit status."""
    run_a, a = _stored(arguments.db, arguments.a)
    run_b, b = _stored(arguments.db_b or arguments.db, arguments.b)
    subject = subject_of(a, b, settings=settings_of(run_a, run_b))
    stem = f"explain-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    with (
        _Exchanges(files_folder(arguments.db) / f"{stem}{_EXCHANGES}") as exchanges,
        stop_on_signals(StopSwitch()) as stop,
    ):
        setting = _Setting(subject=subject, arguments=arguments, stop=stop, stem=stem, record=exchanges.add)
        try:
            found = _on_their_server(setting) if arguments.base_url else _on_ours(setting, run_a)
        except (StoppedError, ServerError) as error:
            if not stop.is_asked:
                raise
            raise StoppedError(
                f"The experiment was stopped; its exchanges so far are in {exchanges.path}. Start it again with the "
                "same command."
            ) from error
    say(f"exchanges {exchanges.path}")
    output = {**explanation_json(found), "exchanges": str(exchanges.path)}
    emit(json.dumps(output, indent=2) if arguments.json else explanation_text(found))
    return explanation_exit_code(found)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What both kinds of server need to know."""

    subject: Subject
    arguments: argparse.Namespace
    stop: StopSwitch
    stem: str
    """What names of this experiment's files begin with."""
    record: Callable[[Exchange], None]


class _Exchanges:
    """A file of every exchange, whole, one JSON object a line; safe to write from many threads."""

    def __init__(self, path: Path) -> None:
        """Make the file.

        Raises:
            InputError: If it cannot be written.
        """
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("x", encoding="utf-8")
        except OSError as error:
            raise self._refused(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, exchange: Exchange) -> None:
        """Write an exchange.

        Raises:
            InputError: If it cannot be written.
        """
        fields = {**dataclasses.asdict(exchange), "started_at": exchange.started_at.isoformat()}
        try:
            with self._lock:
                self._file.write(json.dumps(fields) + "\n")
                self._file.flush()
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> InputError:
        return InputError(f"{self.path} cannot be written: {error.strerror}. Free some space, or correct --db.")


def _stored(path: Path, episode_id: str) -> tuple[Run, Trajectory]:
    """A stored episode and its run.

    Raises:
        UnknownNameError: If the database has no such episode.
    """
    run_id = episode_id.rpartition("/")[0]
    known = run_ids(path)
    if run_id in known:
        reader = RunReader(path=path, run_id=run_id)
        for episode in reader.episodes():
            if episode.plan.episode_id == episode_id:
                passed = passed_by_episode(reader.grades()).get(episode_id)
                return reader.run()[0], Trajectory(episode=episode, turns=reader.turns(episode_id), passed=passed)
    raise UnknownNameError(
        what="episode",
        name=episode_id,
        known=(),
        advice="List pairs that differ with: agenteval sql 'select episode_a, episode_b, cause from divergences'",
    )


def _on_their_server(setting: _Setting) -> Explanation:
    """On a server that someone else runs, of which nothing is started anew."""
    arguments = setting.arguments
    if arguments.contract is not None or arguments.boots is not None:
        raise InputError(
            "--contract and --boots are for a server that is started here; leave them out with --base-url."
        )
    server = OutsideServer(arguments.base_url, arguments.model)

    @contextlib.contextmanager
    def open_server(_boot: int) -> Iterator[Replayer]:
        yield _replayer(setting, server, server.model_name)

    changes = ("someone else runs it: cache, batching and model are as they are there, and no other boot is tried",)
    return explain(setting.subject, open_server, boots=1, changes=changes, on_trial=_say_trial)


def _on_ours(setting: _Setting, run: Run) -> Explanation:
    """On a server started as the run's was, but for what the experiment needs."""
    arguments = setting.arguments
    contract = contract_of(run) if arguments.contract is None else load_contract(arguments.contract).contract
    experiment = experiment_contract(contract, company_of(setting.subject))
    cache_dir = models.cache_folder()
    facts = read_engine_facts(cache_dir)
    with StepLine() as progress:
        model = models.resolve(arguments.model or run.model, cache_dir=cache_dir, progress=progress)
    changes = (*contract_changes(contract, experiment), *_check_model(model, run))
    plan = plan_launch(experiment, model, facts)
    end_orphans(cache_dir)

    @contextlib.contextmanager
    def open_server(boot: int) -> Iterator[Replayer]:
        options = StartOptions(
            python=facts.python,
            log_path=files_folder(arguments.db) / f"{setting.stem}-boot-{boot}.log",
            cache_dir=cache_dir,
            timeout_s=experiment.engine.start_timeout_s,
        )
        with _started(plan, options, setting.stop) as server:
            name = server.facts.served_models[0] if server.facts.served_models else model.name
            yield _replayer(setting, server, name)

    boots = _BOOTS if arguments.boots is None else arguments.boots
    return explain(setting.subject, open_server, boots=boots, changes=changes, on_trial=_say_trial)


def _check_model(model: Model, run: Run) -> tuple[str, ...]:
    """What is to be said of the model beside the run's.

    Raises:
        ModelError: If it is another one.
    """
    if run.model_digest == UNKNOWN_DIGEST:
        return (f"model: {printable(run.model)} of a server that someone else ran, {printable(model.name)} here",)
    if model.digest == run.model_digest:
        return ()
    raise ModelError(
        f"The run was made with a model of digest {run.model_digest}; {model.name} has {model.digest}, whose answers "
        "would explain nothing. Name the run's own model with --model."
    )


def _replayer(setting: _Setting, server: Server, model_name: str) -> Replayer:
    return Replayer(
        setting.subject, server, model_name=model_name, check_over=setting.stop.check, record=setting.record
    )


@contextlib.contextmanager
def _started(plan: LaunchPlan, options: StartOptions, stop: StopSwitch) -> Iterator[ManagedServer]:
    line = StatusLine()

    def on_phase(phase: str, elapsed_s: float) -> None:
        stop.check()
        line.update(f"server    {phase}, {elapsed_s:.0f} s", step=phase)

    try:
        server = ManagedServer(plan, options, on_phase)
    finally:
        line.clear()
    with server:
        stop.on_second(server.kill)
        yield server
        stop.on_second(None)


def _say_trial(trial: Trial) -> None:
    say(printable(f"trial     {trial.condition.name}, try {trial.attempt}: {trial_result(trial)}"))
