"""`agenteval contracts list|show`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from agenteval import models
from agenteval.cli.common import emit
from agenteval.contract import Contract, ContractFile, builtin_names, load_contract
from agenteval.errors import EngineNotFoundError, UnsupportedClauseError
from agenteval.launch import plan_launch
from agenteval.records import Model
from agenteval.server import read_engine_facts


def list_contracts(_arguments: argparse.Namespace) -> int:
    """Print the name and sentence of every built-in contract."""
    for name in builtin_names():
        contract = load_contract(name).contract
        emit(f"{name:<10} {contract.description}")
    return 0


def show_contract(arguments: argparse.Namespace) -> int:
    """Print a contract's fields with their origins, its digest, and how a server would be started."""
    file = load_contract(arguments.name)
    if arguments.json:
        emit(json.dumps({**file.contract.fields(), "digest": file.contract.digest()}, indent=2))
        return 0
    emit("\n".join(_field_lines(file)))
    emit(f"\ndigest    {file.contract.digest()}")
    emit(f"server    {_command(file.contract, arguments.model or models.DEFAULT_MODEL)}")
    return 0


def _field_lines(file: ContractFile) -> list[str]:
    contract = file.contract
    lines = [f"{contract.name}: {contract.description}"]
    for clause, fields in contract.fields().items():
        if isinstance(fields, dict):
            lines += [
                "",
                clause,
                *(_field_line(file, clause, field, value) for field, value in fields.items()),
            ]
    return lines


def _field_line(file: ContractFile, clause: str, field: str, value: Any) -> str:
    origin = file.origins.get(f"{clause}.{field}", file.contract.name)
    return f"  {field:<23} {json.dumps(value):<24} {origin}"


def _command(contract: Contract, model_name: str) -> str:
    """The server's command line with the installed engine, or why there is none."""
    try:
        facts = read_engine_facts(models.cache_folder())
        plan = plan_launch(contract, _shown_model(model_name), facts)
    except (EngineNotFoundError, UnsupportedClauseError) as error:
        return f"none: {error}"
    return f"{plan.command()} --port PORT"


def _shown_model(name: str) -> Model:
    """The model as it would be served; its folder is named only where it is already here."""
    known = models.list_models(cache_dir=models.cache_folder())
    listed = next((item for item in known if item.entry.name == name), None)
    if (listed is not None and listed.folder is not None) or Path(name).is_dir():
        return models.resolve(name, cache_dir=models.cache_folder())
    parser = "PARSER" if listed is None else listed.entry.tool_call_parser
    return Model(name=name, folder=Path("MODEL_FOLDER"), digest="unknown", tool_call_parser=parser)
