"""Did the run keep its contract? One auditor a clause: stored facts -> kept, breached or unproven, with evidence.

Pure over records: no server and no database, so that anyone can derive the verdict again. An auditor never takes a
flag for a guarantee: what was measured decides, and what was not measured is unproven.
"""

from agenteval.audit.facts import Auditor, RunFacts
from agenteval.audit.verdict import audit_run, clause_verdicts, run_verdict, start_breaches

__all__ = ["Auditor", "RunFacts", "audit_run", "clause_verdicts", "run_verdict", "start_breaches"]
