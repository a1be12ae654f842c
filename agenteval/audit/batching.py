"""Batching: which requests could be computed together."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit import probes
from agenteval.audit.attention import backend_rows
from agenteval.audit.facts import NOT_PROMISED, ClauseEvidence, RunFacts, log_fact, place_of, server_section, shown
from agenteval.records import Boot, Evidence, Turn


class BatchingAuditor:
    """Rests on the requests in flight at each turn, the server's own limit, its kernels, and a probe in company.

    In flight counts what this runner sent: on a server that someone else runs, others may have sent more.
    """

    clause = "batching"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._evidence = facts, ClauseEvidence(facts.run.run_id, self.clause)
        self._batching = facts.contract.batching
        self._peak = 0
        self._crowded: list[str] = []
        self._probes = probes.ProbeTurns()

    def observe(self, turn: Turn) -> None:
        """Take note of the company a turn had."""
        if turn.kind == "probe":
            self._probes.observe(turn)
            return
        self._peak = max(self._peak, turn.requests_in_flight)
        if turn.requests_in_flight > self._batching.concurrency:
            self._crowded.append(f"{place_of(turn)}: {turn.requests_in_flight}")

    def conclude(self) -> Iterator[Evidence]:
        """Requests in flight; then what the mode rests on."""
        if self._batching.mode == "free":
            yield self._evidence.row(
                "requests in flight at once",
                NOT_PROMISED,
                expected="measured",
                observed=f"at most {self._peak}",
            )
            for boot, _ in self._facts.boots:
                yield self._crowd(boot)
            return
        within = not self._crowded
        yield self._evidence.judged(
            "requests in flight at once",
            within if self._peak and (self._facts.is_managed or not within) else None,
            expected=f"at most {self._batching.concurrency}",
            observed=f"at most {self._peak}" + ("" if self._facts.is_managed else " of ours; others' are unknown"),
            turns=shown(self._crowded),
        )
        for boot, _ in self._facts.boots:
            limit = server_section(boot, "vllm_config", "scheduler_config").get("max_num_seqs")
            yield self._evidence.judged(
                "the server's own limit on sequences in a batch",
                limit <= self._batching.concurrency if isinstance(limit, int) else None,
                expected=f"at most {self._batching.concurrency}",
                observed="unknown" if limit is None else limit,
                boot=boot.boot_id,
            )
            yield self._crowd(boot)
            if self._batching.mode == "invariant":
                yield from self._invariant(boot)

    def _crowd(
        self,
        boot: Boot,
        *,
        prompt: str = "the same prompt",
        names: tuple[str, str] = (probes.CANARIES[0], probes.CROWDED),
    ) -> Evidence:
        """Whether a prompt among others was computed to the same bits as alone.

        Args:
            boot: Whose probes.
            prompt: Which prompt, for people.
            names: Of the probe that was alone, and of the one among others.
        """
        fact = f"probe: {prompt} alone and among others gives the same logprobs"
        sent = self._probes.of(boot.boot_id)
        alone, crowded = (sent.get(name) for name in names)
        if alone is None or crowded is None:
            return self._evidence.judged(fact, None, expected="sent", observed="absent", boot=boot.boot_id)
        observed = f"{probes.compared(alone, crowded)}, with {crowded.requests_in_flight} requests in flight"
        if self._batching.mode == "free":
            return self._evidence.row(fact, NOT_PROMISED, expected="measured", observed=observed, boot=boot.boot_id)
        is_equal = probes.answer_bits(alone) == probes.answer_bits(crowded)
        # An equal answer shows nothing where the others had come and gone.
        return self._evidence.judged(
            fact,
            is_equal if crowded.requests_in_flight > 1 or not is_equal else None,
            expected="every bit, with company",
            observed=observed,
            boot=boot.boot_id,
        )

    def _invariant(self, boot: Boot) -> Iterator[Evidence]:
        yield self._crowd(boot, prompt="a long prompt", names=(probes.FAR_ALONE, probes.FAR_CROWDED))
        # Invariance under company is not shown by requests that had none.
        yield self._evidence.judged(
            "requests had company",
            True if self._peak > 1 or self._batching.concurrency == 1 else None,
            expected="at least two in flight at once",
            observed=f"at most {self._peak}",
            boot=boot.boot_id,
        )
        switch = server_section(boot, "vllm_env").get("VLLM_BATCH_INVARIANT")
        yield self._evidence.judged(
            "batch-invariant kernels are switched on",
            None if switch is None else str(switch) in ("True", "1", "true"),
            expected="VLLM_BATCH_INVARIANT on",
            observed="unknown" if switch is None else switch,
            boot=boot.boot_id,
        )
        yield from backend_rows(self._evidence, boot, self._facts.contract.engine.attention_backend)
        version = log_fact(boot, "flash_attention_version")
        if version is not None:
            yield self._evidence.judged(
                "the FlashAttention version that the server's log names",
                version != "3",
                expected="not 3, whose sums depend on the batch",
                observed=version,
                boot=boot.boot_id,
            )
