"""The engine's own counters: what it says it did, whatever its answers tell."""

from __future__ import annotations

from agenteval.records import Boot, BootEnd

HITS = "vllm:prefix_cache_hits_total"
"""Prompt tokens that were read from the prefix cache."""
CACHED = "vllm:prompt_tokens_cached_total"
"""The same as they are told with the answers: once a request."""
LOOKUPS = "vllm:prefix_cache_queries_total"
"""Prompt tokens that were looked for there: again each time a request is put off."""
PROMPT = "vllm:prompt_tokens_total"
"""Prompt tokens of all requests."""
GENERATED = "vllm:generation_tokens_total"
"""Output tokens of all requests."""
ANSWERED = "vllm:request_success_total"
"""Requests that were answered."""
PREEMPTIONS = "vllm:num_preemptions_total"
"""Times that a request was put off, to be computed again."""


def counted(boot: Boot, end: BootEnd | None, counter: str) -> float | None:
    """What a counter gained over a boot; None where it was not read at both ends."""
    before = boot.facts.get("metrics", {}).get(counter)
    after = None if end is None else end.metrics.get(counter)
    return None if before is None or after is None else float(after - before)
