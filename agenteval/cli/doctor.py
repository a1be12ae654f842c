"""`agenteval doctor`: what this machine and its engine can keep."""

from __future__ import annotations

import argparse
import json
import sys

from agenteval.cli.common import emit
from agenteval.cli.parser import default_database
from agenteval.doctor.check import Check, State
from agenteval.doctor.lines import checks_json, checks_text
from agenteval.doctor.packages import packages_check, python_check, read_needs

_READY, _NOT_READY = 0, 2


def doctor(arguments: argparse.Namespace) -> int:
    """Print the diagnosis; the exit status says whether a contract that promises repeatability can be kept now."""
    needs = read_needs()
    own = (
        python_check(needs, version=".".join(map(str, sys.version_info[:3])), executable=sys.executable),
        packages_check(needs),
    )
    if any(check.state is State.MISSING for check in own):
        return _without_the_rest(own, as_json=arguments.json)
    # Only now, since it imports the packages that were looked at.
    from agenteval import models
    from agenteval.doctor.examine import Subject, examine
    from agenteval.doctor.text import as_json, screen

    subject = Subject(
        database=arguments.db,
        cache_dir=models.cache_folder(),
        model=arguments.model or models.DEFAULT_MODEL,
        contract=arguments.contract,
        options=_options(arguments),
    )
    diagnosis = examine(subject, own)
    emit(json.dumps(as_json(diagnosis), indent=2) if arguments.json else screen(diagnosis))
    return _READY if diagnosis.is_ready else _NOT_READY


def _without_the_rest(own: tuple[Check, ...], *, as_json: bool) -> int:
    """What was found of agenteval itself, where nothing else can be looked at before that is mended."""
    command = next((check.command for check in own if check.command is not None), None)
    following = command or "agenteval doctor, once what is missing above is there"
    if as_json:
        emit(json.dumps({"is_ready": False, "checks": checks_json(own), "contracts": [], "next": following}, indent=2))
    else:
        emit("\n".join([*checks_text(own), f"next: {following}"]))
    return _NOT_READY


def _options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """What was named on this command line and a run needs too."""
    model = () if arguments.model is None else ("--model", arguments.model)
    database = () if arguments.db == default_database() else ("--db", str(arguments.db))
    return (*model, *database)
