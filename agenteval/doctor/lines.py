"""Checks as lines for people and as JSON; needs none of what is checked."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from agenteval.doctor.check import Check
from agenteval.log import printable

WIDTH = 80
"""Columns of the screen."""
_INDENT = " " * 18
"""As wide as state and name."""


def checks_text(checks: Sequence[Check]) -> list[str]:
    """One check a line, with what to do below it."""
    lines = []
    for check in checks:
        lines += wrapped(check.found, first=f"{check.state:<8}{check.name:<10}", rest=_INDENT)
        if check.to_do is not None:
            lines += wrapped(check.to_do, first=f"{_INDENT}-> ", rest=f"{_INDENT}   ")
        if check.command is not None:
            # Not parted, so that it can be copied.
            lines.append(f"{_INDENT}-> {printable(check.command)}")
    return lines


def checks_json(checks: Sequence[Check]) -> list[dict[str, str | None]]:
    """The checks for machines."""
    return [
        {
            "name": check.name,
            "state": check.state.value,
            "found": check.found,
            "to_do": check.to_do,
            "command": check.command,
        }
        for check in checks
    ]


def wrapped(text: str, *, first: str, rest: str) -> list[str]:
    """Text on lines no wider than the screen where its words can be parted."""
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
