"""The diagnosis as one screen and as JSON."""

from __future__ import annotations

from typing import Any

from agenteval.contract.clauses import CLAUSES
from agenteval.doctor.examine import Diagnosis
from agenteval.doctor.lines import checks_json, checks_text, wrapped
from agenteval.doctor.promises import ContractProspect, Prospect
from agenteval.log import printable

MARKS = {Prospect.KEPT: "yes", Prospect.UNPROVEN: "?", Prospect.REFUSED: "no", Prospect.NOT_PROMISED: "-"}
"""How the table shows a clause, without colour."""
_LEGEND = "yes can be kept, ? can only be unproven, no cannot be kept, - not promised"
_NO_ENGINE = "no clause can be kept here without an engine; --base-url uses a server elsewhere"


def screen(diagnosis: Diagnosis) -> str:
    """For people."""
    return "\n".join(
        [*checks_text(diagnosis.checks), "", *_contracts_text(diagnosis), f"next: {printable(diagnosis.next_step)}"]
    )


def _contracts_text(diagnosis: Diagnosis) -> list[str]:
    widest = max(len(name) for name in ("contract", *(item.name for item in diagnosis.contracts)))
    lines = [" ".join(["contract".ljust(widest), *CLAUSES])]
    for item in diagnosis.contracts:
        marks = [MARKS[clause.prospect].ljust(len(clause.clause)) for clause in item.clauses]
        lines.append(" ".join([item.name.ljust(widest), *marks]).rstrip())
    lines.append(_LEGEND)
    if not diagnosis.has_engine:
        return [*lines, _NO_ENGINE]
    for reason, names in _reasons(diagnosis.contracts).items():
        lines += wrapped(f"{', '.join(names)}: {reason}", first="", rest="  ")
    return lines


def _reasons(contracts: tuple[ContractProspect, ...]) -> dict[str, list[str]]:
    """`clause: why` to the contracts that it concerns."""
    names: dict[str, list[str]] = {}
    for item in contracts:
        for clause in item.clauses:
            for reason in clause.reasons:
                names.setdefault(f"{clause.clause}: {reason}", []).append(item.name)
    return names


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """For machines; all that the screen shows and more."""
    return {
        "is_ready": diagnosis.is_ready,
        "checks": checks_json(diagnosis.checks),
        "contracts": [
            {
                "contract": item.argument,
                "promises_repeatability": item.is_repeatable,
                "can_be_kept": item.can_be_kept,
                "clauses": {
                    clause.clause: {"prospect": clause.prospect.value, "reasons": list(clause.reasons)}
                    for clause in item.clauses
                },
            }
            for item in diagnosis.contracts
        ],
        "next": diagnosis.next_step,
    }
