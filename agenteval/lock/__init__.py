"""The environment lock: what a run's numbers depend on, as a file; how two locks differ.

Knows the facts of an engine, its launch plan, contracts and suites; must not know runs, servers or the database.
"""

from agenteval.lock.differences import Comparison, Difference, check_same, compare_locks, flat_fields
from agenteval.lock.files import lock_path, parse_lock, read_lock, write_lock
from agenteval.lock.sections import (
    ContractSection,
    EngineSection,
    GpuSection,
    Lock,
    MachineSection,
    ModelSection,
    ProgramSection,
    ServerSection,
    SuiteSection,
)

__all__ = [
    "Comparison",
    "ContractSection",
    "Difference",
    "EngineSection",
    "GpuSection",
    "Lock",
    "MachineSection",
    "ModelSection",
    "ProgramSection",
    "ServerSection",
    "SuiteSection",
    "check_same",
    "compare_locks",
    "flat_fields",
    "lock_path",
    "parse_lock",
    "read_lock",
    "write_lock",
]
