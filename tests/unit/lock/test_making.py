"""What a lock holds of a run that is about to start."""

from __future__ import annotations

import dataclasses

import pytest
import run_records as records
from golden_files import check_golden
from machines import CPU, H200

from agenteval.launch import EngineFacts, plan_launch
from agenteval.lock import Lock, ProgramSection, ServerSection, compare_locks
from agenteval.loop import lock_of

from .conftest import ENVIRON, MODEL, STRICT, request

OTHER = dataclasses.replace(records.VARIANT, variant="other")


def server(facts: EngineFacts, environ: dict[str, str]) -> ServerSection:
    return ServerSection.of(plan_launch(STRICT, MODEL, facts), facts, environ)


def test_a_strict_run_on_an_h200_has_its_golden_lock(lock: Lock) -> None:
    assert lock.machine is not None
    machine = lock.machine.model_copy(update={"system": "Linux", "architecture": "x86_64"})
    program = ProgramSection(version="0.1.0", python="3.11.0")
    # The digests of a suite are other tests' matter, and change with the language.
    suite = lock.suite.model_copy(update={"digest": "sha256:" + "2" * 64, "variants_digest": "sha256:" + "3" * 64})
    fixed = lock.model_copy(update={"agenteval": program, "machine": machine, "suite": suite})
    check_golden("locks/strict-h200.json", fixed.text())


def test_a_server_of_someone_elses_leaves_engine_machine_and_server_unknown(outside_lock: Lock) -> None:
    unknown = (outside_lock.engine, outside_lock.machine, outside_lock.server, outside_lock.model.digest)
    assert (outside_lock.model.name, unknown) == ("fake", (None, None, None, None))


def test_variables_that_the_plan_sets_are_not_told_as_inherited() -> None:
    assert server(H200, {"HF_HUB_OFFLINE": "0", "TZ": "UTC"}).inherited == {"TZ": "UTC"}


def test_bytes_that_are_no_text_are_spelled_out() -> None:
    assert server(H200, {"LD_LIBRARY_PATH": "/a\udcff"}).inherited == {"LD_LIBRARY_PATH": "/a\\udcff"}


def test_which_processors_they_are_does_not_matter() -> None:
    elsewhere = dataclasses.replace(CPU, cpus=(4, 7))
    assert server(CPU, {}).variables == server(elsewhere, {}).variables


def test_processors_that_the_contract_names_are_kept() -> None:
    contract = records.contract("strict", engine__env={"VLLM_CPU_OMP_THREADS_BIND": "1"})
    # An engine that does not list its variables takes any.
    facts = dataclasses.replace(CPU, variables=frozenset())
    section = ServerSection.of(plan_launch(contract, MODEL, facts), facts, {})
    assert section.variables["VLLM_CPU_OMP_THREADS_BIND"] == "1"


def test_names_and_folders_of_a_model_do_not_matter() -> None:
    moved = dataclasses.replace(MODEL, name="mine", folder=MODEL.folder / "elsewhere")
    plan = plan_launch(STRICT, moved, H200)
    assert ServerSection.of(plan, H200, {}) == server(H200, {})


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        pytest.param(
            {"variants": (records.VARIANT, OTHER)}, ["suite.variants", "suite.variants_digest"], id="one more variant"
        ),
        pytest.param({"variants": (OTHER,)}, ["suite.variants_digest"], id="another variant"),
        pytest.param({"samples": 2}, ["suite.samples"], id="samples"),
        pytest.param({"agent": "mine:build"}, ["agent"], id="agent"),
        pytest.param(
            {"contract": records.contract("strict", sampling__temperature=0.5)},
            ["contract.fields.sampling.temperature"],
            id="a field of the contract",
        ),
        pytest.param(
            {"contract": records.contract("strict", engine__start_timeout_s=5.0)}, [], id="patience changes no number"
        ),
        pytest.param(
            {"contract": STRICT.model_copy(update={"name": "x", "description": "y"})},
            [],
            id="name and description of the contract",
        ),
    ],
)
def test_a_change_of_the_run_is_a_difference_of_its_lock(
    lock: Lock, changes: dict[str, object], fields: list[str]
) -> None:
    comparison = compare_locks(lock, lock_of(request(**changes), ENVIRON))
    assert [difference.field for difference in comparison.differences] == fields
