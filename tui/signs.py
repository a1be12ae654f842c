"""Signs and colours of verdicts, levels and states: a sign always says what the colour says."""

from __future__ import annotations

from agenteval.records import ClauseVerdict
from agenteval.tui.library import Pair, PairState, RunRow

_RUN_SIGNS = {
    "kept": ("✓", "green"),
    "diverged": ("≠", "yellow"),
    "breached": ("!", "bold red"),
    "unproven": ("?", "magenta"),
    "running": ("▸", "cyan"),
    "stopped": ("■", "yellow"),
    "failed": ("x", "bold red"),
    "finished": ("·", ""),
}
_CLAUSE_SIGNS = {
    ClauseVerdict.KEPT: ("✓", "green"),
    ClauseVerdict.BREACHED: ("!", "bold red"),
    ClauseVerdict.UNPROVEN: ("?", "magenta"),
    ClauseVerdict.NOT_PROMISED: ("·", ""),
}
_PAIR_SIGNS = {
    PairState.DIVERGED: ("≠", "yellow"),
    PairState.NOT_RUN: ("x", "bold red"),
    PairState.NOT_COMPARED: ("▸", "cyan"),
    PairState.EQUAL: ("=", "green"),
}
MARK_STYLES = {"=": "green", "~": "cyan", "≠": "bold yellow", "x": "bold red"}
"""Colour of a block's mark."""


def run_state(run: RunRow) -> str:
    """A run's verdict, or its status where it has none, after its sign."""
    word = run.verdict or run.status
    return f"{_RUN_SIGNS.get(word, ('·', ''))[0]} {word}"


def run_style(run: RunRow) -> str:
    """Colour of a run's verdict."""
    return _RUN_SIGNS.get(run.verdict or run.status, ("·", ""))[1]


def clause_state(verdict: ClauseVerdict) -> str:
    """A verdict of a clause or a fact, after its sign."""
    return f"{clause_sign(verdict)} {verdict}"


def clause_sign(verdict: ClauseVerdict) -> str:
    """The sign alone."""
    return _CLAUSE_SIGNS[verdict][0]


def clause_style(verdict: ClauseVerdict) -> str:
    """Colour of a verdict of a clause or a fact."""
    return _CLAUSE_SIGNS[verdict][1]


def pair_state(pair: Pair) -> str:
    """The level of a pair's divergence, or what else is known of it, after its sign."""
    return f"{_PAIR_SIGNS[pair.state][0]} {pair.level or pair.state}"


def pair_style(pair: Pair) -> str:
    """Colour of a pair's state."""
    return _PAIR_SIGNS[pair.state][1]
