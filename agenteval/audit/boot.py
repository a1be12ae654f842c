"""Boot: how many server processes answered."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit import probes
from agenteval.audit.facts import Finding, RunFacts, ended_in_order, shown
from agenteval.records import Evidence, Turn


class BootAuditor:
    """Rests on the boot of every turn, the server's count of answers, and canaries: prompts that are asked again.

    A restart that nobody saw shows in the count; a process that has come to compute otherwise shows in the canaries.
    """

    clause = "boot"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._finding = facts, Finding(facts.run.run_id, self.clause)
        self._turns: dict[str, int] = {}
        self._probes = probes.ProbeTurns()

    def observe(self, turn: Turn) -> None:
        """Count the turns of each boot."""
        self._turns[turn.boot_id] = self._turns.get(turn.boot_id, 0) + 1
        self._probes.observe(turn)

    def conclude(self) -> Iterator[Evidence]:
        """Boots with turns; then canaries; then whether each one's counter agrees with what we sent it."""
        count, single = len(self._turns), self._facts.contract.boot.mode == "single"
        yield self._finding.judged(
            "server processes that answered",
            self._holds(count, single=single),
            expected="1" if single else "any number",
            observed=f"{count}" + ("" if self._facts.is_managed else "; the server is not ours, restarts are unseen"),
            boots=shown(sorted(self._turns)),
        )
        first = self._facts.boots[0][0].boot_id if self._facts.boots else ""
        for boot, end in self._facts.boots:
            if boot.boot_id != first and not single:
                yield self._canaries("canaries as the first boot answered them", (first, ""), (boot.boot_id, ""))
            if ended_in_order(end):
                start, last = (boot.boot_id, ""), (boot.boot_id, probes.END)
                yield self._canaries("canaries at the boot's end as at its start", start, last)
            if boot.is_managed:
                yield self._counter(boot.boot_id, None if end is None else end.metrics)

    def _holds(self, count: int, *, single: bool) -> bool | None:
        if count == 0:
            return None
        # Of a server that someone else runs we would not see a restart.
        return True if not single else count == 1 and (self._facts.is_managed or None)

    def _canaries(self, fact: str, before: tuple[str, str], after: tuple[str, str]) -> Evidence:
        """Compare the answers to the canaries of two moments, each named by boot and phase."""
        pairs = [
            [self._probes.of(boot_id).get(phase + name) for boot_id, phase in (before, after)]
            for name in probes.CANARIES
        ]
        sent = [(a, b) for a, b in pairs if a is not None and b is not None]
        # Other prompt ids for the same message come from another tokenizer or template.
        equal = [a.prompt_added == b.prompt_added and probes.answer_bits(a) == probes.answer_bits(b) for a, b in sent]
        return self._finding.judged(
            f"probe: {fact}",
            False if not all(equal) else True if len(sent) == len(pairs) else None,
            expected="every prompt id and every bit",
            observed="; ".join(probes.compared(a, b) for a, b in sent) or "absent",
            boot=after[0],
        )

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
