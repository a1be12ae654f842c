"""Cache: what requests reused of earlier requests' KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agenteval.audit import probes
from agenteval.audit.counters import CACHED, HITS, LOOKUPS, PREEMPTIONS, PROMPT, counted
from agenteval.audit.facts import NOT_PROMISED, UNPROVEN, ClauseEvidence, RunFacts, ended_in_order, place_of, shown
from agenteval.records import Boot, BootEnd, Evidence, Turn


class CacheAuditor:
    """Rests on the server's configuration, probes with their controls, every turn's count, and the engine's counters.

    A turn's `cached_tokens` may be absent because nothing was hit, so absence alone proves nothing: for a disabled
    cache the engine's counter must stand at zero too; for an isolated one, first turns must not have hit.
    """

    clause = "cache"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._evidence = facts, ClauseEvidence(facts.run.run_id, self.clause)
        self._mode = facts.contract.cache.mode
        self._probes = probes.ProbeTurns()
        self._hit_turns: list[str] = []
        self._first_turn_hits: list[str] = []
        self._cached = self._prompt = self._unknown = self._turns = 0
        self._cached_by_boot: dict[str, int] = {}
        self._salts: dict[str, str] = {}
        self._salt_problems: list[str] = []

    def observe(self, turn: Turn) -> None:
        """Count what a turn read from the cache."""
        self._cached_by_boot[turn.boot_id] = self._cached_by_boot.get(turn.boot_id, 0) + (turn.cached_tokens or 0)
        if turn.kind == "probe":
            self._probes.observe(turn)
            return
        self._turns += 1
        self._prompt += turn.prompt_tokens
        self._cached += turn.cached_tokens or 0
        self._unknown += turn.cached_tokens is None
        if turn.cached_tokens:
            place = f"{place_of(turn)}: {turn.cached_tokens}"
            self._hit_turns.append(place)
            if turn.turn == 0:
                self._first_turn_hits.append(place)
        self._check_salt(turn)

    def conclude(self) -> Iterator[Evidence]:
        """Turns and counters, then probes, then configuration."""
        yield from {"disabled": self._disabled, "per_episode": self._per_episode, "shared": self._shared}[self._mode]()
        for boot, end in self._facts.boots:
            if boot.is_managed:
                yield self._counter(boot, end)
            yield from self._probed(boot, self._probes.of(boot.boot_id))
            if ended_in_order(end):
                yield from self._probed_at_end(boot, self._probes.of(boot.boot_id))
        yield from self._configuration()

    def _counter(self, boot: Boot, end: BootEnd | None) -> Evidence:
        """Nobody else speaks to a server of ours, so what the turns report must add up to what the engine counts.

        A request that the scheduler puts off for want of room is looked up again, and its hits counted again
        (DECISIONS 32): the hits may then be more, and the lookups show it.
        """
        reported, hits = self._cached_by_boot.get(boot.boot_id, 0), counted(boot, end, HITS)
        cached, lookups, prompt = (counted(boot, end, name) for name in (CACHED, LOOKUPS, PROMPT))
        is_recounted = lookups is not None and prompt is not None and lookups > prompt
        holds = None if hits is None else hits >= reported if is_recounted else hits == reported
        observed = _number(hits)
        if is_recounted:
            observed = f"{_number(cached)}; hits {observed} in {_number(lookups)} lookups of {_number(prompt)} tokens"
        if cached is not None and cached != reported:
            holds, observed = False, f"{_number(cached)}; hits {_number(hits)}"
        return self._evidence.judged(
            "cached tokens of all requests against the engine's own counter",
            holds if self._turns else None,
            expected=f"{reported}, the sum over the recorded turns",
            observed=observed,
            boot=boot.boot_id,
        )

    def _configuration(self) -> Iterator[Evidence]:
        wanted = "False" if self._mode == "disabled" else "True"
        for boot, _ in self._facts.boots:
            found = boot.facts.get("cache_config", {}).get("enable_prefix_caching")
            yield self._evidence.judged(
                "the server's own cache configuration",
                None if found is None else found == wanted,
                expected=f"enable_prefix_caching={wanted}",
                observed=f"enable_prefix_caching={found}",
                boot=boot.boot_id,
            )

    def _probed(self, boot: Boot, sent: Mapping[str, Turn]) -> Iterator[Evidence]:
        """What the probes at a boot's start say."""
        pair = [sent.get(name) for name in (probes.CACHE_COLD, probes.CACHE_WARM)]
        other = sent.get(probes.CACHE_OTHER_SALT)
        cold, warm = pair
        if cold is None or warm is None or other is None:
            yield self._absent("cache probes", boot)
            return
        yield from self._pair(boot, cold, warm, "")
        if self._mode == "disabled":
            return
        missed = not cold.cached_tokens and not other.cached_tokens
        # Where anything may be shared, this is only the control's own control: a count that is never zero says nothing.
        yield self._evidence.judged(
            "probe: a new prompt, and the same prompt under another salt, must miss",
            None if self._mode == "shared" and not missed else missed,
            expected="0 or null, twice",
            observed=f"{_count(cold)}; {_count(other)}",
            boot=boot.boot_id,
        )
        if self._mode == "per_episode":
            yield self._evidence.judged(
                "probe: the same prompt under another salt gives the same logprobs as new",
                probes.answer_bits(cold) == probes.answer_bits(other),
                expected="every bit",
                observed=probes.compared(cold, other),
                boot=boot.boot_id,
            )
        if boot.is_managed:
            yield self._emptied(boot, cold, sent.get(probes.CACHE_AFTER_RESET))

    def _probed_at_end(self, boot: Boot, sent: Mapping[str, Turn]) -> Iterator[Evidence]:
        cold, warm = (sent.get(probes.END + name) for name in (probes.CACHE_COLD, probes.CACHE_WARM))
        if cold is None or warm is None:
            yield self._absent("cache probes at the boot's end", boot)
        else:
            yield from self._pair(boot, cold, warm, " at the boot's end")

    def _pair(self, boot: Boot, cold: Turn, warm: Turn, when: str) -> Iterator[Evidence]:
        """The same prompt twice: whether it hit, and what that did to the numbers."""
        if self._mode == "disabled":
            # Null is what vLLM reports for no hit; the counter tells it from a count that is not reported.
            yield self._evidence.judged(
                f"probe{when}: the same prompt again must miss",
                not warm.cached_tokens,
                expected="0 or null",
                observed=_count(warm),
                boot=boot.boot_id,
            )
            # A hit that no count tells of still changes the last bits of what is computed.
            yield self._evidence.judged(
                f"probe{when}: the same prompt again gives the same logprobs",
                probes.answer_bits(cold) == probes.answer_bits(warm),
                expected="every bit",
                observed=probes.compared(cold, warm),
                boot=boot.boot_id,
            )
            return
        yield self._evidence.judged(
            f"probe{when}: the same prompt and salt again must hit (positive control)",
            None if warm.cached_tokens is None else warm.cached_tokens > 0,
            expected="more than 0 cached tokens",
            observed=_count(warm),
            boot=boot.boot_id,
        )
        yield self._evidence.row(
            f"probe{when}: what a hit does to the logprobs of the same prompt",
            NOT_PROMISED,
            expected="measured",
            observed=probes.compared(cold, warm),
            boot=boot.boot_id,
        )

    def _emptied(self, boot: Boot, cold: Turn, after: Turn | None) -> Evidence:
        """Whether the first episode found an empty cache; that the reset answers 200 proves nothing."""
        if after is None:
            # Where anything may be shared, an empty start is no promise.
            return self._evidence.row(
                "probe after the cache was emptied",
                NOT_PROMISED if self._mode == "shared" else UNPROVEN,
                expected="sent",
                observed="absent: the server refused to empty its cache",
                boot=boot.boot_id,
            )
        return self._evidence.judged(
            "probe: the same prompt and salt must miss when the cache was emptied",
            not after.cached_tokens and probes.answer_bits(cold) == probes.answer_bits(after),
            expected="0 or null, and the logprobs of a new prompt",
            observed=f"{_count(after)}; {probes.compared(cold, after)}",
            boot=boot.boot_id,
        )

    def _absent(self, fact: str, boot: Boot) -> Evidence:
        return self._evidence.row(fact, UNPROVEN, expected="sent", observed="absent", boot=boot.boot_id)

    def _disabled(self) -> Iterator[Evidence]:
        yield self._evidence.judged(
            "turns that read from the cache",
            self._if_any(not self._hit_turns),
            expected="none",
            observed=f"{len(self._hit_turns)} of {self._turns}",
            turns=shown(self._hit_turns),
        )
        for boot, end in self._facts.boots:
            hits = counted(boot, end, HITS)
            yield self._evidence.judged(
                "tokens that the engine itself counted as read from the cache",
                None if hits is None else hits == 0,
                expected="0",
                observed=_number(hits),
                boot=boot.boot_id,
            )
        yield from self._preempted()

    def _per_episode(self) -> Iterator[Evidence]:
        yield self._evidence.judged(
            "each episode's requests carried one salt of its own",
            self._if_any(not self._salt_problems),
            expected="one salt an episode, none shared",
            observed=f"{len(self._salts)} salts" if not self._salt_problems else shown(self._salt_problems),
        )
        yield self._evidence.judged(
            "first turns that read from the cache",
            self._if_any(not self._first_turn_hits),
            expected="none",
            observed=f"{len(self._first_turn_hits)} first turns",
            turns=shown(self._first_turn_hits),
        )
        yield self._share()
        yield from self._preempted()

    def _preempted(self) -> Iterator[Evidence]:
        """A preempted request is computed again, in other pieces than those of its repeat."""
        for boot, end in self._facts.boots:
            preempted = counted(boot, end, PREEMPTIONS)
            yield self._evidence.judged(
                "requests that were preempted and computed again",
                None if preempted is None else preempted == 0,
                expected="0",
                observed=_number(preempted),
                boot=boot.boot_id,
            )

    def _shared(self) -> Iterator[Evidence]:
        yield self._share()

    def _share(self) -> Evidence:
        share = self._cached / self._prompt if self._prompt else 0.0
        return self._evidence.row(
            "share of prompt tokens read from the cache",
            NOT_PROMISED if self._turns else UNPROVEN,
            expected="measured",
            observed=f"{share:.1%} of {self._prompt}; {self._unknown} of {self._turns} turns reported none",
        )

    def _if_any(self, holds: bool) -> bool | None:
        """What held for every turn, unless there was none."""
        return holds if self._turns else None

    def _check_salt(self, turn: Turn) -> None:
        if self._mode != "per_episode":
            return
        salt = turn.request.get("cache_salt")
        if salt is None:
            self._salt_problems.append(f"{place_of(turn)} has no salt")
        elif self._salts.setdefault(salt, turn.episode_id) != turn.episode_id:
            self._salt_problems.append(f"{turn.episode_id} shares a salt with {self._salts[salt]}")


def _count(turn: Turn) -> str:
    return "null" if turn.cached_tokens is None else f"{turn.cached_tokens} of {turn.prompt_tokens} tokens"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"
