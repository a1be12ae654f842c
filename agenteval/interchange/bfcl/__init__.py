"""The multi-turn files of the Berkeley Function Calling Leaderboard -> a draft of a suite."""

from agenteval.interchange.bfcl.convert import MAPPED, draft_of

__all__ = ["MAPPED", "draft_of"]
