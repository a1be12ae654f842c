"""The leaderboard's multi-turn files, as far as they are known here.

Source: ShishirPatil/gorilla, berkeley-function-call-leaderboard/bfcl_eval/data.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from agenteval.interchange.source import Known


class TurnMessage(Known):
    """A message of one turn."""

    role: str
    content: str


class Entry(Known):
    """One conversation."""

    id: str
    question: list[list[TurnMessage]]
    """One list a turn of the user's; empty where functions are added without a word."""
    involved_classes: list[str]
    """Classes whose functions the model has."""
    initial_config: dict[str, Any] = Field(default_factory=dict)
    """Class to the state in which it starts."""
    path: list[str] = Field(default_factory=list)
    """`Class.function` of the expected calls."""
    excluded_function: list[str] = Field(default_factory=list)
    """Functions that the model does not have."""
    missed_function: dict[str, list[Any]] = Field(default_factory=dict)
    """Turn to the functions that the model has only from there on."""

    @property
    def classes(self) -> list[str]:
        """Each class once; without any, a nameless one that has the functions of the expected calls."""
        return list(dict.fromkeys(self.involved_classes)) or [""]


class Answer(Known):
    """The expected calls of one conversation."""

    id: str
    ground_truth: list[list[str]]
    """One list a turn of the user's; each call is a line of Python."""


class FunctionDoc(Known):
    """What a function takes and gives."""

    name: str = Field(min_length=1)
    description: str
    parameters: dict[str, Any]
    response: dict[str, Any] | None = None
