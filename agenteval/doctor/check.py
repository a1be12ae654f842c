"""One thing that was looked at: how it stands, what was found, what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from agenteval.errors import AgentevalError


class State(StrEnum):
    """How a thing stands."""

    OK = "ok"
    WARNING = "warning"
    """A run can start; it may end early or be slow."""
    MISSING = "missing"
    """No run can start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that a run needs."""

    name: str
    state: State = State.OK
    found: str
    """What is there, with versions, sizes and places."""
    to_do: str | None = None
    """What a person can do about it; None where it is ok."""
    command: str | None = None
    """The command that does it, where there is one."""


def guarded(name: str, look: Callable[[], Check]) -> Check:
    """The check, or one that says why it could not be made: a broken thing must not hide the others."""
    try:
        return look()
    except AgentevalError as error:
        return Check(name=name, state=State.MISSING, found="it cannot be looked at", to_do=str(error))
    except OSError as error:
        to_do = "Look at that path and its rights, then try again."
        return Check(name=name, state=State.MISSING, found=f"it cannot be looked at: {error}", to_do=to_do)


def gigabytes(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e9:.1f} GB"
