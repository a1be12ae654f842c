"""Tools: equal calls in equal states gave equal results, and which declared faults happened."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit.facts import KEPT, NOT_PROMISED, UNPROVEN, ClauseEvidence, RunFacts, place_of, shown
from agenteval.client import call_id
from agenteval.digest import digest_json
from agenteval.records import Evidence, Turn
from agenteval.tools import fault_label


class ToolsAuditor:
    """Rests on every recorded call: whether the mock gave the same twice, its state's hash, arguments, result, place.

    Each call is asked twice where it is made; across episodes and repeats, equal calls in equal states are compared.
    """

    clause = "tools"

    def __init__(self, facts: RunFacts) -> None:
        self._evidence = ClauseEvidence(facts.run.run_id, self.clause)
        self._tasks = {episode.plan.episode_id: (episode.plan.task, episode.plan.variant) for episode in facts.episodes}
        self._results: dict[str, str] = {}
        self._calls = self._repeated = 0
        self._unrepeatable: list[str] = []
        self._unanswered: list[str] = []
        self._unequal: list[str] = []
        self._out_of_place: list[str] = []
        self._faults = {
            (task.task, task.variant): [
                fault_label(place, fault["kind"]) for place, fault in enumerate(task.definition["faults"])
            ]
            for task in facts.tasks
        }
        self._fired: set[tuple[str, str]] = set()

    def observe(self, turn: Turn) -> None:
        """Compare each call's result with what the same call gave before."""
        for place, call in enumerate(turn.tool_calls):
            self._calls += 1
            where = f"{place_of(turn)} call {place}"
            if call.fault is not None:
                self._fired.add((turn.episode_id, call.fault))
            if not call.is_repeatable:
                self._unrepeatable.append(f"{where}: {call.tool}")
            if call.is_broken:
                self._unanswered.append(f"{where}: {call.error}")
            task = self._tasks.get(turn.episode_id, ("", ""))
            key = digest_json([*task, call.state_digest, call.tool, call.arguments])
            result = digest_json([call.result, call.error, list(call.world_patch)])
            self._repeated += key in self._results
            if self._results.setdefault(key, result) != result:
                self._unequal.append(where)
            if call.call != place or call.call_id != call_id(turn.turn, place):
                self._out_of_place.append(f"{where}: {call.call_id}")

    def conclude(self) -> Iterator[Evidence]:
        """Each call asked twice, equal calls compared, declared faults, then ids and order."""
        yield self._evidence.judged(
            "each call, asked twice, gave the same result and world",
            not self._unrepeatable if self._calls else None,
            expected="always",
            observed=f"{len(self._unrepeatable)} of {self._calls} calls differ",
            calls=shown(self._unrepeatable),
        )
        if self._unanswered:
            # The suite is at fault, not the model: what the agent was told is no answer of the tool's.
            yield self._evidence.row(
                "mocks that could not answer",
                UNPROVEN,
                expected="none",
                observed=f"{len(self._unanswered)} of {self._calls} calls: {self._unanswered[0]}",
                calls=shown(self._unanswered),
            )
        if self._repeated:
            yield self._evidence.judged(
                "equal calls in equal states gave equal results",
                not self._unequal,
                expected="always",
                observed=f"{len(self._unequal)} of {self._repeated} repeated calls differ; {self._calls} calls in all",
                calls=shown(self._unequal),
            )
        yield from self._faults_that_fired()
        yield self._evidence.judged(
            "calls ran in the order written, under ids made of turn and place",
            not self._out_of_place if self._calls else None,
            expected="always",
            observed=f"{len(self._out_of_place)} of {self._calls} calls differ",
            calls=shown(self._out_of_place),
        )

    def _faults_that_fired(self) -> Iterator[Evidence]:
        """Which declared faults happened. That an agent never made the call is the agent's doing, and no breach."""
        declared = [
            (episode_id, fault, "/".join(task))
            for episode_id, task in self._tasks.items()
            for fault in self._faults.get(task, ())
        ]
        if not declared:
            return
        silent = [f"{task} {fault}" for episode_id, fault, task in declared if (episode_id, fault) not in self._fired]
        yield self._evidence.row(
            "declared faults that fired",
            NOT_PROMISED if silent else KEPT,
            expected=f"{len(declared)} where the agent makes the calls",
            observed=f"{len(declared) - len(silent)} of {len(declared)}",
            never_fired=shown(list(dict.fromkeys(silent))),
        )
