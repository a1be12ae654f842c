"""Plots of a report as inline SVG, legible in light and dark: drawn in stand-in colours that become CSS variables.

matplotlib takes a second to import, so it is imported where it draws. No pyplot: nothing is kept between plots.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.compare import ORDER, Rate

_COLOURS = {"#010203": "var(--ink)", "#0a0b0c": "var(--accent)", "#040506": "var(--line)"}
_INK, _ACCENT, _LINE = _COLOURS
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "agenteval",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_WIDTH_IN, _ROW_IN, _FRAME_IN = 6.6, 0.26, 0.75
"""Inches: a plot's width, the height of one row of dots, and what title and axis take."""
_HISTOGRAM_IN = 2.0
_BINS = 20
_PROLOG = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_FONT = re.compile(r"font: [^;\"]*")


def rates_plot(rates: Mapping[str, Mapping[Any, Rate]]) -> str:
    """Shares of pairs that differ, one dot a level with its interval, grouped by comparison.

    Args:
        rates: Name of a comparison to its rates by level.
    """
    rows = [(name, level, found[level]) for name, found in rates.items() for level in ORDER]
    figure, axes = _figure(_FRAME_IN + _ROW_IN * len(rows))
    for place, (_, _, found) in enumerate(rows):
        if found.interval is None or found.share is None:
            continue
        axes.plot([100 * found.interval.low, 100 * found.interval.high], [place, place], color=_ACCENT, linewidth=2)
        axes.plot([100 * found.share], [place], "o", color=_ACCENT, markersize=6)
    several = len(rates) > 1
    axes.set_yticks(range(len(rows)), [f"{name}: {level}" if several else str(level) for name, level, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("% of pairs that differ, with 95% interval")
    axes.grid(axis="x", linewidth=0.5)
    return _svg(figure)


def turns_plot(turns: Counter[int]) -> str:
    """How many pairs part at which turn."""
    figure, axes = _figure(_HISTOGRAM_IN)
    last = max(turns, default=0)
    axes.bar(range(last + 1), [turns[turn] for turn in range(last + 1)], color=_ACCENT)
    axes.set_xlabel("turn at which they part")
    axes.set_ylabel("pairs")
    axes.set_xticks(range(last + 1))
    axes.yaxis.get_major_locator().set_params(integer=True)
    return _svg(figure)


def margins_plot(margins: Sequence[float]) -> str:
    """How close the two best tokens were where pairs part."""
    figure, axes = _figure(_HISTOGRAM_IN)
    axes.hist(margins, bins=_BINS, color=_ACCENT)
    axes.set_xlabel("margin of the chosen token over the runner-up, nats (the smaller of the two sides)")
    axes.set_ylabel("pairs")
    axes.yaxis.get_major_locator().set_params(integer=True)
    return _svg(figure)


def _figure(height_in: float) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
        return figure, figure.add_subplot()


def _svg(figure: Any) -> str:
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context(_SETTINGS):
        # Equal data give equal bytes: no date, no program's version.
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = _PROLOG.sub("", text.getvalue())
    for stand_in, variable in _COLOURS.items():
        svg = svg.replace(stand_in, variable)
    # The page's own font; a size of its own would not follow the reader's.
    return _FONT.sub(lambda found: found.group(0).replace("sans-serif", "inherit"), svg)
