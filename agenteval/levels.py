"""How strictly two trajectories can agree: the words that contracts ask in and comparisons answer in."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """How strictly two trajectories agree, strictest first."""

    LOGPROBS = "logprobs"
    TOKENS = "tokens"
    CALLS = "calls"
    TOOLS = "tools"
    OUTCOME = "outcome"
