"""`agenteval verify`: a run's verdict, derived again from what is stored of it."""

from __future__ import annotations

import argparse
import json

from agenteval.cli.common import emit
from agenteval.cli.database import find_run
from agenteval.judge import derive_findings
from agenteval.report import Verification, summarize, verification_json, verification_text
from agenteval.store import RunReader


def verify(arguments: argparse.Namespace) -> int:
    """Judge a run again, without a server; the exit status is that of the verdict, 2 where the two differ."""
    reader = RunReader(path=arguments.db, run_id=find_run(arguments.db, arguments.run))
    verification = Verification(stored=summarize(reader), findings=derive_findings(reader))
    emit(json.dumps(verification_json(verification), indent=2) if arguments.json else verification_text(verification))
    return verification.exit_code
