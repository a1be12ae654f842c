"""A suite that is being put together from another format's parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.interchange.report import Unmapped
from agenteval.interchange.schemas import inferred_parameters
from agenteval.interchange.source import Known, unknown_fields

FIXED_RESULT = {"status": "ok"}
"""What every imported tool answers."""
FIXED_RESULT_REASON = "code of the benchmark; the mock gives a fixed result"


@dataclass(slots=True)
class Draft:
    """What will be written, and what could not be."""

    name: str
    description: str
    system_prompt: str
    max_turns: int
    """Of a task that sets none of its own."""
    found: int = 0
    """Tasks in the source."""
    tools: list[dict[str, Any]] = field(default_factory=list)
    default_tools: list[str] = field(default_factory=list)
    """Tools of the tasks that name none."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name."""
    ids: dict[str, str] = field(default_factory=dict)
    """Name of a task to its id in the source."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Id of a task to why it is not in the suite."""
    unmapped: list[Unmapped] = field(default_factory=list)

    def lose(self, source: str, place: str, reason: str) -> None:
        """Note what the suite does not have, or has otherwise.

        Args:
            source: Id of the task, name of the tool or file, or `report.EVERY`.
            place: Key path in the source, as far as there is one.
            reason: Why, and what stands in its place where something does.
        """
        self.unmapped.append(Unmapped(source=source, field=place, reason=reason))

    def lose_unknown(self, source: str, model: Known, *, below: str = "") -> None:
        """Note every field of a model that its format is not known to have.

        Args:
            source: As for `lose`.
            model: As read.
            below: Key path in front of the fields', with its dot.
        """
        for place in unknown_fields(model):
            self.lose(source, f"{below}{place}", "a field that is not known here")

    def leave_out(self, source: str, reason: str) -> None:
        """Note that a task is not imported at all."""
        self.left_out[source] = reason
        self.lose(source, "(task)", f"left out: {reason}")


def mock(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool that takes these arguments and gives the fixed result.

    Args:
        name: In the suite.
        description: What the model reads.
        parameters: JSON Schema of the arguments.
    """
    return {
        "name": name,
        "description": description,
        "parameters": dict(parameters),
        "default": {"returns": dict(FIXED_RESULT)},
    }


def observed_mock(name: str, source_name: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A tool of which only calls are known: its own name describes it.

    Args:
        name: In the suite.
        source_name: In the source.
        calls: The arguments of each observed call.
    """
    words = source_name.replace("_", " ").strip().capitalize() or source_name
    return mock(name, f"{words}.", inferred_parameters(calls))


def starting_messages(messages: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """`prompt` or `messages` of a task, from (role, text) pairs of which the last is the user's."""
    if len(messages) == 1:
        return {"prompt": messages[0][1]}
    return {"messages": [{"role": role, "content": text} for role, text in messages]}
