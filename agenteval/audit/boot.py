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
        holds = None if count == 0 else count == 1 or (None if not single else False)
        if single and not self._facts.is_managed and holds:
            holds = None
        yield self._finding.judged(
            "server processes that answered",
            holds,
            expected="1" if single else "any number, with equal answers",
            observed=f"{count}" + ("" if self._facts.is_managed else "; the server is not ours, restarts are unseen"),
            boots=shown(sorted(self._turns)),
        )
        for boot, end in self._facts.boots:
            if boot.is_managed:
                yield self._counter(boot.boot_id, None if end is None else end.metrics)

    def _counter(self, boot_id: str, metrics: dict[str, float] | None) -> Evidence:
        answered = (metrics or {}).get("vllm:request_success_total")
        sent = self._turns.get(boot_id, 0)
        # A process that had restarted unseen would have counted fewer; refused requests are not in either number.
        return self._finding.judged(
            "requests that the process says it answered",
            None if answered is None else answered >= sent,
            expected=f"at least the {sent} that were sent to it",
            observed="unknown" if answered is None else f"{answered:g}",
            boot=boot_id,
        )
