"""A matrix of runs: which cells there are, running them, and what each comes to beside its reference.

Knows the loop, the comparison and the store; says nothing to people.
"""

from agenteval.sweep.cells import Cell, Sweep, load_sweep
from agenteval.sweep.execute import SweepObserver, SweepSetting, SweepStop, run_cells
from agenteval.sweep.results import CellSummary, Comparison, SweepSummary, compare_cells, summarize_sweep

__all__ = [
    "Cell",
    "CellSummary",
    "Comparison",
    "Sweep",
    "SweepObserver",
    "SweepSetting",
    "SweepStop",
    "SweepSummary",
    "compare_cells",
    "load_sweep",
    "run_cells",
    "summarize_sweep",
]
