"""The difference of two runs as text for a terminal and as JSON for a machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from agenteval.compare import Flips, Mean, Rate, quantiles
from agenteval.diff import Pair, RunDiff
from agenteval.log import printable
from agenteval.records import Divergence, Level, Run
from agenteval.report.text import divergence_text

_SHOWN_UNPAIRED = 8
"""Episodes without a partner that the text shows; --json has all."""
_INDENT = " " * 10


def diff_text(diff: RunDiff, level: Level) -> str:
    """The difference for people: what was compared, how much of it differs, then one line an episode that does.

    Args:
        diff: Two runs, or the repeats of one.
        level: Episodes that differ at it are listed; looser and stricter levels are counted.
    """
    lines = [*_head(diff), f"pairs     {_pairs_text(diff)}", *_unpaired(diff)]
    if not diff.pairs:
        return "\n".join([*lines, "verdict   none: no episode of the one side pairs with one of the other"])
    lines += ["differ at", *_rates(diff)]
    if not diff.is_repeats or diff.flips.pairs:
        lines.append(f"verdicts  {flips_text(diff.flips)}")
    found = diff.diverging(level)
    if found:
        turns = diff.first_turns(level)
        lines.append(f"part at   {', '.join(f'turn {turn} ({turns[turn]})' for turn in sorted(turns))}")
        margins = quantiles(diff.margins(level))
        if margins:
            lowest, lower, middle, upper, highest = margins
            lines.append(
                f"margin    median {middle:.3g} nat, half of them {lower:.3g} to {upper:.3g}, all {lowest:.3g} to "
                f"{highest:.3g}"
            )
        causes = diff.causes(level)
        lines.append(f"because   {', '.join(f'{kind.value} ({count})' for kind, count in causes.most_common())}")
        lines += ["episodes", *(f"{_INDENT}{_episode(pair)}" for pair in found)]
    lines.append(_verdict(diff, level))
    return "\n".join(lines)


def diff_json(diff: RunDiff, level: Level) -> dict[str, Any]:
    """The difference for machines; keys are stable, unknown is null."""
    return {
        "a": _run_json(diff.run_a),
        "b": _run_json(diff.run_b),
        "is_repeats": diff.is_repeats,
        "level": level.value,
        "exit_code": diff_exit_code(diff, level),
        "settings": list(diff.settings),
        "rates": {at.value: rate_json(found) for at, found in diff.rates.items()},
        "flips": dataclasses.asdict(diff.flips),
        "first_turns": {str(turn): count for turn, count in sorted(diff.first_turns(level).items())},
        "margins": list(diff.margins(level)),
        "causes": {kind.value: count for kind, count in diff.causes(level).items()},
        "pairs": [_pair_json(pair) for pair in diff.pairs],
        "unpaired": [dataclasses.asdict(item) for item in diff.unpaired],
    }


def diff_exit_code(diff: RunDiff, level: Level) -> int:
    """0 where all pairs agree at a level, 1 where one differs, 2 where there is no pair."""
    if not diff.pairs:
        return 2
    return 1 if any(pair.differs(level) for pair in diff.pairs) else 0


def rate_text(found: Rate) -> str:
    """A share with its interval, such as `18% (11-28)`."""
    if found.interval is None or found.share is None:
        return "-"
    low, high = (f"{100 * bound:.0f}" for bound in (found.interval.low, found.interval.high))
    return f"{100 * found.share:.0f}% ({low}-{high})"


def mean_text(found: Mean) -> str:
    """A mean of shares with its interval, as `rate_text`."""
    if found.interval is None:
        return f"{100 * found.value:.0f}%"
    return f"{100 * found.value:.0f}% ({100 * found.interval.low:.0f}-{100 * found.interval.high:.0f})"


def flips_text(flips: Flips) -> str:
    """How many verdicts changed, and whether that is more than chance."""
    text = f"{flips.passed_to_failed} from passed to failed, {flips.failed_to_passed} from failed to passed"
    return text if flips.p_value is None else f"{text} (McNemar's exact p {flips.p_value:.2g})"


def rate_json(found: Rate | None) -> dict[str, Any] | None:
    """A share for machines."""
    return None if found is None else {**dataclasses.asdict(found), "share": found.share}


def _head(diff: RunDiff) -> Iterator[str]:
    if diff.is_repeats:
        yield f"repeats of {_run_text(diff.run_a)}"
        return
    yield f"a {_run_text(diff.run_a)}"
    yield f"b {_run_text(diff.run_b)}"
    yield "settings  " + (f"\n{_INDENT}".join(diff.settings) if diff.settings else "the same")


def _run_text(run: Run) -> str:
    return f"{run.run_id}: suite {run.suite}, contract {run.contract}, model {printable(run.model)}"


def _pairs_text(diff: RunDiff) -> str:
    text = f"{len(diff.pairs)} compared"
    return f"{text}, {len(diff.unpaired)} episodes without a partner" if diff.unpaired else text


def _unpaired(diff: RunDiff) -> Iterator[str]:
    """Those without a partner, with the reason; equal reasons of one task are told once."""
    for item in diff.unpaired[:_SHOWN_UNPAIRED]:
        yield f"{_INDENT}only {item.side}: {printable(item.label)}: {item.reason}"
    if len(diff.unpaired) > _SHOWN_UNPAIRED:
        yield f"{_INDENT}and {len(diff.unpaired) - _SHOWN_UNPAIRED} more; see --json"


def _rates(diff: RunDiff) -> Iterator[str]:
    for level, found in diff.rates.items():
        yield f"  {level.value:<8}{found.count:>5} of {found.of}, {rate_text(found)}"


def _episode(pair: Pair) -> str:
    assert pair.divergence is not None
    return f"{printable(pair.label)}: {divergence_text(pair.divergence)}"


def _verdict(diff: RunDiff, level: Level) -> str:
    differing = sum(pair.differs(level) for pair in diff.pairs)
    if differing:
        return f"verdict   diverged: {differing} of {len(diff.pairs)} pairs at {level.value}"
    return f"verdict   identical: all {len(diff.pairs)} pairs agree at {level.value}"


def _run_json(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "suite": run.suite,
        "suite_digest": run.suite_digest,
        "contract": run.contract,
        "contract_digest": run.contract_digest,
        "model": run.model,
        "model_digest": run.model_digest,
    }


def _pair_json(pair: Pair) -> dict[str, Any]:
    return {
        **dataclasses.asdict(dataclasses.replace(pair, divergence=None)),
        "divergence": None if pair.divergence is None else _divergence_json(pair.divergence),
    }


def _divergence_json(found: Divergence) -> dict[str, Any]:
    names = ("level", "turn", "token", "text_a", "text_b", "margin_a", "margin_b", "cause", "cause_kind")
    return {name: getattr(found, name) for name in names}
