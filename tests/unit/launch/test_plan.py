"""The server's command line: golden for every built-in contract, and refused where a clause would not be kept."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from golden_files import check_golden
from hypothesis import given
from hypothesis import strategies as st
from machines import CPU, H200, MACHINES

from agenteval.contract import Contract, builtin_names, load_contract
from agenteval.digest import canonical_json
from agenteval.errors import UnsupportedClauseError
from agenteval.launch import EngineFacts, plan_launch
from agenteval.records import Model

MODEL = Model(
    name="qwen2.5-coder-0.5b-instruct",
    folder=Path("/cache/models/qwen"),
    digest="sha256:" + "0" * 64,
    tool_call_parser="hermes",
)


def contract(name: str = "strict", **changes: dict[str, Any]) -> Contract:
    """A built-in contract with some fields of some clauses changed."""
    fields = load_contract(name).contract.fields()
    for clause, values in changes.items():
        fields[clause] |= values
    return Contract.model_validate_json(canonical_json(fields))


def reasons(wanted: Contract, facts: EngineFacts) -> str:
    """Why the contract is refused."""
    with pytest.raises(UnsupportedClauseError) as refused:
        plan_launch(wanted, MODEL, facts)
    return "\n".join(refused.value.reasons)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", builtin_names())
def test_builtin_contract_leads_to_its_golden_command(name: str, machine: str) -> None:
    try:
        plan = plan_launch(contract(name), MODEL, MACHINES[machine])
        shown = "\n".join([*(f"{key}={value}" for key, value in sorted(plan.env.items())), *plan.argv]) + "\n"
    except UnsupportedClauseError as error:
        shown = f"refused: {error}\n"
    check_golden(f"argv/{name}-{machine}.txt", shown)


@given(st.sampled_from(sorted(builtin_names())), st.sampled_from([CPU, H200]), st.text(max_size=50))
def test_equal_contracts_lead_to_equal_plans(name: str, facts: EngineFacts, description: str) -> None:
    a, b = contract(name), contract(name).model_copy(update={"description": description})
    assert a.digest() == b.digest()
    if name != "invariant" or facts is H200:
        assert plan_launch(a, MODEL, facts) == plan_launch(b, MODEL, facts)


def test_command_shows_what_a_person_would_type() -> None:
    command = plan_launch(contract(engine={"env": {"VLLM_LOGGING_LEVEL": "a b"}}), MODEL, CPU).command()
    assert "VLLM_LOGGING_LEVEL='a b'" in command
    assert " python -m vllm.entrypoints.openai.api_server --model " in command


def test_a_model_without_a_known_tool_parser_is_refused_before_the_start() -> None:
    with pytest.raises(UnsupportedClauseError, match="no tool-call parser is known"):
        plan_launch(contract(), dataclasses.replace(MODEL, tool_call_parser=None), CPU)


def test_a_contract_can_name_the_tool_parser_of_an_unknown_model() -> None:
    wanted = contract(engine={"extra_args": ["--enable-auto-tool-choice", "--tool-call-parser", "llama3_json"]})
    plan = plan_launch(wanted, dataclasses.replace(MODEL, tool_call_parser=None), CPU)
    assert plan.argv[-3:] == ("--enable-auto-tool-choice", "--tool-call-parser", "llama3_json")


def test_every_reason_is_given_at_once() -> None:
    wanted = contract(engine={"version": ">=1", "attention_backend": "FLASH_ATTN", "extra_args": ["--nonsense"]})
    shown = reasons(wanted, CPU)
    assert all(words in shown for words in ("accepts >=1", "needs a GPU", "no option --nonsense"))


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--max-num-seqs", "8"], id="as the clause writes it"),
        pytest.param(["--max-num-seqs=8"], id="with an equals sign"),
        pytest.param(["--max_num_seqs", "8"], id="with underscores"),
        pytest.param(["--enable-prefix-caching"], id="the other choice"),
        pytest.param(["--no-enforce-eager"], id="negated"),
        pytest.param(["--no-enable-prompt-tokens-details"], id="evidence switched off"),
        pytest.param(["-q", "fp8"], id="short name"),
        pytest.param(["-sc", "{}"], id="short name of speculative decoding"),
        pytest.param(["--device-memory-utilization", "0.5"], id="alias"),
        pytest.param(["--attention-config", "{}"], id="a config that holds the clause"),
        pytest.param(["--config", "more.yaml"], id="a file of options"),
        pytest.param(["--port", "80"], id="the boot's port"),
        pytest.param(["other-model"], id="a positional model"),
        pytest.param(["--kv-transfer-config", "{}"], id="a second cache"),
        pytest.param(["--nonsense", "1"], id="unknown option"),
        pytest.param(["--max-num-s", "1"], id="abbreviation"),
        pytest.param(["--"], id="end of options"),
    ],
)
def test_extra_args_that_undo_a_clause_are_refused(arguments: list[str]) -> None:
    assert arguments[0].split("=")[0].replace("_", "-") in reasons(contract(engine={"extra_args": arguments}), H200)


def test_other_extra_args_come_last() -> None:
    plan = plan_launch(contract(engine={"extra_args": ["--block-size", "16"]}), MODEL, H200)
    assert plan.argv[-2:] == ("--block-size", "16")


@pytest.mark.parametrize("flag", ["--speculative-config", "--spec-method", "--spec-tokens"])
def test_speculative_decoding_is_refused_unless_batching_is_free(flag: str) -> None:
    extra = {"extra_args": [flag, "{}"]}
    assert "speculative" in reasons(contract("strict", engine=extra), H200)
    assert flag in plan_launch(contract("default", engine=extra), MODEL, H200).argv


def test_a_second_cache_is_accepted_where_the_cache_is_shared() -> None:
    wanted = contract("default", engine={"extra_args": ["--kv-transfer-config", "{}"]})
    assert "--kv-transfer-config" in plan_launch(wanted, MODEL, H200).argv


@pytest.mark.parametrize("name", ["VLLM_BATCH_INVARIANT", "VLLM_CPU_KVCACHE_SPACE", "VLLM_SERVER_DEV_MODE"])
def test_env_that_a_clause_decides_is_refused(name: str) -> None:
    assert f"env sets {name}" in reasons(contract(engine={"env": {name: "1"}}), CPU)


def test_env_that_the_engine_does_not_read_is_refused() -> None:
    assert "no variable VLLM_NONSENSE" in reasons(contract(engine={"env": {"VLLM_NONSENSE": "1"}}), CPU)


@pytest.mark.parametrize(
    ("installed", "accepted", "is_fine"),
    [
        ("0.32.0", ">=0.25,<0.34", True),
        ("0.33.0rc1.dev5+gabc123", ">=0.25,<0.34", True),
        ("0.32.0+cpu", "==0.32.0", True),
        ("0.24.9", ">=0.25,<0.34", False),
        ("0.34.0rc1", ">=0.25,<0.34", False),
        ("dev", ">=0.25,<0.34", False),
    ],
)
def test_installed_version_lies_in_the_range(installed: str, accepted: str, is_fine: bool) -> None:
    facts, wanted = dataclasses.replace(CPU, vllm_version=installed), contract(engine={"version": accepted})
    if is_fine:
        assert plan_launch(wanted, MODEL, facts)
    else:
        assert f"vLLM {installed} is installed, the contract accepts {accepted}" in reasons(wanted, facts)


@pytest.mark.parametrize(
    ("capability", "is_fine"), [((7, 5), False), ((8, 0), True), ((12, 0), True)], ids=["7.5", "8.0", "12.0"]
)
def test_invariant_kernels_need_capability_8(capability: tuple[int, int], is_fine: bool) -> None:
    facts = dataclasses.replace(H200, gpus=(dataclasses.replace(H200.gpus[0], capability=capability),))
    if is_fine:
        assert plan_launch(contract("invariant"), MODEL, facts).env["VLLM_BATCH_INVARIANT"] == "1"
    else:
        assert "compute capability 7.5, 8.0 is needed" in reasons(contract("invariant"), facts)


@pytest.mark.parametrize("backend", ["FLASH_ATTN", None], ids=str)
def test_invariant_batching_refuses_other_attention_backends(backend: str | None) -> None:
    shown = reasons(contract("invariant", engine={"attention_backend": backend}), H200)
    assert "is not known to be batch-invariant" in shown


def test_invariant_batching_refuses_kernels_that_are_not_compiled() -> None:
    shown = reasons(contract("invariant", engine={"compilation": "eager"}), H200)
    assert "depend on the batch where nothing is compiled" in shown


def test_invariant_batching_refuses_an_engine_without_the_mode() -> None:
    facts = dataclasses.replace(H200, variables=frozenset({"VLLM_LOGGING_LEVEL"}))
    assert "has no batch-invariant mode" in reasons(contract("invariant"), facts)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("quantization", "gptq", "no quantization 'gptq'"),
        ("attention_backend", "TRITON_ATTN", "needs a GPU"),
        ("gpu_memory_utilization", 0.5, "needs a GPU"),
        ("kv_cache_memory_bytes", 3 * 2**29, "whole GiB"),
    ],
)
def test_a_field_that_a_cpu_cannot_honour_is_refused(field: str, value: object, words: str) -> None:
    assert words in reasons(contract(engine={field: value}), CPU)


def test_a_cpus_cache_size_is_the_contracts() -> None:
    plan = plan_launch(contract(engine={"kv_cache_memory_bytes": 3 * 2**30}), MODEL, CPU)
    assert plan.env["VLLM_CPU_KVCACHE_SPACE"] == "3"


def test_a_value_that_the_engine_does_not_take_is_refused_with_the_nearest() -> None:
    facts = dataclasses.replace(H200, values={"--attention-backend": frozenset({"TRITON_ATTN", "FLASH_ATTN"})})
    shown = reasons(contract(engine={"attention_backend": "TRITON_ATN"}), facts)
    assert "does not take 'TRITON_ATN' for --attention-backend. Did you mean 'TRITON_ATTN'?" in shown


def test_fp8_is_refused_where_auto_is_float32() -> None:
    assert "'fp8' needs dtype bfloat16 or float16" in reasons(contract(engine={"quantization": "fp8"}), CPU)
    assert "'fp8' needs" not in reasons(contract(engine={"quantization": "fp8", "extra_args": ["--nonsense"]}), H200)
