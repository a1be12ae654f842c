"""A report as Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval.compare import ORDER
from agenteval.log import printable
from agenteval.report.diff_text import flips_text, rate_text
from agenteval.report.page.examples import Example, SideShown
from agenteval.report.page.render import verdict_of
from agenteval.report.page.values import ComparisonPart, Report, RunPart

_EXAMPLES, _AROUND, _SIGN = 3, 60, 160
"""Examples in all, and the characters shown on either side of the token that differs, and of what explains it."""
_MARKS = {"kept": "✅", "breached": "❌", "unproven": "❔", "diverged": "≠"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~!&$]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
"""What Markdown, or a forge that shows it, would act upon; the last two make a text an address."""
_REFERENCE = re.compile(r"([@#])")
"""What begins the name of a person or of an issue, whom a forge would tell; an escape does not hinder that."""


def report_markdown(report: Report) -> str:
    """Verdicts, clauses, what differs, and some examples that can be unfolded."""
    lines = ["### agenteval", "", *_runs(report)]
    if any(part.clauses for part in report.runs):
        lines += ["", *_clauses(report)]
    if report.comparisons:
        lines += ["", *_differences(report)]
    return "\n".join([*lines, *_examples(report)])


def _runs(report: Report) -> Iterator[str]:
    yield "| run | verdict | episodes | passed |"
    yield "|---|---|---|---|"
    for part in report.runs:
        run, (verdict, meaning) = part.summary.run, verdict_of(part)
        passed = f"{part.passed.count} of {part.passed.of}, {rate_text(part.passed)}" if part.passed.of else "-"
        yield (
            f"| {_name(part)}<br>{_safe(run.run_id)} | {_verdict(verdict, bold=True)}<br>{_safe(meaning)} | "
            f"{part.summary.finished} of {run.planned_episodes} | {passed} |"
        )


def _clauses(report: Report) -> Iterator[str]:
    yield f"| clause | {' | '.join(map(_name, report.runs))} |"
    yield "|---" * (len(report.runs) + 1) + "|"
    verdicts = [{clause.name: clause.verdict for clause in part.clauses} for part in report.runs]
    for name in dict.fromkeys(name for found in verdicts for name in found):
        told = (_verdict(found[name]) if name in found else "-" for found in verdicts)
        yield f"| {_safe(name)} | {' | '.join(told)} |"


def _differences(report: Report) -> Iterator[str]:
    yield f"| compared | pairs | {' | '.join(level.value for level in ORDER)} | verdicts |"
    yield "|---" * (len(ORDER) + 3) + "|"
    for part in report.comparisons:
        rates = " | ".join(rate_text(found) for found in part.diff.rates.values())
        yield f"| {_safe(part.name)} | {len(part.diff.pairs)} | {rates} | {flips_text(part.diff.flips)} |"
    yield ""
    yield "Share of pairs that differ at each level, with Wilson's 95% interval in percent."


def _examples(report: Report) -> Iterator[str]:
    """The most telling divergences of all comparisons, each comparison's first before its second."""
    ranked = sorted(
        ((place, part, example) for part in report.comparisons for place, example in enumerate(part.examples)),
        key=lambda item: item[0],
    )
    if not ranked:
        return
    shown = ranked[:_EXAMPLES]
    yield ""
    yield f"<details><summary>Where they part: {len(shown)} of {len(ranked)} shown</summary>"
    yield ""
    for _, part, example in shown:
        yield from _example(part, example)
    yield ""
    yield "</details>"


def _example(part: ComparisonPart, example: Example) -> Iterator[str]:
    sign = example.signs[0]
    told = (example.place, sign if len(sign) <= _SIGN else f"{sign[:_SIGN]}…", example.aftermath)
    yield f"- **{_safe(part.name)}**, {_safe(example.label)}: {_safe('. '.join(told))}."
    for letter, side in zip("ab", example.sides or (), strict=False):
        yield f"  - {letter}, {_safe(side.name)}: {_side(side)}"


def _side(side: SideShown) -> str:
    """One side's output in `code`, in which a forge looks for no names, the token that differs as a key."""
    found, marked = side.output, ""
    if found.differing is not None:
        # A blank alone would not be seen.
        marked = f"<kbd>{_escaped(found.differing.replace(' ', '␣'))}</kbd>"
    before = f"…{found.before[-_AROUND:]}" if len(found.before) > _AROUND else found.before
    after = f"{found.after[:_AROUND]}…" if len(found.after) > _AROUND else found.after
    margin = "" if side.token is None or side.token.margin is None else f", margin {side.token.margin:.4g}"
    cached = "unknown" if side.cached_tokens is None else f"{side.cached_tokens:,}"
    code = f"<code>{_escaped(before)}{marked}{_escaped(after)}</code>"
    return f"{code} (cached {cached}, in flight {side.requests_in_flight}{margin})"


def _name(part: RunPart) -> str:
    return _safe(part.name)


def _verdict(word: str, *, bold: bool = False) -> str:
    shown = f"**{word}**" if bold else word
    return f"{_MARKS[word]} {shown}" if word in _MARKS else shown


def _safe(text: str) -> str:
    """A text that is shown as it stands, on one line, and calls nobody."""
    return _REFERENCE.sub(r"\1&#8203;", _escaped(text))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", printable(text))
