"""`agenteval run`: the main command."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from typing import Any

from agenteval import models
from agenteval.agent import load_factory
from agenteval.cli.common import stop_on_signals
from agenteval.cli.database import print_summary
from agenteval.cli.progress import RunProgress, StepLine
from agenteval.contract import Contract, load_contract
from agenteval.errors import InputError, ModelError
from agenteval.launch import plan_launch
from agenteval.lock import Lock, check_same, read_lock
from agenteval.loop import Engine, ManagedEngine, OutsideEngine, RunRequest, StopSwitch, execute_run, lock_of
from agenteval.records import Model
from agenteval.server import OutsideServer, end_orphans, read_engine_facts
from agenteval.spec import Selection, load_suite, select_variants
from agenteval.store import files_folder


def run(arguments: argparse.Namespace) -> int:
    """Run a suite; the exit status is the verdict's."""
    locked = _locked(arguments)
    suite = load_suite(arguments.suite)
    contract = load_contract(arguments.contract).contract
    if arguments.repeats is not None:
        contract = contract.with_repeats(arguments.repeats)
    variants = select_variants(
        suite, Selection(tasks=tuple(arguments.task), tags=tuple(arguments.tag), limit=arguments.limit)
    )
    # Here already, since the model may have to be fetched before the run would find a wrong name.
    load_factory(arguments.agent or suite.agent.graph)
    model, engine, facts = _engine(arguments, contract)
    request = RunRequest(
        suite=suite,
        variants=variants,
        contract=contract,
        model=model,
        engine=engine,
        samples=arguments.samples,
        agent=arguments.agent,
        facts=facts,
    )
    if locked is not None:
        check_same(arguments.locked, locked, lock_of(request, os.environ))
    progress = RunProgress(is_quiet=arguments.quiet)
    try:
        with stop_on_signals(StopSwitch()) as stop:
            result = execute_run(request, arguments.db, progress, stop)
    finally:
        progress.close()
    return print_summary(arguments.db, result.run_id, as_json=arguments.json)


def _locked(arguments: argparse.Namespace) -> Lock | None:
    """What the run must equal; read first, so that a wrong file costs nothing."""
    if arguments.locked is None:
        return None
    if arguments.base_url is not None:
        raise InputError(
            "--locked compares the engine and the machine, which are unknown of a server that someone else runs. Leave "
            "out --locked, or --base-url."
        )
    return read_lock(arguments.locked)


def _engine(arguments: argparse.Namespace, contract: Contract) -> tuple[Model | None, Engine, dict[str, Any]]:
    """The engine to use, with all that can be refused refused before anything starts."""
    machine = {"python": platform.python_version(), "platform": platform.platform(), "argv": sys.argv[1:]}
    if arguments.base_url is not None:
        if arguments.port is not None:
            raise InputError("--port is for a managed server; leave it out with --base-url.")
        # Asked before the run is recorded, so that its record names the model that answers.
        served = OutsideServer(arguments.base_url, arguments.model).model_name
        return None, OutsideEngine(base_url=arguments.base_url, model=served), machine
    cache_dir = models.cache_folder()
    facts = read_engine_facts(cache_dir)
    with StepLine() as progress:
        model = models.resolve(arguments.model or models.DEFAULT_MODEL, cache_dir=cache_dir, progress=progress)
    _check_digest(contract, model)
    plan = plan_launch(contract, model, facts)
    end_orphans(cache_dir)
    engine = ManagedEngine(
        facts=facts, plan=plan, model=model, cache_dir=cache_dir, logs=files_folder(arguments.db), port=arguments.port
    )
    return model, engine, {**machine, "engine": facts.as_json()}


def _check_digest(contract: Contract, model: Model) -> None:
    wanted = contract.model.digest
    if wanted is not None and wanted != model.digest:
        raise ModelError(
            f"The contract {contract.name!r} accepts only a model with digest {wanted}; {model.name} has "
            f"{model.digest}. Name that model with --model, or change model.digest in the contract."
        )
