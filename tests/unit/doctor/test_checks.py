"""What each check makes of what it finds, with what to do wherever something is wrong."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machines import CPU, H200

from agenteval.doctor.check import Check, State, guarded
from agenteval.doctor.engine import Card, driver_check, engine_check, gpu_check, read_cards
from agenteval.doctor.examine import next_step
from agenteval.doctor.places import cpu_check, disk_check, disk_here_check, model_check, port_check, servers_check
from agenteval.errors import EngineNotFoundError
from agenteval.models import SeenModel
from agenteval.models.errors import ModelNotFoundError
from agenteval.server.orphans import machine, start_of

GB = 10**9
ACCEPTED = ">=0.25,<0.34"
CARD = Card(name="NVIDIA H200", driver_version="580.65", total_bytes=150 * GB, free_bytes=149 * GB)
BUSY = dataclasses.replace(CARD, free_bytes=20 * GB)
NO_GPU = dataclasses.replace(H200, gpus=())
NO_DRIVER = dataclasses.replace(H200, driver_version=None)
TWO = dataclasses.replace(H200, gpus=H200.gpus * 2)


def seen(**changes: Any) -> SeenModel:
    whole = SeenModel(
        name="some-model",
        origin="catalogue",
        folder=Path("/models/some"),
        size_bytes=GB,
        fetch_bytes=0,
        lack=None,
        tool_call_parser="hermes",
        pinned_digest="sha256:0",
    )
    return dataclasses.replace(whole, **changes)


def cpu(**changes: Any) -> Check:
    facts = {"name": "CPU", "processors": 2, "total_bytes": 8 * GB, "free_bytes": 6 * GB, "weights_bytes": GB}
    return cpu_check(**(facts | changes))


def own_python(reason: str) -> EngineNotFoundError:
    return EngineNotFoundError(python=Path(sys.executable), reason=reason)


OTHER_PYTHON = EngineNotFoundError(python=Path("/other/python"), reason="No such file")
CASES = {
    "a CPU engine": (engine_check(CPU, ACCEPTED, ()), State.OK, "vLLM 0.32.0, torch 2.11.0+cpu, no CUDA"),
    "an engine too old": (
        engine_check(dataclasses.replace(CPU, vllm_version="0.9"), ACCEPTED, ()),
        State.WARNING,
        "accept >=0.25,<0.34",
    ),
    "an engine without a version": (
        engine_check(dataclasses.replace(CPU, vllm_version="dev"), ACCEPTED, ()),
        State.WARNING,
        "vLLM dev",
    ),
    "no engine": (engine_check(own_python("it has no package vllm"), ACCEPTED, ()), State.MISSING, "no package vllm"),
    "another interpreter that is broken": (engine_check(OTHER_PYTHON, ACCEPTED, ()), State.MISSING, "/other/python"),
    "no GPU": (gpu_check(CPU, ()), State.OK, "none: the engine runs on the CPU"),
    "a GPU that the engine cannot use": (gpu_check(CPU, (CARD,)), State.WARNING, "NVIDIA H200 is here"),
    "a GPU and no engine": (gpu_check(None, (CARD,)), State.OK, "NVIDIA H200"),
    "neither": (gpu_check(None, ()), State.OK, "none that nvidia-smi shows"),
    "a GPU": (gpu_check(H200, (CARD,)), State.OK, "compute capability 9.0, 149.0 GB free"),
    "a GPU without nvidia-smi": (gpu_check(H200, ()), State.OK, "150.0 GB, compute capability 9.0"),
    "a busy GPU": (gpu_check(H200, (BUSY,)), State.WARNING, "20.0 GB free; the engine wants 90% of it"),
    "a card that is another's": (gpu_check(H200, (BUSY, CARD)), State.OK, "150.0 GB, compute capability 9.0"),
    "two GPUs": (gpu_check(TWO, (CARD, CARD)), State.OK, "2 x NVIDIA H200"),
    "a GPU that torch does not see": (gpu_check(NO_GPU, (CARD,)), State.MISSING, "torch sees none"),
    "a driver": (driver_check(H200, ()), State.OK, "NVIDIA 580.65"),
    "a driver that nvidia-smi knows": (driver_check(None, (CARD,)), State.OK, "NVIDIA 580.65"),
    "no driver where none is needed": (driver_check(CPU, ()), State.OK, "none: only a GPU needs one"),
    "a driver of unknown version": (driver_check(NO_DRIVER, ()), State.WARNING, "without it"),
    "memory enough": (cpu(), State.OK, "2 processors, 6.0 of 8.0 GB free"),
    "little memory": (cpu(free_bytes=4 * GB), State.WARNING, "the model takes about 4.1 GB"),
    "little memory that the GPU does not need": (cpu(free_bytes=GB, weights_bytes=None), State.OK, "1.0 of 8.0"),
    "a model": (model_check(seen()), State.OK, "some-model, 1.0 GB, is here"),
    "a model elsewhere": (model_check(seen(folder=None)), State.MISSING, "some-model, 1.0 GB, is not here"),
    "a model of unknown size": (model_check(seen(folder=None, size_bytes=None)), State.MISSING, "some-model, is not"),
    "half a model": (model_check(seen(lack="it has no config.json")), State.MISSING, "it has no config.json"),
    "half a model of one's own": (
        model_check(seen(lack="it holds no weights", origin="folder")),
        State.MISSING,
        "it holds no weights",
    ),
    "no such model": (
        model_check(ModelNotFoundError("x", reason="it is nothing", advice="")),
        State.MISSING,
        "'x' was not found: it is nothing",
    ),
    "room": (disk_check(runs_free_bytes=2 * GB, cache_free_bytes=3 * GB, fetch_bytes=0), State.OK, "10 million tokens"),
    "little room for runs": (
        disk_check(runs_free_bytes=GB // 2, cache_free_bytes=3 * GB, fetch_bytes=0),
        State.WARNING,
        "0.5 GB free for runs (2 million tokens)",
    ),
    "no room for the model": (
        disk_check(runs_free_bytes=9 * GB, cache_free_bytes=GB, fetch_bytes=2 * GB),
        State.MISSING,
        "fetching the model takes 2.0 GB",
    ),
    "a port": (port_check(), State.OK, "can listen on 127.0.0.1"),
    # An address that no machine has. Source: RFC 5737.
    "no port": (port_check("192.0.2.1"), State.MISSING, "nothing can listen on 192.0.2.1"),
}


@pytest.mark.parametrize("case", CASES)
def test_state_and_what_was_found(case: str) -> None:
    check, state, words = CASES[case]
    assert check.state is state
    assert words in check.found


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_says_what_to_do_and_what_is_ok_does_not(case: str) -> None:
    check, _, _ = CASES[case]
    assert (check.to_do is None) == (check.state is State.OK)


@pytest.mark.parametrize(
    ("error", "cards", "command"),
    [
        pytest.param(own_python("none"), (), "make env", id="for a CPU"),
        pytest.param(own_python("none"), (CARD,), f"{sys.executable} -m pip install 'vllm{ACCEPTED}'", id="for a GPU"),
        pytest.param(OTHER_PYTHON, (CARD,), None, id="in an interpreter of the user's own"),
    ],
)
def test_what_installs_the_engine(error: EngineNotFoundError, cards: tuple[Card, ...], command: str | None) -> None:
    assert engine_check(error, ACCEPTED, cards).command == command


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ("catalogue", "rm -r /models/some && agenteval models pull some-model"),
        ("hub", "agenteval models pull some-model"),
        ("folder", None),
    ],
)
def test_what_mends_half_a_model(origin: str, command: str | None) -> None:
    assert model_check(seen(lack="it holds no weights", origin=origin)).command == command


def test_a_names_blanks_are_quoted_in_the_command() -> None:
    assert model_check(seen(name="a b", folder=None)).command == "agenteval models pull 'a b'"


def test_no_nvidia_smi_means_no_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_cards() == ()


@pytest.mark.parametrize(
    ("script", "chosen", "cards"),
    [
        pytest.param("echo 'A, 1.2, 1024, 512'", None, [("A", 512 * 2**20)], id="one"),
        pytest.param("echo 'A, 1, 9, 8'; echo 'B, 1, 9, 7'", "1", [("B", 7 * 2**20)], id="chosen by number"),
        pytest.param("echo 'A, 1, 9, 8'; echo 'B, 1, 9, 7'", "", [], id="none chosen"),
        pytest.param("echo 'A, 1, 9, 8'", "GPU-5e", [("A", 8 * 2**20)], id="chosen by another name"),
        pytest.param("echo 'A, 1, [N/A], [N/A]'", None, [("A", None)], id="memory not told"),
        pytest.param("echo No devices were found", None, [], id="no device"),
        pytest.param("echo 'A, 1, 9, 8'; exit 9", None, [], id="fails"),
    ],
)
def test_cards_are_what_nvidia_smi_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, chosen: str | None, cards: list[tuple[str, int]]
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if chosen is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert [(card.name, card.free_bytes) for card in read_cards()] == cards


def test_a_cache_that_is_a_file_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    check = disk_here_check(tmp_path / "x.duckdb", tmp_path / "cache", fetch_bytes=0)
    assert (check.state, check.found.endswith("cache is no folder")) == (State.MISSING, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_may_not_be_written_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o500)
    check = disk_here_check(tmp_path / "x.duckdb", tmp_path / "cache", fetch_bytes=0)
    assert (check.state, check.found.endswith("may not be written")) == (State.MISSING, True)


def test_a_thing_that_cannot_be_looked_at_hides_nothing() -> None:
    def fail() -> Check:
        raise PermissionError(13, "Permission denied", "/secret")

    check = guarded("disk", fail)
    assert (check.name, check.state) == ("disk", State.MISSING)
    assert "Permission denied: '/secret'" in check.found


def test_servers_left_over_are_told_and_left_running(tmp_path: Path) -> None:
    (tmp_path / "boots").mkdir()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        kept = {"machine": machine(), "pid": process.pid, "started": start_of(process.pid), "runner": 1}
        note = tmp_path / "boots" / "1.json"
        note.write_text(f"{kept | {'runner_started': '0'}}".replace("'", '"'))
        check = servers_check(tmp_path)
        state = process.poll()
        process.kill()
    assert (check.state, state, note.exists()) == (State.WARNING, None, True)
    assert check.found == f"left over from killed runs: process {process.pid}"


MISSING = Check(name="a", state=State.MISSING, found="", to_do="", command="mend a")
NOTHING_TO_TYPE = Check(name="b", state=State.MISSING, found="", to_do="")
WARNED = Check(name="c", state=State.WARNING, found="", to_do="", command="mend c")


@pytest.mark.parametrize(
    ("checks", "contract", "command"),
    [
        pytest.param([WARNED, MISSING], "strict", "mend a", id="what is missing comes first"),
        pytest.param([NOTHING_TO_TYPE, MISSING], "strict", "mend a", id="the first that a command mends"),
        pytest.param([NOTHING_TO_TYPE], "strict", "agenteval doctor, once", id="nothing that a command mends"),
        pytest.param([WARNED], None, "mend c", id="no contract can be kept"),
        pytest.param([WARNED], "a b.yaml", "agenteval new suite first-suite", id="no checkout"),
    ],
)
def test_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checks: list[Check], contract: str | None, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert next_step(checks, contract, device="cpu", options=()).startswith(command)


@pytest.mark.parametrize(
    ("device", "command"),
    [
        ("cpu", "agenteval run tasks/starter --contract 'a b.yaml' --limit 3 --db x"),
        ("cuda", "agenteval run tasks/toolsuite --contract 'a b.yaml' --db x"),
    ],
)
def test_a_ready_machine_is_told_a_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, command: str
) -> None:
    for suite in ("starter", "toolsuite"):
        (tmp_path / "tasks" / suite).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert next_step([WARNED], "a b.yaml", device=device, options=("--db", "x")) == command
