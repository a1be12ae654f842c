"""How much GPU memory a cell's server takes, and which cells may run beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.contract import Contract
from agenteval.launch import EngineFacts
from agenteval.records import Model
from agenteval.sweep.file import Servers

ENGINE_DEFAULT_SHARE = 0.9
"""Of the GPU's memory that vLLM takes where a contract does not say. Source: vLLM's --gpu-memory-utilization."""
OVERHEAD_BYTES = 3 * 10**9
"""CUDA context, activations and graphs of a small model beside weights and cache; measured below 3 GB on an H200."""
BUDGET_SHARE = 0.9
"""Of the GPU's memory that servers may take together where a sweep does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may run at once."""

    servers: int
    memory_bytes: int | None
    """None on a machine without a GPU."""

    def admits(self, running: Sequence[int], wanted: int) -> bool:
        """Whether one more server fits beside those that run; the first one always does.

        Args:
            running: Bytes that each running server takes.
            wanted: Bytes that the next would take.
        """
        if not running:
            return True
        is_within = self.memory_bytes is None or sum(running) + wanted <= self.memory_bytes
        return len(running) < self.servers and is_within


def budget_of(servers: Servers, facts: EngineFacts) -> Budget:
    """What a sweep's file allows on this machine; one server on a CPU, whose cores it needs all."""
    if not facts.gpus:
        return Budget(servers=1, memory_bytes=None)
    memory_bytes = servers.memory_bytes or int(facts.gpus[0].memory_bytes * BUDGET_SHARE)
    return Budget(servers=servers.at_once, memory_bytes=memory_bytes)


def server_bytes(contract: Contract, model: Model, facts: EngineFacts) -> int:
    """GPU memory that a contract's server takes, estimated; 0 without a GPU.

    A contract that bounds its cache takes that, the weights and some overhead; one that does not takes its share of the
    whole GPU.
    """
    if not facts.gpus:
        return 0
    engine = contract.engine
    if engine.kv_cache_memory_bytes is None:
        return int(facts.gpus[0].memory_bytes * (engine.gpu_memory_utilization or ENGINE_DEFAULT_SHARE))
    weights = sum(file.stat().st_size for file in model.folder.iterdir() if file.is_file())
    return engine.kv_cache_memory_bytes + weights + OVERHEAD_BYTES
