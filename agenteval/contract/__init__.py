"""What is held fixed for a run: the contract, its clauses, its digest, and how two contracts differ.

Knows files and words only; which flag keeps a clause is `launch`'s business, whether it was kept is
`audit`'s.
"""

from agenteval.contract.clauses import (
    Batching,
    Boot,
    Cache,
    Contract,
    Engine,
    ModelClause,
    Prompts,
    Repeats,
    Sampling,
    Tools,
    differences,
    is_accepted,
)
from agenteval.contract.files import ContractFile, builtin_names, load_contract

__all__ = [
    "Batching",
    "Boot",
    "Cache",
    "Contract",
    "ContractFile",
    "Engine",
    "ModelClause",
    "Prompts",
    "Repeats",
    "Sampling",
    "Tools",
    "builtin_names",
    "differences",
    "is_accepted",
    "load_contract",
]
