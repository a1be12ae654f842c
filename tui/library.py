"""What the screens show, read from the store as values; no Textual here, and no writing.

All text in these values that came from outside (models, tools, task files) is safe to show; ids are as stored.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from agenteval.compare import ORDER, Trajectory, compare, compare_stored, passed_by_episode, sample_of
from agenteval.digest import canonical_json
from agenteval.errors import StoreLockedError
from agenteval.records import ClauseVerdict, Divergence, Episode, EpisodeStatus, Evidence, Level
from agenteval.schema import RUN_SUMMARY
from agenteval.store import RunReader, open_for_reading, run_query
from agenteval.tui.alignment import Diff, align
from agenteval.tui.text import Shown, visible, visible_lines

T = TypeVar("T")

_RETRY_S = 0.25
_RUNS = f"""
SELECT s.run_id, s.suite, s.contract, s.model, s.agent, s.status, s.verdict, s.started_at, s.planned_episodes,
    s.finished_episodes, s.pass_rate, s.not_graded, s.divergences, r.repeats, r.message,
    (SELECT count(*) - count(DISTINCT (e.task, e.variant, e.sample))
     FROM episodes e WHERE e.run_id = s.run_id AND e.status = 'finished') AS pairs
FROM ({RUN_SUMMARY}) s JOIN runs r USING (run_id)
ORDER BY s.started_at DESC, s.run_id
"""
_CLAUSES = "SELECT run_id, clause, verdict FROM clauses"


class PairState(StrEnum):
    """What is known of two repeats, worst first."""

    DIVERGED = "diverged"
    NOT_RUN = "not run"
    NOT_COMPARED = "pending"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run in the list."""

    run_id: str
    suite: Shown
    contract: Shown
    model: Shown
    """Its name; for a folder, the folder's own name."""
    agent: Shown
    status: str
    verdict: str | None
    message: Shown | None
    """Why it stopped or failed."""
    started_at: datetime
    planned_episodes: int
    finished_episodes: int
    pass_rate: float | None
    """Share of the graded episodes, 0 to 1."""
    not_graded: int
    """Finished episodes of which it is not known whether they passed."""
    repeats: int
    pairs: int
    """Repeats that could be compared so far."""
    divergences: int

    @property
    def is_live(self) -> bool:
        """Whether its runner still writes."""
        return self.status == "running"

    @property
    def is_judged(self) -> bool:
        """Whether its repeats have been compared and its clauses audited."""
        return self.verdict is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two repeats of one sample, and where they part."""

    run_id: str
    episode_a: str
    episode_b: str
    task: Shown
    variant: Shown
    sample: int
    repeat_a: int
    repeat_b: int
    passed_a: bool | None
    passed_b: bool | None
    state: PairState
    level: Level | None
    """The loosest level at which they differ."""
    turn: int | None
    token: int | None
    """None where the prompt or the length of the episode differs."""
    text_a: Shown
    text_b: Shown
    cause: Shown
    """Of the divergence; for a pair that was not run, what went wrong."""

    @property
    def key(self) -> str:
        """Unique in a database."""
        return f"{self.episode_a} {self.episode_b}"

    @property
    def label(self) -> str:
        """What people call it."""
        return f"{self.task}/{self.variant}" + (f" #{self.sample}" if self.sample else "")

    @property
    def badness(self) -> tuple[int, int, int, int, str, int]:
        """Sorts the worst first: loosest level, then the earliest place."""
        level = -1 if self.level is None else ORDER.index(self.level)
        turn = 0 if self.turn is None else self.turn
        token = -1 if self.token is None else self.token
        return list(PairState).index(self.state), -level, turn, token, self.label, self.repeat_b


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """One measured fact, with the verdict of its whole clause."""

    clause: Shown
    clause_verdict: ClauseVerdict
    fact: Shown
    verdict: ClauseVerdict
    expected: Shown
    observed: Shown
    detail: Shown
    """JSON; empty where there is none."""


class Library:
    """Reads one database file, a moment at a time; safe to call from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # One reader at a time: a query settles its connection's configuration for the whole process.
        self._turn = threading.Lock()

    def check(self) -> None:
        """See that the file can be read at all; a locked one can, later.

        Raises:
            StoreError: If it is missing, some other file, or from a newer agenteval.
        """
        try:
            with open_for_reading(self.path, wait_s=0.0):
                pass
        except StoreLockedError:
            return

    def when_free(
        self, ask: Callable[[], T], *, waiting: Callable[[str], None], is_cancelled: Callable[[], bool]
    ) -> T | None:
        """Ask, as soon as no other process holds the database; None where that was cancelled.

        Args:
            ask: One of the reads below.
            waiting: Told who holds it, whenever that keeps us waiting.
            is_cancelled: Looked at between tries.

        Raises:
            StoreError: What `ask` raises, except that the database is locked.
        """
        while not is_cancelled():
            try:
                with self._turn:
                    with open_for_reading(self.path, wait_s=0.0):
                        pass
                    return ask()
            except StoreLockedError as error:
                waiting(error.holder)
                time.sleep(_RETRY_S)
        return None

    def runs(self) -> tuple[RunRow, ...]:
        """All runs, newest first; what dead runners left in their journals is loaded before."""
        if not self._has_schema():
            return ()
        result = run_query(self.path, _RUNS)
        rows = (dict(zip(result.columns, row, strict=True)) for row in result.rows)
        return tuple(
            RunRow(
                **{
                    **row,
                    "suite": visible(row["suite"]),
                    "contract": visible(row["contract"]),
                    "model": visible(_short_model(row["model"])),
                    "agent": visible(row["agent"]),
                    "message": None if row["message"] is None else visible(row["message"]),
                }
            )
            for row in rows
        )

    def run(self, run_id: str) -> RunRow | None:
        """One run as it stands now; None where it is gone."""
        return next((row for row in self.runs() if row.run_id == run_id), None)

    def pairs(self, run: RunRow) -> tuple[Pair, ...]:
        """Each later repeat with the first of its sample, worst first.

        The divergences of a run that was judged are read; those of a run that died before are found now. A run that
        is still going is not compared: that would hold the database while its runner wants to write.
        """
        reader = RunReader(path=self.path, run_id=run.run_id)
        passed = passed_by_episode(reader.grades())
        known = {(item.episode_a, item.episode_b): item for item in reader.divergences()}
        if not known and not run.is_judged and not run.is_live:
            found = compare_stored(reader.trajectories(), passed)
            known = {(item.episode_a, item.episode_b): item for item in found}
        no_divergence = PairState.NOT_COMPARED if run.is_live else PairState.EQUAL
        pairs = (
            _pair(a, b, passed, known.get((a.plan.episode_id, b.plan.episode_id)), no_divergence)
            for a, b in _paired(reader.episodes())
        )
        return tuple(sorted(pairs, key=lambda pair: pair.badness))

    def diff(self, pair: Pair) -> Diff:
        """Two trajectories side by side, compared where both have an end."""
        reader = RunReader(path=self.path, run_id=pair.run_id)
        wanted = {pair.episode_a: pair.passed_a, pair.episode_b: pair.passed_b}
        sides = {
            episode.plan.episode_id: Trajectory(
                episode=episode,
                turns=reader.turns(episode.plan.episode_id),
                passed=wanted[episode.plan.episode_id],
            )
            for episode in reader.episodes()
            if episode.plan.episode_id in wanted
        }
        a, b = sides[pair.episode_a], sides[pair.episode_b]
        have_ended = all(side.episode.status is EpisodeStatus.FINISHED for side in (a, b))
        return align(a, b, compare(a, b) if have_ended else None)

    def evidence(self, run_id: str) -> tuple[EvidenceRow, ...]:
        """All evidence, clause by clause in the order of the audit."""
        rows = RunReader(path=self.path, run_id=run_id).evidence()
        # Asked for after the rows, so that it knows every clause of theirs.
        found = run_query(self.path, _CLAUSES).rows
        verdicts = {clause: ClauseVerdict(verdict) for run, clause, verdict in found if run == run_id}
        clauses = dict.fromkeys(row.clause for row in rows)
        return tuple(_evidence_row(row, verdicts[clause]) for clause in clauses for row in rows if row.clause == clause)

    def _has_schema(self) -> bool:
        """False for a database that its maker left empty."""
        with open_for_reading(self.path) as connection:
            return bool(connection.execute("SHOW TABLES").fetchall())


