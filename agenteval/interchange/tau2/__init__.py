"""tau2-bench's task files -> a draft of a suite."""

from agenteval.interchange.tau2.convert import MAPPED, draft_of

__all__ = ["MAPPED", "draft_of"]
