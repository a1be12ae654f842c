"""Model: which weights, tokenizer and chat template answered."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit.facts import Finding, RunFacts, shown
from agenteval.records import Evidence, Turn


class ModelAuditor:
    """Rests on the digest of the folder that the server was given, and the name that answered every request."""

    clause = "model"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._finding = facts, Finding(facts.run.run_id, self.clause)
        self._names: set[str] = set()

    def observe(self, turn: Turn) -> None:
        """Collect the name that each response carries."""
        self._names.add(str(turn.response.get("model")))

    def conclude(self) -> Iterator[Evidence]:
        """Digest, then the name that answered."""
        run, wanted = self._facts.run, self._facts.contract.model.digest
        is_hashed = run.model_digest.startswith("sha256:")
        yield self._finding.judged(
            "content of the model's folder",
            None if not is_hashed else wanted in (None, run.model_digest),
            expected=wanted or "any, held for the whole run",
            observed=run.model_digest if is_hashed else "unknown: the server's files are not ours to hash",
        )
        served = {name for boot, _ in self._facts.boots for name in boot.facts.get("served_models", [])}
        yield self._finding.judged(
            "the model's name in every response",
            None if not self._names else self._names <= served and len(self._names) == 1,
            expected=f"one of {shown(sorted(served))}",
            observed=shown(sorted(self._names)) or "no response",
        )
