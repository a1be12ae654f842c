"""The HTTP seam: every request obeys the contract, every exchange is recorded whole.

It is an httpx transport, so whatever agent speaks through it (`openai`, `langchain-openai`, plain httpx) is held and
recorded the same way. Knows HTTP and the contract's request fields; must not know graphs, tasks or the database.
"""

from agenteval.client.gate import Gate
from agenteval.client.recorder import (
    EpisodeOverError,
    EpisodeRecorder,
    Exchange,
    HandOver,
    TurnIdentity,
    WaitDurable,
    call_id,
)
from agenteval.client.rules import UNCOVERED, RequestRules, check_accepted
from agenteval.client.transport import AsyncRecordingTransport, RecordingTransport, open_connection

__all__ = [
    "UNCOVERED",
    "AsyncRecordingTransport",
    "EpisodeOverError",
    "EpisodeRecorder",
    "Exchange",
    "Gate",
    "HandOver",
    "RecordingTransport",
    "RequestRules",
    "TurnIdentity",
    "WaitDurable",
    "call_id",
    "check_accepted",
    "open_connection",
]
