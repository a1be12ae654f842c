"""tau2-bench's task file, as far as it is known here.

Source: sierra-research/tau2-bench, src/tau2/data_model/tasks.py and message.py.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from agenteval.interchange.source import Known


class Action(Known):
    """A call that the reference solution makes."""

    name: str
    arguments: dict[str, Any]
    requestor: str = "assistant"
    """`assistant` or `user`."""
    action_id: str | None = None
    info: str | None = None
    compare_args: list[str] | None = None
    """Arguments that are compared; null compares all."""


class ToolCall(Known):
    """A call in a message that has been exchanged already."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    id: str | None = None
    requestor: str = "assistant"


class HistoryMessage(Known):
    """A message that has been exchanged before the task starts."""

    role: str
    content: str | None = None
    tool_calls: list[ToolCall] | None = None
    id: str | None = None
    requestor: str | None = None
    error: bool | None = None
    turn_idx: int | None = None
    timestamp: str | None = None


class Description(Known):
    """What a task is for, told to nobody."""

    purpose: str | None = None
    relevant_policies: str | None = None
    notes: str | None = None


class Instructions(Known):
    """What the simulated user is told of the situation."""

    domain: str | None = None
    reason_for_call: str | None = None
    known_info: str | None = None
    unknown_info: str | None = None
    task_instructions: str | None = None


class UserScenario(Known):
    """All that the simulated user is told."""

    instructions: str | Instructions
    persona: str | None = None


class InitializationData(Known):
    """Changes of the domain's databases."""

    agent_data: dict[str, Any] | None = None
    user_data: dict[str, Any] | None = None


class InitialState(Known):
    """Where a task starts, when not in the domain's usual state."""

    initialization_data: InitializationData | None = None
    initialization_actions: list[dict[str, Any]] | None = None
    message_history: list[HistoryMessage] | None = None


class EvaluationCriteria(Known):
    """What the reward is computed from."""

    actions: list[Action] | None = None
    env_assertions: list[dict[str, Any]] | None = None
    communicate_info: list[str] | None = None
    nl_assertions: list[str] | None = None
    reward_basis: list[str] = Field(default_factory=lambda: ["DB", "COMMUNICATE"])
    """Parts that count; all must be fulfilled."""


class Tau2Task(Known):
    """One task."""

    id: str | int
    user_scenario: UserScenario
    description: Description | None = None
    ticket: str | None = None
    initial_state: InitialState | None = None
    evaluation_criteria: EvaluationCriteria | None = None
    issues: list[dict[str, Any]] | None = None
    required_documents: list[str] | None = None
    user_tools: list[str] | None = None

    @property
    def actions(self) -> list[Action]:
        """The reference solution's calls."""
        return [] if self.evaluation_criteria is None else self.evaluation_criteria.actions or []

    @property
    def history(self) -> list[HistoryMessage]:
        """Messages that have been exchanged already."""
        return [] if self.initial_state is None else self.initial_state.message_history or []
