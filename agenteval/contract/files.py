"""Contract files: found by name or path, extended by others, with the origin of every field."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.contract.clauses import Contract
from agenteval.errors import FileProblemsError, Problem, UnknownNameError
from agenteval.loading import Document, KeyPath, raise_if_any, read_yaml, validate
from agenteval.words import nearest

MAX_EXTENDS = 8
"""Longer chains of `extends:` are taken for a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractFile:
    """A contract with where each of its fields was set."""

    contract: Contract
    path: Path
    """The file that was asked for."""
    origins: dict[str, str]
    """`clause.field` to the name of the file that set it last."""


@dataclass(slots=True)
class _Merged(Document):
    """The fields of a chain of files, whose problems lie where the nearest file sets the key."""

    chain: list[Document] = field(default_factory=list)

    def problem(self, key: KeyPath, message: str) -> Problem:
        nearest_file = next((document for document in self.chain if document.holds(key)), self.chain[0])
        return nearest_file.problem(key, message)


def builtin_names() -> tuple[str, ...]:
    """Names of the contracts that ship with agenteval, sorted."""
    return tuple(sorted(path.stem for path in _builtin_folder().glob("*.yaml")))


def load_contract(name: str) -> ContractFile:
    """Load a built-in contract by name, or any contract by the path of its file.

    Raises:
        UnknownNameError: If it is neither.
        FileProblemsError: With everything that is wrong with the file, or with one that it extends.
    """
    chain = _chain(_locate(name))
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for document in reversed(chain):
        fields = {key: value for key, value in document.data.items() if key != "extends"}
        merged = _merge(merged, fields)
        origins |= dict.fromkeys(_leaves(fields), document.path.stem)
    document = _Merged(path=chain[0].path, data=merged, chain=chain)
    contract = validate(document, Contract)
    if contract is not None and contract.name in builtin_names() and not _is_builtin(chain[0].path):
        message = f"{contract.name!r} is the name of a built-in contract; give this one a name of its own"
        chain[0].problems.append(chain[0].problem(("name",), message))
    raise_if_any([document, *chain])
    assert contract is not None
    return ContractFile(contract=contract, path=chain[0].path, origins=origins)


def _locate(name: str, beside: Path | None = None) -> Path:
    """The file of a name: a path that exists (relative to `beside` too), else a built-in."""
    for candidate in (Path(name), *([beside / name] if beside else [])):
        if candidate.is_file():
            return candidate
    if name in builtin_names():
        return _builtin_folder() / f"{name}.yaml"
    raise UnknownNameError(
        what="contract",
        name=name,
        known=builtin_names(),
        advice=f"Name one of these, or a YAML file that `extends:` one.{nearest(name, builtin_names())}",
    )


def _chain(path: Path) -> list[Document]:
    """The file and those it extends, nearest first."""
    chain: list[Document] = []
    while True:
        document = read_yaml(path)
        if not isinstance(document.data, Mapping):
            if not document.problems:
                document.problems.append(document.problem((), "a contract is a mapping of clauses"))
            raise_if_any([document])
        if path.resolve() in {earlier.path.resolve() for earlier in chain}:
            raise FileProblemsError([document.problem(("extends",), "extends itself, directly or by others")])
        chain.append(document)
        parent = document.data.get("extends")
        if parent is None:
            return chain
        if not isinstance(parent, str) or len(chain) >= MAX_EXTENDS:
            raise FileProblemsError([document.problem(("extends",), f"{parent!r} is no contract's name or path")])
        try:
            path = _locate(parent, beside=path.parent)
        except UnknownNameError as error:
            raise FileProblemsError([document.problem(("extends",), str(error))]) from error


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Clauses are merged field by field; a field's own value is replaced whole."""
    merged = dict(base)
    for key, value in over.items():
        inherited = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(inherited, Mapping)
        merged[key] = {**inherited, **value} if both else value  # type: ignore[dict-item]
    return merged


def _leaves(fields: Mapping[str, Any]) -> list[str]:
    leaves = []
    for clause, value in fields.items():
        leaves += [f"{clause}.{field}" for field in value] if isinstance(value, Mapping) else [clause]
    return leaves


def _is_builtin(path: Path) -> bool:
    return path.resolve().parent == _builtin_folder().resolve()


def _builtin_folder() -> Path:
    return Path(str(importlib.resources.files("agenteval"))) / "contracts"
