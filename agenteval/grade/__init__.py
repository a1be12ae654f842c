"""Whether the end state, the answer and the calls of an episode satisfy the task's checks.

Pure over what happened. A check that cannot be evaluated gives None, never a failure.
"""

from agenteval.compare import has_passed
from agenteval.grade.episodes import grade_episode
from agenteval.grade.played import Played

__all__ = ["Played", "grade_episode", "has_passed"]
