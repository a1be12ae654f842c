"""Two runs beside each other, or the repeats of one: reads the store and compares; says nothing to people."""

from agenteval.diff.model import Pair, RunDiff, Side, Unpaired
from agenteval.diff.runs import diff_runs, trajectories_of
from agenteval.diff.settings import settings_of

__all__ = ["Pair", "RunDiff", "Side", "Unpaired", "diff_runs", "settings_of", "trajectories_of"]
