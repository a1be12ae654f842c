"""Boot: how many server processes answered."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit.facts import Finding, RunFacts, shown
from agenteval.records import Evidence, Turn


class BootAuditor:
    """Rests on the boots that were recorded and the boot of every turn; an unseen restart shows in the counters."""

    clause = "boot"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._finding = facts, Finding(facts.run.run_id, self.clause)
        self._turns: dict[str, int] = {}

    def observe(self, turn: Turn) -> None:
        """Count the turns of each boot."""
        self._turns[turn.boot_id] = self._turns.get(turn.boot_id, 0) + 1

    def conclude(self) -> Iterator[Evidence]:
        """Boots with turns; then whether each one's counter agrees with what we sent it."""
        count, single = len(self._turns), self._facts.contract.boot.mode == "single"
        yield self._finding.judged(
            "server processes that answered",
            self._holds(count, single=single),
            expected="1" if single else "any number, with equal answers",
            observed=f"{count}" + ("" if self._facts.is_managed else "; the server is not ours, restarts are unseen"),
            boots=shown(sorted(self._turns)),
        )
        for boot, end in self._facts.boots:
            if boot.is_managed:
                yield self._counter(boot.boot_id, None if end is None else end.metrics)

    def _holds(self, count: int, *, single: bool) -> bool | None:
        if count == 1:
            # Of a server that someone else runs we would not see a restart.
            return True if self._facts.is_managed or not single else None
        # That several boots answer alike is not measured.
        return False if count > 1 and single else None

    def _counter(self, boot_id: str, metrics: dict[str, float] | None) -> Evidence:
        answered = (metrics or {}).get("vllm:request_success_total")
        sent = self._turns.get(boot_id, 0)
        # Fewer: the process was started again, unseen. More: an answer was lost, or someone went past the recorder,
        # and what is not recorded proves nothing. Refused requests are in neither number.
        holds = None if answered is None or answered > sent else answered == sent
        return self._finding.judged(
            "requests that the process says it answered",
            holds,
            expected=f"the {sent} that were recorded",
            observed="unknown" if answered is None else f"{answered:g}",
            boot=boot_id,
        )
