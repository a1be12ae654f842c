"""Model: which weights, tokenizer and chat template answered."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit.facts import ClauseEvidence, RunFacts, argument, server_section, shown
from agenteval.digest import is_digest
from agenteval.records import Boot, BootEnd, Evidence, Turn


class ModelAuditor:
    """Rests on the folder's digest before and after, the folder that the server loaded, and the name that answered."""

    clause = "model"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._evidence = facts, ClauseEvidence(facts.run.run_id, self.clause)
        self._names: set[str] = set()

    def observe(self, turn: Turn) -> None:
        """Collect the name that each response carries."""
        self._names.add(str(turn.response.get("model")))

    def conclude(self) -> Iterator[Evidence]:
        """Digest, then the name that answered."""
        run, wanted = self._facts.run, self._facts.contract.model.digest
        is_hashed = is_digest(run.model_digest)
        yield self._evidence.judged(
            "content of the model's folder",
            None if not is_hashed else wanted in (None, run.model_digest),
            expected=wanted or "any",
            observed=run.model_digest if is_hashed else "unknown: the server's files are not ours to hash",
        )
        for boot, end in self._facts.boots:
            if boot.is_managed:
                yield from self._loaded(boot, end)
        served = {name for boot, _ in self._facts.boots for name in boot.facts.get("served_models", [])}
        yield self._evidence.judged(
            "the model's name in every response",
            None if not self._names else self._names <= served and len(self._names) == 1,
            expected=f"one of {shown(sorted(served))}",
            observed=shown(sorted(self._names)) or "no response",
        )

    def _loaded(self, boot: Boot, end: BootEnd | None) -> Iterator[Evidence]:
        """Whether the server loaded the folder that was hashed, and the folder stayed as it was."""
        folder = argument(boot, "--model")
        config = server_section(boot, "vllm_config", "model_config")
        loaded = {config.get("model"), config.get("tokenizer")}
        yield self._evidence.judged(
            "the folder that the server says it loaded weights and tokenizer from",
            None if None in loaded else loaded == {folder},
            expected=folder,
            observed=shown(sorted(str(name) for name in loaded)),
            boot=boot.boot_id,
        )
        before, after = self._facts.run.model_digest, None if end is None else end.model_digest
        yield self._evidence.judged(
            "content of the model's folder when the server had stopped",
            None if after is None or not is_digest(before) else after == before,
            expected=before,
            observed=after or "unknown",
            boot=boot.boot_id,
        )
