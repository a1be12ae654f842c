"""Prompts: how each turn's prompt followed from the turns before."""

from __future__ import annotations

import array
from collections.abc import Iterator

from agenteval.audit.facts import NOT_PROMISED, UNPROVEN, ClauseEvidence, RunFacts, place_of, shown
from agenteval.digest import digest_bytes, digest_json
from agenteval.records import Evidence, Turn

_FEWEST = 2
"""Conversations of which two could have been given one prompt."""


class PromptsAuditor:
    """Rests on the stored prompt ids: whether they extend the turn before, and whether equal messages gave equal ids.

    A chat template that renders today's date, or a server that changes its template, gives other ids for the same
    messages.
    """

    clause = "prompts"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._evidence = facts, ClauseEvidence(facts.run.run_id, self.clause)
        self._turns = self._later = 0
        self._broken: list[str] = []
        self._prompts: dict[str, str] = {}
        self._repeated = self._probes = 0
        self._unequal: list[str] = []
        self._episode_id = self._messages = ""
        self._history: list[int] = []

    def observe(self, turn: Turn) -> None:
        """Follow an episode's messages and prompt ids from turn to turn."""
        self._turns += turn.kind == "episode"
        if turn.episode_id != self._episode_id:
            self._episode_id, self._messages, self._history = turn.episode_id, "", []
        # A chain of hashes stands for the messages, so that a long conversation is not kept for every turn of it.
        self._messages = digest_json(
            [self._messages, turn.messages_kept, list(turn.messages_added), turn.request.get("tools")]
        )
        is_continuous = turn.prompt_kept == len(self._history)
        prompt = [*self._history[: turn.prompt_kept], *turn.prompt_added]
        ids = digest_bytes(array.array("q", prompt).tobytes())
        self._repeated += self._messages in self._prompts
        self._probes += turn.kind == "probe" and self._messages in self._prompts
        if self._prompts.setdefault(self._messages, ids) != ids:
            self._unequal.append(place_of(turn))
        self._history = [*prompt, *turn.output_ids]
        if turn.turn > 0:
            self._later += 1
            if not is_continuous:
                self._broken.append(place_of(turn))

    def conclude(self) -> Iterator[Evidence]:
        """Equal messages, equal ids; then continuity, which only `continuous` promises."""
        yield self._evidence.judged(
            "equal messages gave equal prompt ids",
            not self._unequal if self._turns and self._repeated else None,
            expected="always",
            observed=f"{len(self._unequal)} of {self._repeated} repeated prompts differ, {self._probes} of them probes",
            turns=shown(self._unequal),
        )
        messages, prompts = len(self._prompts), len(set(self._prompts.values()))
        yield self._evidence.judged(
            "different messages gave different prompt ids",
            None if messages < _FEWEST else prompts > 1,
            expected="more than one prompt",
            observed=f"{prompts} prompts for {messages} conversations",
        )
        observed = f"{self._later - len(self._broken)} of {self._later} later turns extend the turn before"
        if self._facts.contract.prompts.mode == "continuous":
            yield self._evidence.judged(
                "prompts extend the previous prompt and output",
                not self._broken if self._later else None,
                expected="every later turn",
                observed=observed,
                turns=shown(self._broken),
            )
        else:
            yield self._evidence.row(
                "prompts extend the previous prompt and output",
                NOT_PROMISED if self._turns else UNPROVEN,
                expected="measured; the rest were rendered again from the messages",
                observed=observed,
                turns=shown(self._broken),
            )
