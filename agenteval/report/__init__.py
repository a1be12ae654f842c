"""What a run came to, for people and for machines.

Reads records and makes text; must not judge: verdicts come from `audit`, divergences from `compare`.
"""

from agenteval.report.summary import RunSummary, summarize
from agenteval.report.text import exit_code, passed_text, summary_json, summary_text
from agenteval.report.verification import Verification, verification_json, verification_text

__all__ = [
    "RunSummary",
    "Verification",
    "exit_code",
    "passed_text",
    "summarize",
    "summary_json",
    "summary_text",
    "verification_json",
    "verification_text",
]
