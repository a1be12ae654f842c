"""A report as one HTML page that needs nothing else: no script, no font, no address outside of itself."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Any

import jinja2
from markupsafe import Markup

import agenteval
from agenteval.compare import ORDER, quantiles
from agenteval.log import printable
from agenteval.report.diff_text import flips_text, mean_text, rate_text
from agenteval.report.page.plots import FEWEST_BARS, bars_plot, rates_plot
from agenteval.report.page.values import ComparisonPart, Report, RunPart
from agenteval.report.text import verdict_line

_MARKS = {"kept": "✓", "breached": "✗", "unproven": "?", "not promised": "-", "diverged": "≠", "none": "…"}
_FACT = 600
"""Characters of a fact that are shown; the database and --json hold all."""
_UNPAIRED_SHOWN = 20
"""Episodes without a partner that are named."""


def report_html(report: Report) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agenteval.report.page", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    environment.filters |= {
        "count": lambda value: "unknown" if value is None else f"{value:,}",
        "cut": _cut,
        "duration": _duration,
        "logprob": lambda value: "-" if value is None else f"{value:.6f}",
        "mean": mean_text,
        "moment": _moment,
        "nats": lambda value: "-" if value is None else f"{value:.4g}",
        "rate": rate_text,
        "things": lambda count, one, several: f"{count:,} {one if count == 1 else several}",
    }
    # The templates' macros see globals, and are read once whatever page includes them.
    environment.globals |= {"marks": _MARKS}
    return environment.get_template("page.html.j2").render(
        title=report_title(report),
        version=agenteval.__version__,
        levels=ORDER,
        clauses=list(dict.fromkeys(clause.name for part in report.runs for clause in part.clauses)),
        runs=[_run(place, part) for place, part in enumerate(report.runs)],
        comparisons=[_comparison(place, part) for place, part in enumerate(report.comparisons)],
        rates_plot=_rates(report) if report.comparisons else None,
        unpaired_shown=_UNPAIRED_SHOWN,
    )


def report_title(report: Report) -> str:
    """What a report is of."""
    suites = ", ".join(dict.fromkeys(part.summary.run.suite for part in report.runs))
    return f"{suites}: {', '.join(part.name for part in report.runs)}"


def verdict_of(part: RunPart) -> tuple[str, str]:
    """A run's verdict and what it means there; `none` and why where it came to none."""
    summary = part.summary
    if summary.verdict is not None:
        return summary.verdict.value, verdict_line(summary, summary.verdict).partition(": ")[2]
    if summary.end is None:
        return "none", "it is still running, or its runner died"
    return "none", _cut(f"{summary.end.status}: {summary.end.message or 'no reason was recorded'}")


def _run(place: int, part: RunPart) -> dict[str, Any]:
    """One run's values for the templates."""
    verdict, meaning = verdict_of(part)
    words = part.summary.run.facts.get("argv")
    return {
        "id": f"run-{place}",
        "part": part,
        "verdict": verdict,
        "meaning": meaning,
        "clauses": {clause.name: clause.verdict for clause in part.clauses},
        "command": shlex.join(["agenteval", *map(str, words)]) if isinstance(words, list) else "not recorded",
    }


def _comparison(place: int, part: ComparisonPart) -> dict[str, Any]:
    """One comparison's values for the templates, its plots among them."""
    diff, level = part.diff, part.level
    found = diff.first_turns(level)
    turns = [(str(turn), found[turn]) for turn in range(max([*found, FEWEST_BARS - 1]) + 1)]
    margins = [(group.text, group.pairs) for group in part.margins]
    return {
        "id": f"comparison-{place}",
        "part": part,
        "rates": diff.rates,
        "differing": sum(pair.differs(level) for pair in diff.pairs),
        "flips": flips_text(diff.flips),
        "turns": [(turn, pairs) for turn, pairs in turns if pairs],
        "margins": [(text, pairs) for text, pairs in margins if pairs],
        "quantiles": quantiles(diff.margins(level)),
        "causes": [(kind.value, pairs) for kind, pairs in diff.causes(level).most_common()],
        "turns_plot": _bars(f"turns-{place}", "first turn that differs", turns),
        "margins_plot": _bars(f"margins-{place}", "margin there, in nats", margins),
    }


def _bars(name: str, label: str, counts: list[tuple[str, int]]) -> Markup | None:
    if not any(pairs for _, pairs in counts):
        return None
    told = "; ".join(f"{text}: {pairs}" for text, pairs in counts if pairs)
    return bars_plot(counts, name=name, label=label, alternative=f"Bars: pairs by {label}. {told}.")


def _rates(report: Report) -> Markup:
    told = "; ".join(
        f"{part.name}: {', '.join(f'{level.value} {rate_text(found)}' for level, found in part.diff.rates.items())}"
        for part in report.comparisons
    )
    return rates_plot(
        [(part.name, part.diff.rates) for part in report.comparisons],
        alternative=f"Dots with intervals: share of pairs that differ at each level. {printable(told)}.",
    )


def _shown(value: Any) -> Any:
    """Whatever a template puts out: text without characters that steer, wherever it came from."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _cut(text: str) -> str:
    left_out = len(text) - _FACT
    return text if left_out <= 0 else f"{text[:_FACT]} … ({left_out:,} characters more)"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
