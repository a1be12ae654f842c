"""What the difference of two runs is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agenteval.compare import ORDER, Aftermath, Flips, Rate, differs_at, flips, rate
from agenteval.records import CauseKind, Divergence, Level, Run

Side = Literal["a", "b"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An episode of each side, of one task, variant and sample."""

    task: str
    variant: str
    sample: int
    repeat_a: int
    repeat_b: int
    episode_a: str
    """Id of the episode."""
    episode_b: str
    passed_a: bool | None
    """None where it was not graded."""
    passed_b: bool | None
    divergence: Divergence | None
    """None where they agree in every bit."""
    aftermath: Aftermath | None
    signs: tuple[str, ...]
    """Everything recorded that could explain the divergence, the cause first."""

    @property
    def label(self) -> str:
        """The pair as people name it."""
        repeats = (
            f"repeat {self.repeat_a}"
            if self.repeat_a == self.repeat_b
            else f"repeat {self.repeat_a} against {self.repeat_b}"
        )
        return f"{self.task}/{self.variant} sample {self.sample} {repeats}"

    def differs(self, level: Level) -> bool:
        """Whether the two count as different under a level."""
        return self.divergence is not None and differs_at(self.divergence, level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """An episode that has no other to be compared with."""

    side: Side
    label: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    """Two runs beside each other, or the repeats of one."""

    run_a: Run
    run_b: Run
    pairs: tuple[Pair, ...]
    """In the order of task, variant, sample and repeat."""
    unpaired: tuple[Unpaired, ...]
    settings: tuple[str, ...]
    """How the two runs were set otherwise, in words; empty for repeats."""

    @property
    def is_repeats(self) -> bool:
        """Whether the repeats of one run were compared."""
        return self.run_a.run_id == self.run_b.run_id

    @property
    def rates(self) -> Mapping[Level, Rate]:
        """Level to the pairs that differ there, strictest first."""
        return {level: rate(sum(pair.differs(level) for pair in self.pairs), len(self.pairs)) for level in ORDER}

    @property
    def flips(self) -> Flips:
        """Pairs of which one side passed and the other did not."""
        return flips((pair.passed_a, pair.passed_b) for pair in self.pairs)

    def diverging(self, level: Level = Level.LOGPROBS) -> tuple[Pair, ...]:
        """The pairs that differ at a level, loosest level first."""
        found = [pair for pair in self.pairs if pair.differs(level)]
        return tuple(sorted(found, key=lambda pair: -ORDER.index(_divergence(pair).level)))

    def first_turns(self, level: Level) -> Counter[int]:
        """Turn to the pairs that part there, of those that differ at a level."""
        return Counter(_divergence(pair).turn for pair in self.pairs if pair.differs(level))

    def margins(self, level: Level) -> tuple[float, ...]:
        """The smaller margin of the two sides at each first difference, in nats, of pairs that differ at a level."""
        found = []
        for pair in self.pairs:
            if pair.differs(level):
                divergence = _divergence(pair)
                known = [value for value in (divergence.margin_a, divergence.margin_b) if value is not None]
                found += [min(known)] if known else []
        return tuple(found)

    def causes(self, level: Level) -> Counter[CauseKind]:
        """Kind of cause to the pairs that it explains, of those that differ at a level."""
        found = (_divergence(pair).cause_kind for pair in self.pairs if pair.differs(level))
        return Counter(kind for kind in found if kind is not None)


def _divergence(pair: Pair) -> Divergence:
    assert pair.divergence is not None
    return pair.divergence