def _short_model(name: str) -> str:
    return Path(name).name or name if name.startswith("/") else name


def _paired(episodes: list[Episode]) -> Iterator[tuple[Episode, Episode]]:
    """The first repeat that has an end, or else the first of all, with each other one of its sample."""
    groups: dict[tuple[str, str, int], list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(sample_of(episode.plan), []).append(episode)
    for group in groups.values():
        ordered = sorted(group, key=lambda item: item.plan.repeat)
        ended = (item for item in ordered if item.status is EpisodeStatus.FINISHED)
        first = next(ended, ordered[0])
        yield from ((first, other) for other in ordered if other is not first)


def _pair(
    a: Episode,
    b: Episode,
    passed: dict[str, bool | None],
    divergence: Divergence | None,
    no_divergence: PairState,
) -> Pair:
    state = no_divergence if divergence is None else PairState.DIVERGED
    cause = "" if divergence is None else divergence.cause
    missing = next((item for item in (a, b) if item.status is EpisodeStatus.NOT_RUN), None)
    if missing is not None:
        state, cause = PairState.NOT_RUN, f"repeat {missing.plan.repeat}: {missing.message or missing.stop_reason}"
    return Pair(
        run_id=a.plan.run_id,
        episode_a=a.plan.episode_id,
        episode_b=b.plan.episode_id,
        task=visible(a.plan.task),
        variant=visible(a.plan.variant),
        sample=a.plan.sample,
        repeat_a=a.plan.repeat,
        repeat_b=b.plan.repeat,
        passed_a=passed.get(a.plan.episode_id),
        passed_b=passed.get(b.plan.episode_id),
        state=state,
        level=None if divergence is None else divergence.level,
        turn=None if divergence is None else divergence.turn,
        token=None if divergence is None else divergence.token,
        text_a=visible("" if divergence is None else divergence.text_a),
        text_b=visible("" if divergence is None else divergence.text_b),
        cause=visible(cause),
    )


def _evidence_row(row: Evidence, verdict: ClauseVerdict) -> EvidenceRow:
    return EvidenceRow(
        clause=visible(row.clause),
        clause_verdict=verdict,
        fact=visible(row.fact),
        verdict=row.verdict,
        expected=visible_lines(row.expected, 4_000),
        observed=visible_lines(row.observed, 4_000),
        detail=visible_lines(canonical_json(row.detail), 20_000) if row.detail else Shown(""),
    )
