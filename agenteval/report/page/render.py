"""A report as one HTML page that needs nothing else: no script, no font, no address outside of itself."""

from __future__ import annotations

from typing import Any

import jinja2
from markupsafe import Markup

import agenteval
from agenteval.compare import ORDER, quantiles
from agenteval.report.diff_text import flips_text, mean_text, rate_text
from agenteval.report.page.plots import margins_plot, rates_plot, turns_plot
from agenteval.report.page.values import Report, differing_calls
from agenteval.report.text import verdict_line

_MARKS = {"kept": "✓", "breached": "✗", "unproven": "?", "not promised": "-", "diverged": "≠"}


def report_html(report: Report) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agenteval.report.page", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["count"] = lambda value: "unknown" if value is None else f"{value:,}"
    environment.filters["rate"] = rate_text
    environment.filters["mean"] = mean_text
    environment.filters["nats"] = lambda value: "-" if value is None else f"{value:.4g}"
    environment.filters["duration"] = _duration
    return environment.get_template("page.html.j2").render(
        report=report,
        version=agenteval.__version__,
        levels=ORDER,
        marks=_MARKS,
        comparisons=[_comparison(part) for part in report.comparisons],
        rates_plot=_markup(rates_plot({part.name: part.diff.rates for part in report.comparisons}))
        if report.comparisons
        else None,
        verdicts=[
            None
            if part.summary.verdict is None
            else verdict_line(part.summary, part.summary.verdict).partition(": ")[2]
            for part in report.runs
        ],
        differing_calls=differing_calls,
    )


def _comparison(part: Any) -> dict[str, Any]:
    """One comparison's values, its plots among them."""
    diff, level = part.diff, part.level
    turns, margins = diff.first_turns(level), diff.margins(level)
    return {
        "part": part,
        "diff": diff,
        "rates": diff.rates,
        "differing": sum(pair.differs(level) for pair in diff.pairs),
        "flips": flips_text(diff.flips),
        "turns": sorted(turns.items()),
        "quantiles": quantiles(margins),
        "causes": diff.causes(level).most_common(),
        "turns_plot": _markup(turns_plot(turns)) if turns else None,
        "margins_plot": _markup(margins_plot(margins)) if margins else None,
    }


def _markup(svg: str) -> Any:
    """SVG of our own making, which the template takes as it stands."""
    return Markup(svg)  # noqa: S704  (drawn from numbers and our own names, which matplotlib escapes)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
