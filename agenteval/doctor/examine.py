"""All checks and contracts, and the one thing to do next."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from agenteval import models
from agenteval.contract import builtin_names, load_contract
from agenteval.doctor.check import Check, State, guarded
from agenteval.doctor.engine import driver_check, engine_check, gpu_check, read_cards
from agenteval.doctor.places import (
    cpu_check,
    database_check,
    disk_here_check,
    model_check,
    port_check,
    servers_check,
)
from agenteval.doctor.promises import ContractProspect, contract_prospect
from agenteval.errors import EngineNotFoundError, ModelError
from agenteval.launch import EngineFacts
from agenteval.models.errors import ModelNotFoundError
from agenteval.server import read_engine_facts

_FIRST_SUITES = {"cpu": "tasks/starter", "cuda": "tasks/toolsuite"}
_CPU_LIMIT = 3
"""Task variants that a CPU runs in a few minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be looked at, as the command line names it."""

    database: Path
    cache_dir: Path
    model: str
    contract: str | None
    """The one that is asked about, by name or file; None asks about the built-in ones alone."""
    options: tuple[str, ...]
    """Options that the next command needs too, such as --db and --model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found."""

    checks: tuple[Check, ...]
    contracts: tuple[ContractProspect, ...]
    has_engine: bool
    next_step: str
    """The command to type next; after the words that say what comes before it, where no command does that."""

    @property
    def is_ready(self) -> bool:
        """Whether a contract that promises repeatability can be kept here now."""
        return not _missing(self.checks) and any(item.is_repeatable and item.can_be_kept for item in self.contracts)


def examine(subject: Subject, own: Sequence[Check]) -> Diagnosis:
    """Look at everything.

    Args:
        subject: What to look at.
        own: What was found of Python and of agenteval's own packages.
    """
    # First, since a contract's own mistakes are told like anywhere else.
    contracts = {name: load_contract(name).contract for name in _names(subject.contract)}
    engine, seen = _engine(subject.cache_dir), _seen(subject)
    facts = None if isinstance(engine, EngineNotFoundError) else engine
    model = seen if isinstance(seen, models.SeenModel) else None
    checks = (*own, *_engine_checks(engine), *_place_checks(subject, facts, seen))
    device = None if facts is None else facts.device
    prospects = tuple(contract_prospect(contract, name, facts, model) for name, contract in contracts.items())
    return Diagnosis(
        checks=checks,
        contracts=prospects,
        has_engine=facts is not None,
        next_step=next_step(checks, _repeatable(prospects, subject.contract), device=device, options=subject.options),
    )


def _names(asked: str | None) -> list[str]:
    return [*builtin_names(), *([asked] if asked is not None and asked not in builtin_names() else [])]


def _repeatable(contracts: Sequence[ContractProspect], asked: str | None) -> str | None:
    """What --contract takes for a contract that promises repeatability and can be kept; None where there is none.

    The one that was asked about comes first, then the reference.
    """
    able = [item.argument for item in contracts if item.is_repeatable and item.can_be_kept]
    return next((name for name in (asked, "strict", *able) if name in able), None)


def next_step(checks: Sequence[Check], contract: str | None, *, device: str | None, options: Sequence[str]) -> str:
    """The first thing that is in the way, or a first run.

    Args:
        checks: All that was looked at.
        contract: What to run under; None where no contract that promises repeatability can be kept.
        device: The engine's; None where there is none.
        options: What a run needs besides suite and contract.
    """
    in_the_way = [*_missing(checks), *(check for check in checks if check.state is State.WARNING)]
    if _missing(checks) or contract is None:
        command = next((check.command for check in in_the_way if check.command is not None), None)
        return command or "agenteval doctor, once what is missing above is there"
    suite = Path(_FIRST_SUITES["cpu" if device == "cpu" else "cuda"])
    if not suite.is_dir():
        return "agenteval new suite first-suite"
    limit = ("--limit", str(_CPU_LIMIT)) if device == "cpu" else ()
    return shlex.join(["agenteval", "run", str(suite), "--contract", contract, *limit, *options])


def _missing(checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if check.state is State.MISSING]


def _engine(cache_dir: Path) -> EngineFacts | EngineNotFoundError:
    try:
        return read_engine_facts(cache_dir)
    except EngineNotFoundError as error:
        return error


def _seen(subject: Subject) -> models.SeenModel | ModelError | OSError:
    try:
        return models.look(subject.model, cache_dir=subject.cache_dir)
    except (ModelError, OSError) as error:
        return error


def _engine_checks(engine: EngineFacts | EngineNotFoundError) -> tuple[Check, ...]:
    cards = read_cards()
    facts = None if isinstance(engine, EngineNotFoundError) else engine
    accepted = load_contract("strict").contract.engine.version
    return engine_check(engine, accepted, cards), gpu_check(facts, cards), driver_check(facts, cards)


def _place_checks(
    subject: Subject, facts: EngineFacts | None, seen: models.SeenModel | ModelError | OSError
) -> tuple[Check, ...]:
    model = seen if isinstance(seen, models.SeenModel) else None
    fetch_bytes = 0 if model is None else model.fetch_bytes
    is_cpu = facts is not None and facts.device == "cpu"
    memory = psutil.virtual_memory()
    cpu = cpu_check(
        name=platform.machine() if facts is None else facts.cpu_model,
        processors=len(os.sched_getaffinity(0)) if facts is None else len(facts.cpus),
        total_bytes=memory.total,
        free_bytes=memory.available,
        weights_bytes=model.size_bytes if is_cpu and model is not None else None,
    )

    def look_at_model() -> Check:
        if isinstance(seen, models.SeenModel | ModelNotFoundError):
            return model_check(seen)
        raise seen

    return (
        cpu,
        guarded("model", look_at_model),
        guarded("disk", lambda: disk_here_check(subject.database, subject.cache_dir, fetch_bytes=fetch_bytes)),
        guarded("database", lambda: database_check(subject.database)),
        port_check(),
        guarded("servers", lambda: servers_check(subject.cache_dir)),
    )
