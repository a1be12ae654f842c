"""What a sweep's file says: the axes, what every cell shares, and which cell the others are compared with."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agenteval.loading import Frozen, Many

Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]
"""A name that can stand in a run's id, a table's head and a file's name."""
Clauses = dict[str, dict[str, Any]]
"""Contract fields by clause, as a contract's file has them."""


class AxisValue(Frozen):
    """What one value of an axis sets; two axes may not set the same thing."""

    extends: str | None = None
    """A built-in contract, or the path of a contract's file beside the sweep's."""
    model: str | None = None
    """As for `agenteval run --model`; a path counts from the sweep's file."""
    contract: Clauses = Field(default_factory=dict)
    """Fields that differ from the contract that is extended."""


class Adjustment(Frozen):
    """Contract fields of some cells alone; they win over what axes set."""

    cells: dict[str, str] = Field(min_length=1)
    """Axis to value; those that have all of them."""
    contract: Clauses = Field(min_length=1)


class Select(Frozen):
    """Which of the suite's task variants run; as the options of `agenteval run`."""

    tasks: Many[str] = ()
    tags: Many[str] = ()
    limit: int | None = Field(default=None, ge=1)


class Servers(Frozen):
    """How many servers may run beside each other on one GPU; on a CPU it is one."""

    at_once: int = Field(ge=1)
    memory_bytes: int | None = Field(default=None, gt=0)
    """GPU memory that all servers together may take; null is nine tenths of the GPU's."""


class SweepFile(Frozen):
    """A matrix of runs."""

    name: Word
    description: str
    suite: str
    """Folder of the suite; a relative path counts from the sweep's file."""
    samples: int = Field(ge=1)
    """Seeds of each task variant."""
    agent: str | None = None
    """As for `agenteval run --agent`."""
    select: Select = Select()
    contract: Clauses = Field(default_factory=dict)
    """Fields of every cell's contract."""
    axes: dict[Word, dict[Word, AxisValue]] = Field(min_length=1)
    """Axis to its values; a cell is one value of each."""
    adjust: Many[Adjustment] = ()
    """In order; a later one wins."""
    leave_out: Many[dict[str, str]] = ()
    """Axis to value; cells that have all of one entry's are not run."""
    reference: dict[str, str] = Field(min_length=1)
    """Axis to value: each cell is compared with the one that has these and its own values of the other axes."""
    servers: Servers
