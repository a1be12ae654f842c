"""Sampling: what every request asked for."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit.answers import disobedience, is_greedy
from agenteval.audit.facts import ClauseEvidence, RunFacts, place_of, server_section, shown
from agenteval.audit.probes import CANARIES, ProbeTurns
from agenteval.audit.sampling_probes import SamplingProbe, fields_at_work, sampling_probes
from agenteval.client import UNCOVERED
from agenteval.digest import derive_seed
from agenteval.records import Boot, Evidence, Turn

_SHOWN_ANSWER = 40
"""Characters of a probe's answer."""


class SamplingAuditor:
    """Rests on the fields of every request, on what every answer shows of them, on probes, and on the engine's word.

    A field that was sent need not have been obeyed: each that does something has a probe whose answer it must change,
    and no answer may do what its request forbids.
    """

    clause = "sampling"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._evidence = facts, ClauseEvidence(facts.run.run_id, self.clause)
        self._wanted = facts.contract.sampling.model_dump(mode="json")
        del self._wanted["seed"]
        seed = facts.contract.sampling.seed
        self._seeds = {
            plan.episode_id: derive_seed(seed, plan.task, plan.variant, plan.sample)
            for plan in (episode.plan for episode in facts.episodes)
        }
        self._probes = ProbeTurns()
        self._turns = self._seeded = self._greedy = 0
        self._disobeyed: list[str] = []
        self._wrong: list[str] = []
        self._wrong_seeds: list[str] = []

    def observe(self, turn: Turn) -> None:
        """Compare a request with the contract."""
        self._greedy += is_greedy(turn)
        self._disobeyed += [f"{place_of(turn)}: {how}" for how in disobedience(turn)]
        if turn.kind == "probe":
            self._probes.observe(turn)
            return
        self._turns += 1
        for field, allowed in UNCOVERED.items():
            if turn.request.get(field, allowed) not in (allowed, None):
                self._wrong.append(f"{place_of(turn)}: {field}={turn.request[field]!r}")
        for field, wanted in self._wanted.items():
            if field not in turn.request or turn.request[field] != wanted:
                sent = turn.request.get(field, "nothing")
                self._wrong.append(f"{place_of(turn)}: {field}={sent!r}")
        seed = self._seeds.get(turn.episode_id)
        self._seeded += seed is not None
        if seed is not None and turn.request.get("seed") != seed:
            self._wrong_seeds.append(f"{place_of(turn)}: {turn.request.get('seed')!r}")

    def conclude(self) -> Iterator[Evidence]:
        """Fields, seeds, and whose defaults fill what is not sent."""
        yield self._evidence.judged(
            "sampling fields of every request",
            not self._wrong if self._turns else None,
            expected=f"the contract's {len(self._wanted)} fields in every request",
            observed=f"{self._turns} requests, {len(self._wrong)} fields differ",
            fields=shown(self._wrong),
        )
        yield self._evidence.judged(
            "seed of every request",
            not self._wrong_seeds if self._seeded else None,
            expected="derived from contract, task, variant and sample",
            observed=f"{self._seeded} requests, {len(self._wrong_seeds)} seeds differ",
            seeds=shown(self._wrong_seeds),
        )
        yield self._evidence.judged(
            "answers that do what their request's fields forbid",
            not self._disobeyed if self._turns else None,
            expected="none; a greedy token has no likelier rival",
            observed=f"{len(self._disobeyed)}; {self._greedy} answers were greedy and unguided",
            answers=shown(self._disobeyed),
        )
        for boot, _ in self._facts.boots:
            source = server_section(boot, "vllm_config", "model_config").get("generation_config")
            yield self._evidence.judged(
                "where the engine takes sampling defaults from",
                None if source is None else source == "vllm",
                expected="vllm, not the model's generation_config.json",
                observed=source or "unknown",
                boot=boot.boot_id,
            )
            yield from self._probed(boot)

    def _probed(self, boot: Boot) -> Iterator[Evidence]:
        """Each probe, and each field at work that no probe is about."""
        sampling = self._facts.contract.sampling
        wanted = sampling_probes(sampling)
        for probe in wanted:
            yield self._evidence.judged(
                f"probe: {probe.expected}",
                self._obeyed(boot, probe),
                expected=f"{probe.field} obeyed",
                observed=self._shown_answer(boot, probe),
                boot=boot.boot_id,
            )
        for field in sorted(fields_at_work(sampling) - {probe.field for probe in wanted}):
            yield self._evidence.judged(
                f"probe of {field}", None, expected="one", observed="there is none", boot=boot.boot_id
            )

    def _obeyed(self, boot: Boot, probe: SamplingProbe) -> bool | None:
        sent = self._probes.of(boot.boot_id)
        needed = [CANARIES[0], *(other.name for other in sampling_probes(self._facts.contract.sampling))]
        return probe.holds(sent) if all(name in sent and sent[name].output_ids for name in needed) else None

    def _shown_answer(self, boot: Boot, probe: SamplingProbe) -> str:
        answer = self._probes.of(boot.boot_id).get(probe.name)
        return "absent" if answer is None else repr("".join(answer.output_tokens)[:_SHOWN_ANSWER])
