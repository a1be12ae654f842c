"""`agenteval run`: the main command."""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenteval import models
from agenteval.cli.common import Commands, cache_dir
from agenteval.cli.progress import RunProgress, StepLine
from agenteval.contract import Contract, load_contract
from agenteval.errors import InputError, ModelError
from agenteval.launch import plan_launch
from agenteval.loop import RunRequest, Selection, StopSwitch, execute_run, select_variants
from agenteval.loop.boots import Engine, ManagedEngine, OutsideEngine
from agenteval.records import Model
from agenteval.report import exit_code, summarize, summary_json, summary_text
from agenteval.server import end_orphans, read_engine_facts
from agenteval.spec import load_suite
from agenteval.store import RunReader, files_folder


def add_commands(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "run",
        help="run a suite under a contract",
        parents=[common],
        description="Run a suite's tasks under a contract and say whether the contract was kept.",
        epilog="Exit status: 0 kept, 1 breached or diverged, 2 could not tell.",
    )
    parser.add_argument("suite", type=Path, metavar="SUITE", help="folder with suite.yaml, such as tasks/toolsuite")
    parser.add_argument("--contract", required=True, metavar="NAME", help="built-in contract, or a YAML file")
    parser.add_argument("--model", metavar="NAME", help=f"folder, org/name or catalogue name ({models.DEFAULT_MODEL})")
    parser.add_argument("--task", action="append", default=[], metavar="ID", help="only this task (again for more)")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="only tasks with this tag")
    parser.add_argument("--limit", type=_positive, metavar="N", help="only the first N task variants")
    parser.add_argument("--repeats", type=_positive, metavar="N", help="same seed N times, in place of the contract's")
    parser.add_argument("--samples", type=_positive, default=1, metavar="N", help="N different seeds (default: 1)")
    parser.add_argument("--agent", metavar="MODULE:FACTORY", help="a LangGraph graph of your own")
    parser.add_argument("--base-url", metavar="URL", help="use a server that someone else runs")
    parser.add_argument("--port", type=_positive, metavar="N", help="port of the managed server (default: a free one)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress, only warnings")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run a suite; the exit status is the verdict's."""
    suite = load_suite(arguments.suite)
    contract = load_contract(arguments.contract).contract
    if arguments.repeats is not None:
        contract = contract.with_repeats(arguments.repeats)
    variants = select_variants(
        suite, Selection(tasks=tuple(arguments.task), tags=tuple(arguments.tag), limit=arguments.limit)
    )
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
    progress = RunProgress(is_quiet=arguments.quiet)
    try:
        with _stop_on_signals(progress) as stop:
            result = execute_run(request, arguments.db, progress, stop)
    finally:
        progress.close()
    summary = summarize(RunReader(path=arguments.db, run_id=result.run_id))
    print(json.dumps(summary_json(summary), indent=2) if arguments.json else summary_text(summary))
    return exit_code(summary)


def _engine(arguments: argparse.Namespace, contract: Contract) -> tuple[Model | None, Engine, dict[str, Any]]:
    """The engine to use, with all that can be refused refused before anything starts."""
    machine = {"python": platform.python_version(), "platform": platform.platform(), "argv": sys.argv[1:]}
    if arguments.base_url is not None:
        if arguments.port is not None:
            raise InputError("--port is for a managed server; leave it out with --base-url.")
        return None, OutsideEngine(base_url=arguments.base_url, model=arguments.model), machine
    facts = read_engine_facts(cache_dir())
    with StepLine() as progress:
        model = models.resolve(arguments.model or models.DEFAULT_MODEL, cache_dir=cache_dir(), progress=progress)
    _check_digest(contract, model)
    plan = plan_launch(contract, model, facts)
    end_orphans(cache_dir())
    engine = ManagedEngine(
        facts=facts, plan=plan, cache_dir=cache_dir(), logs=files_folder(arguments.db), port=arguments.port
    )
    return model, engine, {**machine, "engine": facts.as_json()}


def _check_digest(contract: Contract, model: Model) -> None:
    wanted = contract.model.digest
    if wanted is not None and wanted != model.digest:
        raise ModelError(
            f"The contract {contract.name!r} accepts only a model with digest {wanted}; {model.name} has "
            f"{model.digest}. Name that model with --model, or change model.digest in the contract."
        )


@contextlib.contextmanager
def _stop_on_signals(progress: RunProgress) -> Iterator[StopSwitch]:
    """Turn Ctrl-C and SIGTERM into a stop in good order; a second one ends the server at once."""
    stop = StopSwitch()

    def handle(_number: int, _frame: object) -> None:
        if not stop.is_asked:
            progress.warned("stopping after the requests in flight; press Ctrl-C again to end the server at once")
        stop.ask()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return number
