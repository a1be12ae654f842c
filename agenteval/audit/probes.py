"""The probes of a boot by name: what the loop sends, and how auditors find it again among the turns.

A probe is a turn of its own kind whose episode is `<boot id>/<name>`. Those that begin with `end-` were sent when the
boot's episodes were over; they repeat what state could have changed since the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.contract import Contract
from agenteval.records import Turn

CACHE_COLD, CACHE_WARM, CACHE_OTHER_SALT = "cache-cold", "cache-warm", "cache-other-salt"
CACHE_AFTER_RESET = "cache-after-reset"
CANARIES = ("canary-short", "canary-long")
"""Fixed prompts, answered greedily, alone and without a cache: equal on every boot of one engine."""
CROWDED = "canary-crowded"
"""The short canary again, among others; those are `crowd-01` and so on."""
FAR_ALONE, FAR_CROWDED = "far-alone", "far-crowded"
"""A long prompt, alone and among others (`far-01` and so on), where kernels must be batch-invariant: those of attention
split a long context by how many requests there are, and a short one never."""
END = "end-"
"""Begins the names of what is asked again at a boot's end."""
SERIAL_CROWD, LEAST_CROWD, LARGEST_CROWD = 2, 4, 16
"""Requests of a crowded probe, the one that is compared included: on a serial server, and the bounds elsewhere."""


def crowd_size(contract: Contract) -> int:
    """Requests of the crowded probe, the short canary included; a serial server makes one of two wait."""
    if contract.batching.mode == "serial":
        return SERIAL_CROWD
    return min(max(contract.batching.concurrency, LEAST_CROWD), LARGEST_CROWD)


class ProbeTurns:
    """The probe turns of a run, by boot and name."""

    def __init__(self) -> None:
        self._turns: dict[str, dict[str, Turn]] = {}

    def observe(self, turn: Turn) -> None:
        """Keep a probe's turn; others are none of its business."""
        if turn.kind == "probe":
            self._turns.setdefault(turn.boot_id, {})[turn.episode_id.removeprefix(f"{turn.boot_id}/")] = turn

    def of(self, boot_id: str) -> Mapping[str, Turn]:
        """Name to turn of one boot's probes."""
        return self._turns.get(boot_id, {})


def answer_bits(turn: Turn) -> tuple[Any, ...]:
    """What an engine computed for a prompt: equal bits promise that nothing was rounded otherwise."""
    return turn.output_ids, turn.logprobs, turn.runner_up_logprobs


def differing_tokens(a: Turn, b: Turn) -> int:
    """Output tokens whose id or logprobs differ; the rest of the longer answer counts."""
    left, right = (list(zip(turn.output_ids, turn.logprobs, turn.runner_up_logprobs, strict=True)) for turn in (a, b))
    equal = sum(ours == theirs for ours, theirs in zip(left, right, strict=False))
    return max(len(left), len(right)) - equal


def compared(a: Turn, b: Turn) -> str:
    """How two answers to one prompt compare, in words."""
    return f"{differing_tokens(a, b)} of {max(len(a.output_ids), len(b.output_ids))} tokens differ"
