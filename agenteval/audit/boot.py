"""Boot: how many server processes answered."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit import probes
from agenteval.audit.counters import ANSWERED, GENERATED, PROMPT, counted
from agenteval.audit.facts import ClauseEvidence, RunFacts, ended_in_order, shown
from agenteval.records import Boot, BootEnd, Evidence, Turn


class BootAuditor:
    """Rests on the boot of every turn, the server's count of answers, and canaries: prompts that are asked again.

    A restart that nobody saw shows in the count; a process that has come to compute otherwise shows in the canaries.
    """

    clause = "boot"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._evidence = facts, ClauseEvidence(facts.run.run_id, self.clause)
        self._turns: dict[str, int] = {}
        self._tokens: dict[tuple[str, str], int] = {}
        self._probes = probes.ProbeTurns()

    def observe(self, turn: Turn) -> None:
        """Count the turns of each boot."""
        self._turns[turn.boot_id] = self._turns.get(turn.boot_id, 0) + 1
        for counter, count in ((PROMPT, turn.prompt_tokens), (GENERATED, len(turn.output_ids))):
            key = (turn.boot_id, counter)
            self._tokens[key] = self._tokens.get(key, 0) + count
        self._probes.observe(turn)

    def conclude(self) -> Iterator[Evidence]:
        """Boots with turns; then canaries; then whether each one's counter agrees with what we sent it."""
        count, single = len(self._turns), self._facts.contract.boot.mode == "single"
        yield self._evidence.judged(
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
                yield self._answers(boot, end)
                yield self._computed(boot, end, "prompt", PROMPT)
                yield self._computed(boot, end, "output", GENERATED)

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
        return self._evidence.judged(
            f"probe: {fact}",
            False if not all(equal) else True if len(sent) == len(pairs) else None,
            expected="every prompt id and every bit",
            observed="; ".join(probes.compared(a, b) for a, b in sent) or "absent",
            boot=after[0],
        )

    def _answers(self, boot: Boot, end: BootEnd | None) -> Evidence:
        # From the process's start on, since one that was new when we came has answered nobody else. One that an earlier
        # run left had answered that one.
        since_start = None if end is None else end.metrics.get(ANSWERED)
        answered = counted(boot, end, ANSWERED) if boot.facts.get("served_before") else since_start
        return self._counted(
            boot, "requests that the process says it answered", answered, self._turns.get(boot.boot_id, 0)
        )

    def _computed(self, boot: Boot, end: BootEnd | None, what: str, counter: str) -> Evidence:
        """A cache of whole answers in front of the engine would have it compute less than was told."""
        told = self._tokens.get((boot.boot_id, counter), 0)
        return self._counted(
            boot, f"{what} tokens that the process says it computed", counted(boot, end, counter), told
        )

    def _counted(self, boot: Boot, fact: str, counted_by_server: float | None, recorded: int) -> Evidence:
        # Fewer: the process was started again, unseen, or others answered. More: an answer was lost, or someone went
        # past the recorder, and what is not recorded proves nothing. Refused requests are in neither number.
        is_open = counted_by_server is None or counted_by_server > recorded
        return self._evidence.judged(
            fact,
            None if is_open else counted_by_server == recorded,
            expected=f"the {recorded} that were recorded",
            observed="unknown" if counted_by_server is None else f"{counted_by_server:.0f}",
            boot=boot.boot_id,
        )
