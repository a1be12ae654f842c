"""A report as Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval.compare import ORDER
from agenteval.report.diff_text import flips_text, rate_text
from agenteval.report.page.values import ComparisonPart, Report

_EXAMPLES, _AROUND = 3, 60
"""Examples of each comparison, and the characters shown on either side of the token that differs."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~@!&])")
"""What Markdown, or a forge that shows it, would act upon."""


def report_markdown(report: Report) -> str:
    """Verdicts, clauses, what differs, and some examples that can be unfolded."""
    lines = ["### agenteval", "", "| run | verdict | episodes | passed |", "|---|---|---|---|"]
    for part in report.runs:
        run, verdict = part.summary.run, part.summary.verdict
        lines.append(
            f"| {_safe(run.contract)}<br>{_safe(run.run_id)} | **{verdict.value if verdict else 'none'}** | "
            f"{part.summary.finished} of {run.planned_episodes} | {rate_text(part.passed)} |"
        )
    names = list(dict.fromkeys(clause.name for part in report.runs for clause in part.clauses))
    if names:
        lines += ["", f"| clause | {' | '.join(_safe(part.summary.run.contract) for part in report.runs)} |"]
        lines.append("|---" * (len(report.runs) + 1) + "|")
        verdicts = [{clause.name: clause.verdict for clause in part.clauses} for part in report.runs]
        lines += [f"| {name} | {' | '.join(found.get(name, '-') for found in verdicts)} |" for name in names]
    if report.comparisons:
        lines += ["", f"| compared | pairs | {' | '.join(level.value for level in ORDER)} | verdicts |"]
        lines.append("|---" * (len(ORDER) + 3) + "|")
        lines += map(_comparison_row, report.comparisons)
    for comparison in report.comparisons:
        lines += _examples(comparison)
    return "\n".join(lines)


def _comparison_row(part: ComparisonPart) -> str:
    rates = " | ".join(rate_text(found) for found in part.diff.rates.values())
    return f"| {_safe(part.name)} | {len(part.diff.pairs)} | {rates} | {flips_text(part.diff.flips)} |"


def _examples(part: ComparisonPart) -> Iterator[str]:
    if not part.examples:
        return
    yield ""
    yield f"<details><summary>{_safe(part.name)}: where they part</summary>"
    yield ""
    for example in part.examples[:_EXAMPLES]:
        told = ". ".join(map(_safe, (example.place, example.signs[0], example.aftermath)))
        yield f"- **{_safe(example.label)}**: {told}."
        if example.sides is not None:
            for name, side in zip("ab", example.sides, strict=True):
                token = _safe(side.token) or "(ended)"
                yield f"  - {name}: …{_safe(side.before[-_AROUND:])} **{token}** {_safe(side.after[:_AROUND])}"
    yield ""
    yield "</details>"


def _safe(text: str) -> str:
    """A text that is shown as it stands, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
