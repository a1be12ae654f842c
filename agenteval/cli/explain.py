"""`agenteval explain`: why two episodes part, asked of a live server."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from agenteval import models
from agenteval.cli.common import emit, say, stop_on_signals
from agenteval.cli.progress import StatusLine, StepLine
from agenteval.compare import Trajectory, passed_by_episode
from agenteval.contract import load_contract
from agenteval.errors import InputError, ModelError, UnknownNameError
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
from agenteval.loop import StopSwitch
from agenteval.records import Run
from agenteval.report.explanation import explanation_exit_code, explanation_json, explanation_text
from agenteval.server import ManagedServer, OutsideServer, StartOptions, end_orphans, read_engine_facts
from agenteval.store import RunReader, files_folder, run_ids


def explain_divergence(arguments: argparse.Namespace) -> int:
    """Replay the turn where two episodes part, print what flips it, and say so by the exit status."""
    run, a = _stored(arguments.db, arguments.a)
    _, b = _stored(arguments.db_b or arguments.db, arguments.b)
    subject = subject_of(a, b)
    with stop_on_signals(StopSwitch()) as stop:
        found = (
            _on_their_server(subject, arguments, stop)
            if arguments.base_url
            else _on_ours(subject, run, arguments, stop)
        )
    emit(json.dumps(explanation_json(found), indent=2) if arguments.json else explanation_text(found))
    return explanation_exit_code(found)


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


def _on_their_server(subject: Subject, arguments: argparse.Namespace, stop: StopSwitch) -> Explanation:
    """On a server that someone else runs, of which nothing is started anew."""
    if arguments.contract is not None or arguments.boots is not None:
        raise InputError(
            "--contract and --boots are for a server that is started here; leave them out with --base-url."
        )
    server = OutsideServer(arguments.base_url, arguments.model)

    @contextlib.contextmanager
    def open_server(_boot: int) -> Iterator[Replayer]:
        yield Replayer(subject, server, model_name=server.model_name, check_over=stop.check)

    return explain(subject, open_server, boots=1, changes=("someone else runs it",), on_trial=_say_trial)


def _on_ours(subject: Subject, run: Run, arguments: argparse.Namespace, stop: StopSwitch) -> Explanation:
    """On a server started as the run's was, but for what the experiment needs."""
    contract = contract_of(run) if arguments.contract is None else load_contract(arguments.contract).contract
    experiment = experiment_contract(contract, company_of(subject))
    cache_dir = models.cache_folder()
    facts = read_engine_facts(cache_dir)
    with StepLine() as progress:
        model = models.resolve(arguments.model or run.model, cache_dir=cache_dir, progress=progress)
    if model.digest != run.model_digest:
        raise ModelError(
            f"The run was made with a model of digest {run.model_digest}; {model.name} has {model.digest}, whose "
            "answers would explain nothing. Name the run's own model with --model."
        )
    plan = plan_launch(experiment, model, facts)
    end_orphans(cache_dir)

    @contextlib.contextmanager
    def open_server(boot: int) -> Iterator[Replayer]:
        options = StartOptions(
            python=facts.python,
            log_path=files_folder(arguments.db) / f"explain-{boot}.log",
            cache_dir=cache_dir,
            timeout_s=experiment.engine.start_timeout_s,
        )
        with _started(plan, options, stop) as server:
            name = server.facts.served_models[0] if server.facts.served_models else model.name
            yield Replayer(subject, server, model_name=name, check_over=stop.check)

    changes = contract_changes(contract, experiment)
    return explain(subject, open_server, boots=arguments.boots or 2, changes=changes, on_trial=_say_trial)


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
    say(printable(f"trial     {trial.condition.name}, try {trial.attempt}: {trial.match}"))
