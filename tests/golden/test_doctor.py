"""What `agenteval doctor` shows on three machines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from golden_files import check_golden
from machines import CPU, H200

from agenteval.contract import builtin_names, load_contract
from agenteval.doctor.check import Check
from agenteval.doctor.engine import Card, driver_check, engine_check, gpu_check
from agenteval.doctor.examine import Diagnosis, next_step
from agenteval.doctor.packages import Needs, packages_check, python_check
from agenteval.doctor.places import cpu_check, database_check, disk_check, model_check, port_check, servers_check
from agenteval.doctor.promises import contract_prospect
from agenteval.doctor.text import as_json, screen
from agenteval.errors import EngineNotFoundError
from agenteval.launch import EngineFacts
from agenteval.models import SeenModel

PYTHON = "/venv/bin/python"
NEEDS = Needs(python=">=3.11", packages=("duckdb>=1", "pydantic>=2"))
GB = 10**9
CARD = Card(name="NVIDIA H200", driver_version="580.65", total_bytes=150 * GB, free_bytes=149 * GB)
MODEL = SeenModel(
    name="qwen2.5-coder-0.5b-instruct",
    origin="catalogue",
    folder=Path("/cache/models/qwen"),
    size_bytes=994_223_175,
    fetch_bytes=0,
    lack=None,
    tool_call_parser="hermes",
    pinned_digest="sha256:" + "0" * 64,
)
NO_ENGINE = EngineNotFoundError(python=Path(PYTHON), reason="it has no package vllm")
MACHINES: dict[str, tuple[EngineFacts | EngineNotFoundError, tuple[Card, ...]]] = {
    "cpu": (CPU, ()),
    "h200": (H200, (CARD,)),
    "no-engine": (NO_ENGINE, ()),
}


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the shipped suites, and an interpreter with a name that does not depend on the machine."""
    for suite in ("starter", "toolsuite"):
        (tmp_path / "tasks" / suite).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", PYTHON)


def place_checks(facts: EngineFacts | None) -> tuple[Check, ...]:
    cpu = cpu_check(
        name="Some CPU" if facts is None else facts.cpu_model,
        processors=2,
        total_bytes=25 * GB,
        free_bytes=22 * GB,
        weights_bytes=MODEL.size_bytes if facts is CPU else None,
    )
    return (
        cpu,
        model_check(MODEL),
        disk_check(runs_free_bytes=56 * GB, cache_free_bytes=40 * GB, fetch_bytes=0),
        database_check(Path("agenteval.duckdb")),
        port_check(),
        servers_check(Path("cache")),
    )


def diagnosis(machine: str) -> Diagnosis:
    engine, cards = MACHINES[machine]
    facts = None if isinstance(engine, EngineNotFoundError) else engine
    contracts = {name: load_contract(name).contract for name in builtin_names()}
    checks = (
        python_check(NEEDS, version="3.11.7", executable=PYTHON),
        packages_check(NEEDS),
        engine_check(engine, contracts["strict"].engine.version, cards),
        gpu_check(facts, cards),
        driver_check(facts, cards),
        *place_checks(facts),
    )
    return Diagnosis(
        checks=checks,
        contracts=tuple(contract_prospect(contract, name, facts, MODEL) for name, contract in contracts.items()),
        has_engine=facts is not None,
        next_step=next_step(checks, "strict", device=None if facts is None else facts.device, options=()),
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_screen(machine: str) -> None:
    check_golden(f"doctor/{machine}.txt", screen(diagnosis(machine)) + "\n")


def test_json() -> None:
    check_golden("doctor/cpu.json", json.dumps(as_json(diagnosis("cpu")), indent=2) + "\n")


@pytest.mark.parametrize("machine", ["cpu", "h200"])
def test_where_all_is_well_it_fits_a_terminal(machine: str) -> None:
    lines = screen(diagnosis(machine)).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("machine", "is_ready"), [("cpu", True), ("h200", True), ("no-engine", False)])
def test_only_a_machine_with_an_engine_is_ready(machine: str, is_ready: bool) -> None:
    assert diagnosis(machine).is_ready is is_ready
