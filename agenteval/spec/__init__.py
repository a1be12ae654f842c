"""What the agent is asked: suites, tasks, tool mocks, faults and checks.

Knows files and words only; how a mock answers is `tools`' business, how a check judges is `grade`'s.
"""

from agenteval.spec.checks import (
    AnswerCheck,
    CalledCheck,
    Check,
    FunctionCheck,
    NotCalledCheck,
    OrderCheck,
    TogetherCheck,
    TokensCheck,
    TurnsCheck,
    UnchangedCheck,
    WorldCheck,
)
from agenteval.spec.faults import (
    ErrorFault,
    Fault,
    LatencyFault,
    MalformedFault,
    StaleFault,
    TimeoutFault,
    TruncatedFault,
)
from agenteval.spec.files import LoadedSuite, load_suite, load_suite_files
from agenteval.spec.functions import SuiteFunction
from agenteval.spec.json_schema import is_allowed
from agenteval.spec.pure import ToolError
from agenteval.spec.selection import Selection, select_variants
from agenteval.spec.suite import AgentSettings, Message, Suite, SuiteFile, SuiteHead, Task, TaskVariant
from agenteval.spec.tools import Case, Effect, ToolMock

__all__ = [
    "AgentSettings",
    "AnswerCheck",
    "CalledCheck",
    "Case",
    "Check",
    "Effect",
    "ErrorFault",
    "Fault",
    "FunctionCheck",
    "LatencyFault",
    "LoadedSuite",
    "MalformedFault",
    "Message",
    "NotCalledCheck",
    "OrderCheck",
    "Selection",
    "StaleFault",
    "Suite",
    "SuiteFile",
    "SuiteFunction",
    "SuiteHead",
    "Task",
    "TaskVariant",
    "TimeoutFault",
    "TogetherCheck",
    "TokensCheck",
    "ToolError",
    "ToolMock",
    "TruncatedFault",
    "TurnsCheck",
    "UnchangedCheck",
    "WorldCheck",
    "is_allowed",
    "load_suite",
    "load_suite_files",
    "select_variants",
]
