"""Batching: which requests could be computed together."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit.facts import NOT_PROMISED, Finding, RunFacts, attention_backend, server_section, shown
from agenteval.records import Boot, Evidence, Turn


class BatchingAuditor:
    """Rests on the requests in flight at each turn, the server's own limit, and the kernels that it reports.

    In flight counts what this runner sent: on a server that someone else runs, others may have sent more.
    """

    clause = "batching"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._finding = facts, Finding(facts.run.run_id, self.clause)
        self._batching = facts.contract.batching
        self._peak = 0
        self._crowded: list[str] = []

    def observe(self, turn: Turn) -> None:
        """Take note of the company a turn had."""
        self._peak = max(self._peak, turn.requests_in_flight)
        if turn.requests_in_flight > self._batching.concurrency:
            self._crowded.append(f"{turn.episode_id} turn {turn.turn}: {turn.requests_in_flight}")

    def conclude(self) -> Iterator[Evidence]:
        """Requests in flight; then what the mode rests on."""
        if self._batching.mode == "free":
            yield self._finding.row(
                "requests in flight at once",
                NOT_PROMISED,
                expected="measured",
                observed=f"at most {self._peak}",
            )
            return
        within = not self._crowded
        yield self._finding.judged(
            "requests in flight at once",
            within if self._peak and (self._facts.is_managed or not within) else None,
            expected=f"at most {self._batching.concurrency}",
            observed=f"at most {self._peak}" + ("" if self._facts.is_managed else " of ours; others' are unknown"),
            turns=shown(self._crowded),
        )
        for boot, _ in self._facts.boots:
            limit = server_section(boot, "vllm_config", "scheduler_config").get("max_num_seqs")
            yield self._finding.judged(
                "the server's own limit on sequences in a batch",
                limit <= self._batching.concurrency if isinstance(limit, int) else None,
                expected=f"at most {self._batching.concurrency}",
                observed="unknown" if limit is None else limit,
                boot=boot.boot_id,
            )
            if self._batching.mode == "invariant":
                yield from self._invariant(boot)

    def _invariant(self, boot: Boot) -> Iterator[Evidence]:
        # Invariance under company is not shown by requests that had none.
        yield self._finding.judged(
            "requests had company",
            True if self._peak > 1 or self._batching.concurrency == 1 else None,
            expected="at least two in flight at once",
            observed=f"at most {self._peak}",
            boot=boot.boot_id,
        )
        switch = server_section(boot, "vllm_env").get("VLLM_BATCH_INVARIANT")
        yield self._finding.judged(
            "batch-invariant kernels are switched on",
            None if switch is None else str(switch) in ("True", "1", "true"),
            expected="VLLM_BATCH_INVARIANT on",
            observed="unknown" if switch is None else switch,
            boot=boot.boot_id,
        )
        backend, wanted = attention_backend(boot), self._facts.contract.engine.attention_backend
        yield self._finding.judged(
            "the attention backend that the server says it uses",
            None if backend is None or wanted is None else backend == wanted,
            expected=wanted or "one named in the contract",
            observed=backend or "unknown",
            boot=boot.boot_id,
        )
