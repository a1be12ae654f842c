"""Clause by clause: what can be kept, what would stay unproven, what cannot be kept, and why."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import run_records as made
from machines import CPU, H200

from agenteval.audit import audit_run, clause_verdicts
from agenteval.contract import Contract, builtin_names, load_contract
from agenteval.digest import canonical_json
from agenteval.doctor.promises import ContractProspect, Prospect, contract_prospect
from agenteval.launch import EngineFacts
from agenteval.models import SeenModel
from agenteval.records import ClauseVerdict

SEEN = SeenModel(
    name="some-model",
    origin="catalogue",
    folder=Path("/models/some"),
    size_bytes=1,
    fetch_bytes=0,
    lack=None,
    tool_call_parser="hermes",
    pinned_digest="sha256:" + "0" * 64,
)
NO_DEV_MODE = dataclasses.replace(H200, variables=H200.variables - {"VLLM_SERVER_DEV_MODE"})
SILENT = dataclasses.replace(H200, variables=frozenset())


def prospect(
    name: str = "strict", facts: EngineFacts | None = H200, seen: SeenModel | None = SEEN, **changes: dict[str, Any]
) -> ContractProspect:
    """Of a built-in contract with some fields of some clauses changed."""
    fields = load_contract(name).contract.fields()
    for clause, values in changes.items():
        fields[clause] |= values
    return contract_prospect(Contract.model_validate_json(canonical_json(fields)), name, facts, seen)


def clauses(of: ContractProspect, wanted: Prospect) -> set[str]:
    return {item.clause for item in of.clauses if item.prospect is wanted}


def reasons(of: ContractProspect, clause: str) -> str:
    return "\n".join(next(item.reasons for item in of.clauses if item.clause == clause))


@pytest.mark.parametrize("name", ["strict", "isolated", "invariant"])
def test_a_repeatable_contract_can_be_kept_on_an_h200(name: str) -> None:
    found = prospect(name)
    assert (found.is_repeatable, found.can_be_kept) == (True, True)


def test_the_control_promises_less_and_can_be_kept() -> None:
    found = prospect("default")
    assert (found.is_repeatable, found.can_be_kept) == (False, True)
    assert clauses(found, Prospect.NOT_PROMISED) == {"batching", "repeats"}


@pytest.mark.parametrize("name", builtin_names())
def test_what_is_not_promised_is_what_a_run_calls_so(name: str) -> None:
    verdicts = clause_verdicts(audit_run(*made.kept_run(load_contract(name).contract)))
    judged = {clause for clause, verdict in verdicts.items() if verdict is ClauseVerdict.NOT_PROMISED}
    assert clauses(prospect(name), Prospect.NOT_PROMISED) == judged


def test_what_launch_refuses_is_told_by_clause() -> None:
    found = prospect("invariant", CPU)
    assert clauses(found, Prospect.REFUSED) == {"batching", "engine"}
    assert reasons(found, "batching").startswith("batch-invariant kernels need an NVIDIA GPU")
    assert not found.can_be_kept


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"engine": {"version": ">=1"}}, "the contract accepts >=1", id="another version"),
        pytest.param({"engine": {"extra_args": ["--nonsense"]}}, "no option --nonsense", id="an option"),
    ],
)
def test_what_the_engine_lacks_is_told(changes: dict[str, dict[str, Any]], words: str) -> None:
    assert words in reasons(prospect(**changes), "engine")


def test_a_model_without_a_known_parser_is_told() -> None:
    seen = dataclasses.replace(SEEN, tool_call_parser=None)
    assert "no tool-call parser is known" in reasons(prospect(seen=seen), "engine")


def test_a_model_that_is_not_here_may_have_any_parser() -> None:
    assert prospect(seen=dataclasses.replace(SEEN, folder=None, tool_call_parser=None)).can_be_kept


def test_another_digest_than_the_catalogues_cannot_be_kept() -> None:
    found = prospect(model={"digest": "sha256:" + "1" * 64})
    assert clauses(found, Prospect.REFUSED) == {"model"}


def test_an_engine_without_developer_mode_leaves_unproven_what_its_server_would_report() -> None:
    found = prospect(facts=NO_DEV_MODE)
    assert clauses(found, Prospect.UNPROVEN) == {"batching", "engine", "model"}
    assert not found.can_be_kept


def test_an_engine_that_lists_no_variables_is_believed() -> None:
    assert prospect(facts=SILENT).can_be_kept


@pytest.mark.parametrize(("level", "unproven"), [("warning", {"batching", "engine"}), ("DEBUG", set())])
def test_a_silent_log_leaves_the_attention_backend_unproven(level: str, unproven: set[str]) -> None:
    found = prospect("invariant", engine={"env": {"VLLM_LOGGING_LEVEL": level}})
    assert clauses(found, Prospect.UNPROVEN) == unproven


def test_one_repeat_proves_no_agreement() -> None:
    assert clauses(prospect(repeats={"count": 1}), Prospect.UNPROVEN) == {"repeats"}


def test_without_an_engine_nothing_that_is_promised_can_be_kept() -> None:
    found = prospect("isolated", facts=None)
    assert clauses(found, Prospect.REFUSED) == {item.clause for item in found.clauses}
