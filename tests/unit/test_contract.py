"""Contracts: what they are, how files extend each other, and which changes make another contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.contract import Contract, builtin_names, load_contract
from agenteval.contract.clauses import CLAUSES, differences
from agenteval.errors import FileProblemsError, InputError, UnknownNameError

STRICT = load_contract("strict").contract


def write(folder: Path, text: str, name: str = "mine") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def problems_of(name: str) -> list[tuple[str, int | None, str, str]]:
    """File, line, key and message of every problem."""
    with pytest.raises(FileProblemsError) as caught:
        load_contract(name)
    return [(Path(p.path).name, p.line, p.key, p.message) for p in caught.value.problems]


def changed(contract: Contract, key: str, value: Any) -> Contract:
    """The contract with one field, named as `clause.field`, set to another value."""
    fields = contract.fields()
    *clauses, field = key.split(".")
    inner = fields
    for clause in clauses:
        inner = inner[clause]
    inner[field] = value
    return Contract.model_validate_json(json.dumps(fields))


def test_four_contracts_ship() -> None:
    assert builtin_names() == ("default", "invariant", "isolated", "strict")


@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_contract_loads_by_its_name(name: str) -> None:
    assert load_contract(name).contract.name == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("isolated", {"cache.mode"}, id="isolated"),
        pytest.param(
            "invariant",
            {"cache.mode", "batching.mode", "batching.concurrency", "engine.attention_backend"},
            id="invariant",
        ),
        pytest.param("default", {"cache.mode", "batching.mode", "boot.mode", "repeats.agree"}, id="default"),
    ],
)
def test_a_built_in_contract_differs_from_strict_in_what_its_file_says_only(name: str, expected: set[str]) -> None:
    assert set(differences(STRICT, load_contract(name).contract)) == expected


def test_differences_give_both_values() -> None:
    found = differences(STRICT, load_contract("default").contract)
    assert found["cache.mode"] == ("disabled", "shared")


def test_a_contract_does_not_differ_from_itself() -> None:
    assert differences(STRICT, STRICT) == {}


def test_the_clauses_are_the_designs() -> None:
    assert CLAUSES == (
        "cache",
        "batching",
        "sampling",
        "engine",
        "model",
        "boot",
        "tools",
        "prompts",
        "repeats",
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("name", "other", id="name"),
        pytest.param("description", "Other.", id="description"),
        pytest.param("engine.start_timeout_s", 1.5, id="patience"),
    ],
)
def test_the_digest_ignores_what_cannot_change_a_result(key: str, value: Any) -> None:
    assert changed(STRICT, key, value).digest() == STRICT.digest()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cache.mode", "shared"),
        ("sampling.seed", 1),
        ("sampling.stop", ["x"]),
        ("sampling.logit_bias", {"5": 1.0}),
        ("engine.dtype", "float32"),
        ("engine.env", {"A": "b"}),
        ("model.digest", "sha256:" + "0" * 64),
        ("tools.clock", "2026-01-15T09:00:01Z"),
        ("repeats.count", 3),
    ],
)
def test_the_digest_changes_with_what_can(key: str, value: Any) -> None:
    assert changed(STRICT, key, value).digest() != STRICT.digest()


@given(st.randoms(use_true_random=False))
def test_the_digest_ignores_key_order(random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        keys = list(value)
        random.shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}

    again = Contract.model_validate_json(json.dumps(shuffled(STRICT.fields())))
    assert again.digest() == STRICT.digest()


def test_a_contract_reads_back_from_its_fields() -> None:
    assert Contract.model_validate_json(json.dumps(STRICT.fields())) == STRICT


def test_with_repeats_says_so_in_the_name_and_changes_nothing_else() -> None:
    other = STRICT.with_repeats(5)
    assert other.name == "strict+repeats=5"
    assert set(differences(STRICT, other)) == {"repeats.count"}


def test_with_the_same_number_of_repeats_it_is_the_same_contract() -> None:
    assert STRICT.with_repeats(STRICT.repeats.count) is STRICT


@pytest.mark.parametrize("count", [0, 101])
def test_with_repeats_keeps_to_the_bounds(count: int) -> None:
    with pytest.raises(InputError, match=f"not for {count}"):
        STRICT.with_repeats(count)


def test_extending_replaces_the_named_fields_and_keeps_the_rest(tmp_path: Path) -> None:
    text = "extends: strict\nname: mine\nsampling: {temperature: 0.7, stop: [x]}\n"
    contract = load_contract(write(tmp_path, text)).contract
    assert set(differences(STRICT, contract)) == {"sampling.temperature", "sampling.stop"}
    assert contract.sampling.stop == ("x",)


def test_a_fields_own_value_is_replaced_whole(tmp_path: Path) -> None:
    write(tmp_path, "extends: strict\nengine: {env: {A: '1', B: '2'}}\n", "parent")
    contract = load_contract(write(tmp_path, "extends: parent.yaml\nname: mine\nengine: {env: {A: '3'}}\n")).contract
    assert contract.engine.env == {"A": "3"}


@pytest.mark.parametrize("named", ["", "name: strict\n", "name: default\n"])
def test_a_contract_of_ones_own_cannot_pass_for_a_built_in_one(tmp_path: Path, named: str) -> None:
    with pytest.raises(FileProblemsError, match="is the name of a built-in contract"):
        load_contract(write(tmp_path, f"{named}extends: strict\ncache: {{mode: shared}}\n"))


def test_a_path_is_found_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    write(tmp_path, "extends: strict\nsampling: {seed: 7}\n", "parent")
    name = write(tmp_path / "below", "extends: ../parent.yaml\nname: mine\n")
    assert load_contract(name).contract.sampling.seed == 7


def test_origins_name_the_file_that_set_each_field_last(tmp_path: Path) -> None:
    write(tmp_path, "extends: strict\ncache: {mode: shared}\nsampling: {seed: 7}\n", "parent")
    loaded = load_contract(write(tmp_path, "extends: parent.yaml\nname: mine\nsampling: {seed: 8}\n"))
    expected = {
        "name": "mine",
        "sampling.seed": "mine",
        "cache.mode": "parent",
        "sampling.top_p": "strict",
        "description": "strict",
    }
    assert {key: loaded.origins[key] for key in expected} == expected
    assert "extends" not in loaded.origins


def test_every_field_has_an_origin() -> None:
    fields = STRICT.fields()
    leaves = {f"{clause}.{field}" for clause in CLAUSES for field in fields[clause]} | {"name", "description"}
    for name in builtin_names():
        assert set(load_contract(name).origins) == leaves


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"mine": "extends: mine.yaml\n"}, "extends itself, directly or by others", id="itself"),
        pytest.param(
            {"mine": "extends: b.yaml\n", "b": "extends: c.yaml\n", "c": "extends: mine.yaml\n"},
            "extends itself, directly or by others",
            id="by-others",
        ),
        pytest.param({"mine": "extends: 5\n"}, "5 is no contract's name or path", id="number"),
        pytest.param({"mine": "extends: [strict]\n"}, "['strict'] is no contract's name or path", id="list"),
    ],
)
def test_a_contract_that_cannot_be_extended_is_one_problem(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        write(tmp_path, text, name)
    ((_, line, key, found),) = problems_of(str(tmp_path / "mine.yaml"))
    assert (line, key, found) == (1, "extends", message)


def test_a_chain_without_end_is_refused(tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path, f"extends: c{number + 1}.yaml\n", f"c{number}")
    ((_, _, key, message),) = problems_of(str(tmp_path / "c0.yaml"))
    assert key == "extends"
    assert message == "'c8.yaml' is no contract's name or path"


def test_an_unknown_parent_is_named_with_the_nearest_word(tmp_path: Path) -> None:
    ((file, line, key, message),) = problems_of(write(tmp_path, "name: x\nextends: strickt\n"))
    assert (file, line, key) == ("mine.yaml", 2, "extends")
    assert "Did you mean 'strict'?" in message


def test_an_unknown_name_is_told_with_the_nearest_word() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'isolated'") as caught:
        load_contract("isolatd")
    assert caught.value.known == builtin_names()


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        pytest.param(
            "sampling:\n  temprature: 1\n",
            3,
            "sampling.temprature",
            "unknown key 'temprature'. Did you mean 'temperature'?",
            id="unknown-field",
        ),
        pytest.param("cach: {mode: shared}\n", 2, "cach", "unknown key 'cach'. Did you mean 'cache'?", id="clause"),
        pytest.param(
            "cache:\n  mode: per_epsode\n",
            3,
            "cache.mode",
            "'per_epsode' is not one of 'disabled', 'per_episode' or 'shared'. Did you mean 'per_episode'?",
            id="unknown-word",
        ),
        pytest.param(
            "repeats: {level: token}\n",
            2,
            "repeats.level",
            "'token' is not one of 'logprobs', 'tokens', 'calls', 'tools' or 'outcome'. Did you mean 'tokens'?",
            id="unknown-level",
        ),
        pytest.param(
            "batching: {concurrency: 4}\n",
            2,
            "batching",
            "serial means concurrency 1, not 4; use mode invariant or free",
            id="serial-with-many",
        ),
        pytest.param(
            "cache: shared\n", 2, "cache", "must be a mapping of keys to values, not 'shared'", id="no-mapping"
        ),
        pytest.param(
            "engine: {version: newest}\n",
            2,
            "engine.version",
            "'newest' is no version range; write one such as '>=0.25,<0.34'",
            id="version",
        ),
        pytest.param(
            "tools: {clock: 2026-01-15T09:00:00}\n",
            2,
            "tools.clock",
            "'2026-01-15T09:00:00' has no time zone; append Z for UTC",
            id="clock-without-zone",
        ),
        pytest.param(
            "tools: {clock: noon}\n",
            2,
            "tools.clock",
            "'noon' is no ISO 8601 instant such as 2026-01-15T09:00:00Z",
            id="clock",
        ),
        pytest.param(
            "sampling: {temperature: .nan}\n", 2, "sampling.temperature", "must be a number, not '.nan'", id="nan"
        ),
        pytest.param(
            "sampling: {temperature: 3}\n", 2, "sampling.temperature", "must be 2.0 or less, not 3", id="bound"
        ),
        pytest.param("model: {digest: abc}\n", 2, "model.digest", "must match the pattern ", id="digest"),
        pytest.param("name: a b\n", 2, "name", "must match the pattern ", id="name"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, text: str, line: int, key: str, message: str) -> None:
    ((_, found_line, found_key, found),) = problems_of(write(tmp_path, f"extends: strict\n{text}"))
    assert (found_line, found_key) == (line, key)
    assert found.startswith(message)


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    text = "extends: strict\ncache: {mode: x}\nsampling:\n  seed: -1\n  seed: 2\nboot: {mode: one}\n"
    assert [(line, key) for _, line, key, _ in problems_of(write(tmp_path, text))] == [
        (2, "cache.mode"),
        (4, "sampling.seed"),
        (5, "sampling.seed"),
        (6, "boot.mode"),
    ]


def test_a_problem_of_a_parent_is_reported_at_the_parent(tmp_path: Path) -> None:
    write(tmp_path, "extends: strict\n\ncache: {mode: x}\n", "parent")
    found = problems_of(write(tmp_path, "extends: parent.yaml\nboot: {mode: y}\n"))
    assert [(file, line, key) for file, line, key, _ in found] == [
        ("mine.yaml", 2, "boot.mode"),
        ("parent.yaml", 3, "cache.mode"),
    ]


def test_no_field_has_a_default(tmp_path: Path) -> None:
    """What a result depends on is written down, in the file or in one that it extends."""
    text = "name: x\ndescription: x\n" + "".join(f"{clause}: {{}}\n" for clause in CLAUSES)
    missing = {key for _, _, key, _ in problems_of(write(tmp_path, text))}
    assert missing == {f"{clause}.{field}" for clause in CLAUSES for field in STRICT.fields()[clause]}


@pytest.mark.parametrize("text", ["", "5\n", "[strict]\n"])
def test_a_contract_is_a_mapping(tmp_path: Path, text: str) -> None:
    ((_, _, key, message),) = problems_of(write(tmp_path, text))
    assert (key, message) == ("", "a contract is a mapping of clauses")


@pytest.mark.parametrize("name", ["HF_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY"])
def test_a_contract_may_hold_no_secret(tmp_path: Path, name: str) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text(f"extends: strict\nname: secret\nengine: {{env: {{{name}: abc}}}}\n")
    with pytest.raises(FileProblemsError, match=f"{name}: a contract is stored with every run"):
        load_contract(str(file))


@pytest.mark.parametrize(
    ("engine", "named"),
    [
        pytest.param("env: {OMP_PROXY: 'http://u:hush@host'}", "OMP_PROXY", id="an address in a variable"),
        pytest.param(
            "extra_args: [--mirror, 'http://u:hush@host']", "an address with a user or a password", id="in an argument"
        ),
        pytest.param("extra_args: [--api-key, hush]", "--api-key", id="a key with a dash"),
        pytest.param("extra_args: [--hf-token=hush]", "--hf-token", id="a token after an equals sign"),
    ],
)
def test_a_secret_is_refused_and_not_repeated(tmp_path: Path, engine: str, named: str) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text(f"extends: strict\nname: secret\nengine: {{{engine}}}\n")
    with pytest.raises(FileProblemsError) as refused:
        load_contract(str(file))
    assert f"{named}: a contract is stored with every run" in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_secret_of_the_wrong_kind_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text("extends: strict\nname: secret\nengine: {env: {HF_TOKEN: 90210}}\n")
    with pytest.raises(FileProblemsError, match=r"engine\.env\.HF_TOKEN: must be a text") as refused:
        load_contract(str(file))
    assert "90210" not in str(refused.value)
