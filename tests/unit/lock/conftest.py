"""Locks of a strict run, made of facts by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import run_records as records
from machines import H200

from agenteval.contract import Contract, load_contract
from agenteval.digest import canonical_json
from agenteval.launch import plan_launch
from agenteval.lock import Lock
from agenteval.loop import ManagedEngine, OutsideEngine, RunRequest, lock_of
from agenteval.records import Model
from agenteval.spec import Suite

MODEL = Model(
    name="qwen2.5-coder-0.5b-instruct",
    folder=Path("/cache/models/qwen"),
    digest="sha256:" + "0" * 64,
    tool_call_parser="hermes",
)
STRICT = load_contract("strict").contract
ENVIRON = {"CUDA_VISIBLE_DEVICES": "0", "HF_TOKEN": "hush", "HOME": "/home/me", "OMP_NUM_THREADS": "8"}


def request(*, is_outside: bool = False, contract: Contract = STRICT, **changes: Any) -> RunRequest:
    """A run of one variant on an H200, or on someone else's server."""
    managed = ManagedEngine(
        facts=H200,
        plan=plan_launch(contract, MODEL, H200),
        model=MODEL,
        cache_dir=Path("/cache"),
        logs=Path("/logs"),
    )
    fields: dict[str, Any] = {
        "suite": Suite(
            path=Path("/suite"),
            name="suite",
            description="One task.",
            agent=records.SETTINGS,
            tools=records.MOCKS,
            variants=(records.VARIANT,),
        ),
        "variants": (records.VARIANT,),
        "contract": contract,
        "model": None if is_outside else MODEL,
        "engine": OutsideEngine(base_url="http://host", model="fake") if is_outside else managed,
        "samples": 1,
        "agent": None,
        "facts": {},
    }
    return RunRequest(**{**fields, **changes})


def changed(lock: Lock, path: str, value: Any) -> Lock:
    """The same lock with another value at a dotted path; a number is a place in a list."""
    fields = lock.as_json()
    *parents, last = path.split(".")
    place: Any = fields
    for key in parents:
        place = place[int(key) if key.isdigit() else key]
    place[last] = value
    return Lock.model_validate_json(canonical_json(fields))


@pytest.fixture
def lock() -> Lock:
    """The lock of a strict run on an H200."""
    return lock_of(request(), ENVIRON)


@pytest.fixture
def outside_lock() -> Lock:
    """The lock of the same run on a server that someone else runs."""
    return lock_of(request(is_outside=True), ENVIRON)
