"""Why two trajectories part, by experiment: the turn where they do is asked for again under single changes.

Knows the client and the server; reads nothing and says nothing to people.
"""

from agenteval.explain.experiment import (
    company_of,
    conditions_of,
    contract_changes,
    experiment_contract,
    explain,
)
from agenteval.explain.model import Answer, Condition, Explanation, Outcome, Subject, Trial
from agenteval.explain.replay import Replayer
from agenteval.explain.subject import subject_of

__all__ = [
    "Answer",
    "Condition",
    "Explanation",
    "Outcome",
    "Replayer",
    "Subject",
    "Trial",
    "company_of",
    "conditions_of",
    "contract_changes",
    "experiment_contract",
    "explain",
    "subject_of",
]
