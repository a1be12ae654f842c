"""What of a contract can be kept here, clause by clause, as far as that shows before a server is started."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agenteval.contract import Contract
from agenteval.contract.clauses import CLAUSES
from agenteval.errors import UnsupportedClauseError
from agenteval.launch import EngineFacts, plan_launch, unsupported
from agenteval.models import SeenModel
from agenteval.records import Model

_DEV_MODE = "VLLM_SERVER_DEV_MODE"
_QUIET_LEVELS = ("WARNING", "ERROR", "CRITICAL")


class Prospect(StrEnum):
    """What a clause could come to here."""

    KEPT = "can be kept"
    UNPROVEN = "can only be unproven"
    REFUSED = "cannot be kept"
    NOT_PROMISED = "not promised"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseProspect:
    """One clause on this machine."""

    clause: str
    prospect: Prospect
    reasons: tuple[str, ...]
    """Why it cannot be kept or proven; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractProspect:
    """One contract on this machine."""

    name: str
    argument: str
    """What --contract takes: the name, or the file."""
    is_repeatable: bool
    """Whether it promises that repeats agree."""
    clauses: tuple[ClauseProspect, ...]
    """All of them, in the contract's order."""

    @property
    def can_be_kept(self) -> bool:
        """Whether no clause is in the way of the verdict `kept`."""
        return all(item.prospect in (Prospect.KEPT, Prospect.NOT_PROMISED) for item in self.clauses)


def contract_prospect(
    contract: Contract, argument: str, facts: EngineFacts | None, seen: SeenModel | None
) -> ContractProspect:
    """What of the contract can be kept.

    Args:
        contract: The contract.
        argument: What --contract takes for it.
        facts: Of the engine; None where there is none, and then no clause can be kept.
        seen: The model; None where its name stands for nothing.
    """
    refused = [("engine", "there is no usable engine")] if facts is None else list(_refused(contract, facts, seen))
    unproven = [] if facts is None else list(_unproven(contract, facts))
    not_promised = set(_not_promised(contract))
    clauses = []
    for clause in CLAUSES:
        against = tuple(reason for name, reason in refused if name == clause)
        doubts = tuple(reason for name, reason in unproven if name == clause)
        if against or (facts is None and clause not in not_promised):
            clauses.append(ClauseProspect(clause=clause, prospect=Prospect.REFUSED, reasons=against))
        elif clause in not_promised:
            clauses.append(ClauseProspect(clause=clause, prospect=Prospect.NOT_PROMISED, reasons=()))
        else:
            prospect = Prospect.UNPROVEN if doubts else Prospect.KEPT
            clauses.append(ClauseProspect(clause=clause, prospect=prospect, reasons=doubts))
    return ContractProspect(
        name=contract.name,
        argument=argument,
        is_repeatable=contract.repeats.agree == "required",
        clauses=tuple(clauses),
    )


def _refused(contract: Contract, facts: EngineFacts, seen: SeenModel | None) -> Iterator[tuple[str, str]]:
    """Clause and reason of all that a run would refuse before its server starts."""
    reasons = unsupported(contract, facts)
    if seen is not None and (seen.tool_call_parser is not None or seen.folder is not None):
        folder = seen.folder or Path("MODEL_FOLDER")
        model = Model(name=seen.name, folder=folder, digest="unknown", tool_call_parser=seen.tool_call_parser)
        try:
            plan_launch(contract, model, facts)
        except UnsupportedClauseError as error:
            reasons = list(error.reasons)
    for reason in reasons:
        clause, _, text = reason.partition(": ")
        yield (clause, text) if clause in CLAUSES else ("engine", reason)
    wanted = contract.model.digest
    if seen is not None and seen.pinned_digest is not None and wanted not in (None, seen.pinned_digest):
        yield "model", f"the contract accepts only {wanted}, and {seen.name} has {seen.pinned_digest}"


def _unproven(contract: Contract, facts: EngineFacts) -> Iterator[tuple[str, str]]:
    """Clause and reason where the evidence would lack something, as the auditors read it."""
    if facts.variables and _DEV_MODE not in facts.variables:
        lacking = f"vLLM {facts.vllm_version} has no developer mode, so its server does not report its configuration"
        yield from ((clause, lacking) for clause in ("batching", "engine", "model"))
    level = contract.engine.env.get("VLLM_LOGGING_LEVEL", "INFO").upper()
    if contract.engine.attention_backend is not None and level in _QUIET_LEVELS:
        silent = f"at VLLM_LOGGING_LEVEL={level} the server does not name its attention backend"
        yield "engine", silent
        if contract.batching.mode == "invariant":
            yield "batching", silent
    if contract.repeats.count == 1:
        yield "repeats", "one repeat cannot agree with another; repeats.count must be 2 or more"


def _not_promised(contract: Contract) -> Iterator[str]:
    """Clauses that the contract leaves open."""
    if contract.batching.mode == "free":
        yield "batching"
    if contract.repeats.agree == "measured":
        yield "repeats"
