"""Differences of two locks, by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.contract import load_contract
from agenteval.errors import LockDifferenceError
from agenteval.lock import Lock, check_same, compare_locks
from agenteval.loop import lock_of

from .conftest import ENVIRON, changed, request


def lines(a: Lock, b: Lock) -> list[str]:
    return [str(difference) for difference in compare_locks(a, b).differences]


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        pytest.param("engine.torch", "2.12.0", "engine.torch: 2.11.0+cu130 → 2.12.0", id="torch"),
        pytest.param("machine.driver", None, "machine.driver: 580.65 → (none)", id="a value that is gone"),
        pytest.param(
            "machine.gpus.0.name", "NVIDIA H100", "machine.gpus[0].name: NVIDIA H200 → NVIDIA H100", id="in a list"
        ),
        pytest.param(
            "machine.gpus",
            [],
            'machine.gpus[0]: {"name": "NVIDIA H200", "capability": "9.0", "memory_bytes": 150000000000} → (none)',
            id="one GPU fewer",
        ),
        pytest.param("agenteval.version", "9", "agenteval.version: 0.1.0 → 9", id="the runner"),
        pytest.param("agenteval.python", "3.99", "agenteval.python: 3.0 → 3.99", id="the runner's Python"),
        pytest.param(
            "contract.fields.cache.mode", "shared", "contract.fields.cache.mode: disabled → shared", id="the contract"
        ),
        pytest.param(
            "server.inherited.OMP_NUM_THREADS", "", 'server.inherited.OMP_NUM_THREADS: 8 → ""', id="an empty value"
        ),
        pytest.param("server.inherited.TZ", "UTC", "server.inherited.TZ: (none) → UTC", id="a variable that is new"),
        pytest.param("agent", "a\x1b[31m", "agent: agenteval → a\\x1b[31m", id="control characters"),
    ],
)
def test_a_field_that_differs_is_named_with_both_values(lock: Lock, path: str, value: Any, line: str) -> None:
    lock = changed(changed(lock, "agenteval.python", "3.0"), "agenteval.version", "0.1.0")
    assert lines(lock, changed(lock, path, value)) == [line]


@pytest.mark.parametrize(
    "path",
    [
        "contract.name",
        "contract.digest",
        "model.name",
        "suite.name",
        "server.inherited.CUDA_VISIBLE_DEVICES",
        *(
            f"server.inherited.{name}"
            for name in (
                "CUDA_CACHE_PATH",
                "HF_DATASETS_CACHE",
                "HF_HOME",
                "HF_HUB_DISABLE_PROGRESS_BARS",
                "HF_HUB_ETAG_TIMEOUT",
                "NCCL_DEBUG",
                "NCCL_DEBUG_SUBSYS",
                "ONEDNN_VERBOSE",
                "TOKENIZERS_PARALLELISM",
                "TORCHINDUCTOR_CACHE_DIR",
                "TORCH_LOGS",
                "TRANSFORMERS_CACHE",
                "TRANSFORMERS_VERBOSITY",
                "TRITON_CACHE_DIR",
            )
        ),
    ],
)
def test_what_no_number_depends_on_is_told_and_not_compared(lock: Lock, path: str) -> None:
    assert lines(lock, changed(lock, path, "other")) == []


@pytest.mark.parametrize(
    "name",
    [
        "ATEN_CPU_CAPABILITY",
        "NCCL_ALGO",
        "ONEDNN_MAX_CPU_ISA",
        "TORCHINDUCTOR_AUTOTUNE_LOCAL_CACHE",
        "TRITON_CACHE_AUTOTUNING",
        "OMP_LOGIC",
    ],
)
def test_a_variable_that_a_number_may_depend_on_is_compared(lock: Lock, name: str) -> None:
    assert lines(lock, changed(lock, f"server.inherited.{name}", "a")) == [f"server.inherited.{name}: (none) → a"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            lambda argv: [*argv, "--block-size", "32"], ["server.argv.--block-size: (none) → 32"], id="an option more"
        ),
        pytest.param(
            lambda argv: ["64" if word == "1" else word for word in argv],
            ["server.argv.--max-num-seqs: 1 → 64"],
            id="another value",
        ),
        pytest.param(
            lambda argv: [word for word in argv if word != "--no-enable-prefix-caching"],
            ["server.argv.--no-enable-prefix-caching: given → (none)"],
            id="a switch less",
        ),
        pytest.param(lambda argv: [*argv[:2], *argv[4:], *argv[2:4]], [], id="another order"),
        pytest.param(lambda argv: [*argv, "--x", "-1"], ["server.argv.--x: (none) → -1"], id="a negative number"),
    ],
)
def test_options_of_the_server_are_compared_by_name(lock: Lock, change: Any, expected: list[str]) -> None:
    assert lock.server is not None
    assert lines(lock, changed(lock, "server.argv", change(list(lock.server.argv)))) == expected


def leaves(value: Any, path: str = "") -> list[str]:
    """Paths of the innermost fields, in the form that `changed` takes; an option of the server is none."""
    inner = (
        list(enumerate(value)) if isinstance(value, list) else list(value.items()) if isinstance(value, dict) else []
    )
    if not inner or path == "server.argv":
        return [path]
    return [leaf for key, item in inner for leaf in leaves(item, f"{path}.{key}" if path else str(key))]


def test_every_field_but_those_told_is_compared(lock: Lock) -> None:
    fields = lock_of(request(), {"OMP_NUM_THREADS": "8"}).as_json()
    ignored = []
    for path in leaves({name: section for name, section in fields.items() if name != "lock_version"}):
        others: tuple[Any, ...] = ("other", 77, True, ["other"])
        (other, *_) = [value for value in others if is_valid(lock, path, value)]
        if not lines(lock, changed(lock, path, other)):
            ignored.append(path)
    assert ignored == ["model.name", "suite.name", "contract.name", "contract.digest"]


def is_valid(lock: Lock, path: str, value: Any) -> bool:
    """Whether a lock may hold another value there, and one that it does not hold yet."""
    try:
        return changed(lock, path, value) != lock
    except ValueError:
        return False


def test_differences_read_the_same_from_both_sides(lock: Lock) -> None:
    other = lock_of(request(contract=load_contract("invariant").contract, samples=3), {"TZ": "UTC"})
    there = {(each.field, repr(each.a), repr(each.b)) for each in compare_locks(lock, other).differences}
    back = {(each.field, repr(each.b), repr(each.a)) for each in compare_locks(other, lock).differences}
    assert len(there) > 5
    assert there == back


def test_a_lock_equals_itself(lock: Lock) -> None:
    comparison = compare_locks(lock, lock)
    assert (comparison.differences, comparison.unknown) == ((), ())


def test_what_one_side_does_not_know_is_unknown_and_no_difference(lock: Lock, outside_lock: Lock) -> None:
    comparison = compare_locks(lock, outside_lock)
    assert (comparison.differences, comparison.unknown) == ((), ("engine", "machine", "model.digest", "server"))


def test_two_unknown_sections_are_not_equal(outside_lock: Lock) -> None:
    assert "engine" in compare_locks(outside_lock, outside_lock).unknown


def test_a_run_that_differs_is_refused_with_every_field(lock: Lock) -> None:
    here = changed(changed(lock, "engine.torch", "2"), "machine.driver", "1")
    with pytest.raises(LockDifferenceError) as refused:
        check_same(Path("a.lock.json"), lock, here)
    assert str(refused.value).splitlines() == [
        "This run is not what a.lock.json locks, so nothing was started; 2 fields (locked → here):",
        "  engine.torch: 2.11.0+cu130 → 2",
        "  machine.driver: 580.65 → 1",
        "Make them as they were locked, or leave out --locked for a run with a lock of its own.",
    ]


def test_a_lock_that_does_not_know_the_engine_locks_nothing(lock: Lock, outside_lock: Lock) -> None:
    with pytest.raises(LockDifferenceError, match="engine: the lock does not know it"):
        check_same(Path("a.lock.json"), outside_lock, lock)


def test_an_equal_run_is_accepted(lock: Lock) -> None:
    check_same(Path("a.lock.json"), lock, lock_of(request(), ENVIRON))
