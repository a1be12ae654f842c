"""Where two trajectories first part, at which level, and why; how often that happens. Pure over records."""

from agenteval.compare.causes import message_text, prompt_difference
from agenteval.compare.levels import (
    ORDER,
    call_answered,
    call_asked,
    canonical_arguments,
    differs_at,
    first_difference,
    has_passed,
    passed_by_episode,
    sample_of,
    token_rows,
)
from agenteval.compare.model import Aftermath, Comparison, Place, Trajectory
from agenteval.compare.pairs import compare, compare_pair, compare_repeats, compare_stored
from agenteval.compare.places import NEAR_TIE_NATS, full_messages, full_prompts, margin_at
from agenteval.compare.rates import (
    CONFIDENCE,
    Flips,
    Interval,
    Mean,
    Rate,
    flips,
    pass_at_k,
    pass_hat_k,
    quantiles,
    rate,
)
from agenteval.compare.variety import Variety, varieties

__all__ = [
    "CONFIDENCE",
    "NEAR_TIE_NATS",
    "ORDER",
    "Aftermath",
    "Comparison",
    "Flips",
    "Interval",
    "Mean",
    "Place",
    "Rate",
    "Trajectory",
    "Variety",
    "call_answered",
    "call_asked",
    "canonical_arguments",
    "compare",
    "compare_pair",
    "compare_repeats",
    "compare_stored",
    "differs_at",
    "first_difference",
    "flips",
    "full_messages",
    "full_prompts",
    "has_passed",
    "margin_at",
    "message_text",
    "pass_at_k",
    "pass_hat_k",
    "passed_by_episode",
    "prompt_difference",
    "quantiles",
    "rate",
    "sample_of",
    "token_rows",
    "varieties",
]
