"""Machines for tests: what an engine says of itself on a CPU, and on one H200."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from agenteval.launch import EngineFacts, Gpu

FLAGS_FILE = Path(__file__).with_name("fake_vllm") / "program/vllm/flags.txt"


def known_flags() -> frozenset[str]:
    """What the real parser of vLLM 0.32 knows, negative forms included."""
    flags: set[str] = set()
    for line in FLAGS_FILE.read_text().splitlines():
        if not line.startswith("#"):
            names, kind = line.split(" ", 1)
            flags |= set(names.split(","))
            if kind == "switch":
                flags |= {name.replace("--", "--no-", 1) for name in names.split(",") if name.startswith("--")}
    return frozenset(flags)


CPU = EngineFacts(
    python=Path("/venv/bin/python"),
    vllm_version="0.32.0",
    torch_version="2.11.0+cpu",
    cuda_version=None,
    driver_version=None,
    device="cpu",
    gpus=(),
    cpu_model="Some CPU",
    cpus=(0, 1),
    flags=known_flags(),
    variables=frozenset(
        {"VLLM_BATCH_INVARIANT", "VLLM_CPU_KVCACHE_SPACE", "VLLM_LOGGING_LEVEL", "VLLM_SERVER_DEV_MODE"}
    ),
    quantizations=frozenset({"fp8", "awq"}),
    has_flashinfer=False,
)
H200 = dataclasses.replace(
    CPU,
    torch_version="2.11.0+cu130",
    cuda_version="13.0",
    driver_version="580.65",
    device="cuda",
    gpus=(Gpu(name="NVIDIA H200", capability=(9, 0), memory_bytes=150_000_000_000),),
)
MACHINES = {"cpu": CPU, "h200": H200}
