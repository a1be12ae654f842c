"""A sweep's file becomes cells, or every problem that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.errors import FileProblemsError
from agenteval.sweep import Cell, load_sweep

ROOT = Path(__file__).parents[3]
TWO_BY_TWO = """\
name: small
description: Two formats under two contracts.
suite: suite
samples: 1
contract:
  engine: {kv_cache_memory_bytes: 4000000000}
axes:
  weights:
    bf16: {model: a-model}
    fp8:
      model: a-model
      contract: {engine: {quantization: fp8}}
  serving:
    strict: {extends: strict}
    default: {extends: default}
reference: {serving: strict}
servers: {at_once: 2}
"""


def cells(folder: Path, text: str = TWO_BY_TWO) -> dict[str, Cell]:
    file = folder / "sweep.yaml"
    file.write_text(text)
    return {cell.name: cell for cell in load_sweep(file).cells}


def problems(folder: Path, text: str) -> str:
    with pytest.raises(FileProblemsError) as caught:
        cells(folder, text)
    return str(caught.value)


def test_cells_are_the_product_with_the_last_axis_fastest(tmp_path: Path) -> None:
    assert list(cells(tmp_path)) == ["bf16/strict", "bf16/default", "fp8/strict", "fp8/default"]


def test_each_cell_is_compared_within_its_own_value_of_the_other_axes(tmp_path: Path) -> None:
    found = cells(tmp_path)
    assert {name: cell.reference for name, cell in found.items()} == {
        "bf16/strict": "bf16/strict",
        "bf16/default": "bf16/strict",
        "fp8/strict": "fp8/strict",
        "fp8/default": "fp8/strict",
    }
    assert [name for name, cell in found.items() if cell.is_reference] == ["bf16/strict", "fp8/strict"]


def test_a_reference_of_all_axes_is_one_cell(tmp_path: Path) -> None:
    text = TWO_BY_TWO.replace("{serving: strict}", "{serving: strict, weights: bf16}")
    assert {cell.reference for cell in cells(tmp_path, text).values()} == {"bf16/strict"}


def test_contract_fields_come_from_the_base_then_all_cells_then_axes_then_adjustments(tmp_path: Path) -> None:
    text = TWO_BY_TWO + "adjust:\n- cells: {weights: fp8, serving: strict}\n  contract: {repeats: {count: 5}}\n"
    found = cells(tmp_path, text)
    assert {cell.contract.engine.kv_cache_memory_bytes for cell in found.values()} == {4_000_000_000}
    assert [cell.contract.engine.quantization for cell in found.values()] == [None, None, "fp8", "fp8"]
    assert [cell.contract.cache.mode for cell in found.values()] == ["disabled", "shared"] * 2
    assert [cell.contract.repeats.count for cell in found.values()] == [2, 2, 5, 2]


def test_a_cells_contract_is_named_after_it(tmp_path: Path) -> None:
    assert cells(tmp_path)["fp8/strict"].contract.name == "fp8-strict"


def test_cells_can_be_left_out(tmp_path: Path) -> None:
    text = TWO_BY_TWO + "leave_out:\n- {weights: fp8, serving: default}\n"
    assert list(cells(tmp_path, text)) == ["bf16/strict", "bf16/default", "fp8/strict"]


def test_a_models_path_counts_from_the_file(tmp_path: Path) -> None:
    text = TWO_BY_TWO.replace("bf16: {model: a-model}", "bf16: {model: ./weights}")
    assert cells(tmp_path, text)["bf16/strict"].model == str(tmp_path / "weights")


def test_a_contract_beside_the_file_can_be_extended(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\nextends: strict\nsampling: {seed: 7}\n")
    text = TWO_BY_TWO.replace("{extends: default}", "{extends: mine.yaml}")
    assert cells(tmp_path, text)["bf16/default"].contract.sampling.seed == 7


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{serving: strict}", "{serving: strikt}", "the axis serving has no value 'strikt'"),
        ("{serving: strict}", "{srving: strict}", "there is no axis 'srving'"),
        ("{extends: default}", "{}", "no axis sets `extends` for bf16/default"),
        ("bf16: {model: a-model}", "bf16: {model: a-model, extends: strict}", "several axes set `extends`"),
        ("bf16: {model: a-model}", "bf16: {}", "no axis sets `model` for bf16/strict"),
        ("{extends: default}", "{extends: nonsense}", "There is no contract 'nonsense'"),
        ("quantization: fp8", "quantisation: fp8", "the contract of fp8/strict cannot be: engine.quantisation"),
        (
            "{extends: default}",
            "{extends: default, contract: {engine: {quantization: gptq}}}",
            "another axis sets engine.quantization too",
        ),
        ("servers: {at_once: 2}", "servers: {at_once: 0}", "servers.at_once"),
        ("samples: 1\n", "", "samples"),
    ],
)
def test_a_wrong_file_says_where_and_why(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TWO_BY_TWO
    assert said in problems(tmp_path, TWO_BY_TWO.replace(old, new))


def test_a_reference_that_is_left_out_is_told(tmp_path: Path) -> None:
    text = TWO_BY_TWO + "leave_out:\n- {weights: fp8, serving: strict}\n"
    assert "fp8/default has no reference: fp8/strict is left out" in problems(tmp_path, text)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = TWO_BY_TWO.replace("{extends: default}", "{extends: nonsense}").replace("{extends: strict}", "{extends: no}")
    found = problems(tmp_path, text)
    assert "'nonsense'" in found
    assert "'no'" in found


def test_the_experiment_has_eight_hundred_strict_episodes() -> None:
    found = load_sweep(ROOT / "examples" / "cache-x-quantization" / "sweep.yaml").cells
    repeats = [cell.contract.repeats.count for cell in found if cell.values["serving"] == "strict"]
    assert sum(repeats) * 80 == 800
