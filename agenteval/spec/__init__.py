"""What the agent is asked: suites, tasks, tool mocks and checks.

Knows files and words only; how a mock answers is `tools`' business, how a check judges is `grade`'s.
"""

from agenteval.spec.checks import (
    AnswerCheck,
    CalledCheck,
    Check,
    NotCalledCheck,
    OrderCheck,
    TurnsCheck,
    WorldCheck,
)
from agenteval.spec.files import load_suite
from agenteval.spec.suite import AgentSettings, Suite, Task, TaskVariant
from agenteval.spec.tools import Case, Effect, ToolMock

__all__ = [
    "AgentSettings",
    "AnswerCheck",
    "CalledCheck",
    "Case",
    "Check",
    "Effect",
    "NotCalledCheck",
    "OrderCheck",
    "Suite",
    "Task",
    "TaskVariant",
    "ToolMock",
    "TurnsCheck",
    "WorldCheck",
    "load_suite",
]
