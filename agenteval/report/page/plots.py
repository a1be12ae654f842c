"""Plots of a report as inline SVG, legible in light and dark: drawn in stand-in colours that become CSS variables.

matplotlib takes a second to import, so it is imported where it draws. No pyplot: nothing is kept between plots.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from agenteval.compare import Rate
from agenteval.log import printable
from agenteval.records import Level

_COLOURS = {"#010203": "var(--ink)", "#0a0b0c": "var(--accent)", "#040506": "var(--line)"}
_INK, _ACCENT, _LINE = _COLOURS
_FONT_SIZE = 10
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "agenteval",
    "font.family": "sans-serif",
    "font.size": _FONT_SIZE,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
"""Nothing is told of the picture: no date and no program's version, so that equal data give equal bytes; no address."""
_WIDTH_IN, _ROW_IN, _FRAME_IN, _BARS_IN = 5.4, 0.27, 0.7, 2.1
"""Inches: a plot's width, the height of one row of dots, what its axis takes, and the height of bars."""
_NAME_CHARACTERS = 60
FEWEST_BARS = 6
"""Fewer would be drawn as if they were walls."""
_MOST_LABELS = 20
"""More would run into each other."""
_AROUND_SVG = re.compile(
    r"^.*?(?=<svg)|\s+xmlns(?::\w+)?=\"[^\"]*\"|\s*<metadata>.*?</metadata>|\s*<style.*?</style>", re.DOTALL
)
"""What a picture of its own needs and one within HTML does not; a style would be that of the whole page."""
_FONT = re.compile(r"font-family: [^;\"]*; ")
_REFERENCE = re.compile(r"(\bid=\"|href=\"#|url\(#)")


def rates_plot(rates: Sequence[tuple[str, Mapping[Level, Rate]]], *, alternative: str) -> Markup:
    """Shares of pairs that differ, one dot a level with its interval, below the name of their comparison.

    Args:
        rates: Name of each comparison, and its rates by level.
        alternative: The picture in words.
    """
    labels: list[str] = []
    dots: list[tuple[int, Rate]] = []
    names: list[tuple[int, str]] = []
    for name, by_level in rates:
        if len(rates) > 1:
            names.append((len(labels), _short(name)))
            labels.append("")
        for level, found in by_level.items():
            dots.append((len(labels), found))
            labels.append(level.value)
    figure, axes = _figure(_FRAME_IN + _ROW_IN * len(labels))
    for place, found in dots:
        if found.interval is not None and found.share is not None:
            axes.plot([100 * found.interval.low, 100 * found.interval.high], [place, place], color=_ACCENT, linewidth=2)
            axes.plot([100 * found.share], [place], "o", color=_ACCENT, markersize=6, clip_on=False)
    for place, name in names:
        # A name is shown as it stands, never as a formula.
        axes.text(0, place, name, va="center", color=_INK, fontsize=_FONT_SIZE, fontweight="bold", parse_math=False)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("% of pairs that differ, with 95% interval")
    axes.grid(axis="x", linewidth=0.5)
    return _svg(figure, name="rates", alternative=alternative)


def bars_plot(counts: Sequence[tuple[str, int]], *, name: str, label: str, alternative: str) -> Markup:
    """How many pairs fall under each of some values, in their order.

    Args:
        counts: What each bar stands for, and its pairs.
        name: Of the picture, different from those of the page's others.
        label: Of the axis below the bars.
        alternative: The picture in words.
    """
    figure, axes = _figure(_BARS_IN)
    axes.bar(range(len(counts)), [pairs for _, pairs in counts], color=_ACCENT, width=0.7)
    labelled = range(0, len(counts), math.ceil(len(counts) / _MOST_LABELS))
    axes.set_xticks(labelled, [counts[place][0] for place in labelled])
    axes.set_xlim(-0.6, len(counts) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel(label)
    axes.set_ylabel("pairs")
    return _svg(figure, name=name, alternative=alternative)


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= _NAME_CHARACTERS else f"{shown[: _NAME_CHARACTERS - 1]}…"


def _figure(height_in: float) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
        return figure, figure.add_subplot()


def _svg(figure: Any, *, name: str, alternative: str) -> Markup:
    """The picture as an element of a page, with ids that no other picture has."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context(_SETTINGS):
        figure.savefig(text, format="svg", transparent=True, metadata=_METADATA)
    svg = _AROUND_SVG.sub("", text.getvalue()).replace("xlink:href", "href")
    for stand_in, variable in _COLOURS.items():
        svg = svg.replace(stand_in, variable)
    # The page's own font.
    svg = _REFERENCE.sub(rf"\g<1>{name}-", _FONT.sub("", svg))
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alternative)}"', 1)
    return Markup(svg.strip())  # noqa: S704  (drawn from numbers and from names that matplotlib escapes)
