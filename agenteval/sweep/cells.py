"""From a sweep's file to its cells, each with the contract and the model that it runs under."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from agenteval.contract import Contract, load_contract
from agenteval.digest import canonical_json
from agenteval.errors import FileProblemsError, UnknownNameError
from agenteval.loading import Document, KeyPath, raise_if_any, read_yaml, validate, wrong_fields
from agenteval.sweep.file import AxisValue, SweepFile
from agenteval.words import nearest

MAX_CELLS = 1_000
"""A matrix that is larger is taken for a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of values."""

    name: str
    """The values in the order of the axes, such as `bf16/strict`."""
    values: Mapping[str, str]
    """Axis to value."""
    contract: Contract
    model: str
    """As for `agenteval run --model`."""
    reference: str
    """Name of the cell that it is compared with; its own where it is the reference."""

    @property
    def is_reference(self) -> bool:
        """Whether others are compared with it."""
        return self.reference == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep's file with its cells in order."""

    path: Path
    file: SweepFile
    cells: tuple[Cell, ...]

    @property
    def suite(self) -> Path:
        """Folder of the suite."""
        return self.path.parent / self.file.suite


def load_sweep(path: Path) -> Sweep:
    """Load a sweep's file.

    Raises:
        FileProblemsError: With every problem of the file, those of its cells' contracts included.
    """
    document = read_yaml(path)
    file = None if document.problems else validate(document, SweepFile)
    cells = () if file is None else tuple(_Matrix(document, file).cells())
    raise_if_any([document])
    assert file is not None
    return Sweep(path=path, file=file, cells=cells)


class _Matrix:
    """The combinations of a file's values; problems go to its document."""

    def __init__(self, document: Document, file: SweepFile) -> None:
        self._document, self._file = document, file

    def cells(self) -> Iterator[Cell]:
        """Every cell that is not left out, the last axis changing fastest."""
        self._check_choice(("reference",), self._file.reference)
        for place, left_out in enumerate(self._file.leave_out):
            self._check_choice(("leave_out", place), left_out)
        for place, adjustment in enumerate(self._file.adjust):
            self._check_choice(("adjust", place, "cells"), adjustment.cells)
        size = math.prod(len(values) for values in self._file.axes.values())
        if size > MAX_CELLS:
            self._problem(("axes",), f"{size:,} cells are more than {MAX_CELLS:,}")
        if self._document.problems:
            return
        combinations = [
            dict(zip(self._file.axes, names, strict=True)) for names in itertools.product(*self._file.axes.values())
        ]
        kept = [values for values in combinations if not any(self._has(values, left) for left in self._file.leave_out)]
        names = {_name(values) for values in kept}
        if not kept:
            self._problem(("leave_out",), "leaves no cell")
        for values in kept:
            cell = self._cell(values)
            if cell is None:
                continue
            if cell.reference not in names:
                self._problem(("reference",), f"{cell.name} has no reference: {cell.reference} is left out")
            yield cell

    def _cell(self, values: Mapping[str, str]) -> Cell | None:
        """One cell; None where its contract has a problem."""
        chosen = {(axis, name): self._file.axes[axis][name] for axis, name in values.items()}
        base = self._one(chosen, "extends", values)
        model = self._one(chosen, "model", values)
        if base is None or model is None:
            return None
        fields = self._base_fields(*base)
        if fields is None:
            return None
        set_by: dict[str, KeyPath] = {}
        for at, clauses in self._clauses(chosen, values):
            for clause, changed in clauses.items():
                for field, value in changed.items():
                    name = f"{clause}.{field}"
                    if name in set_by and at[0] == "axes" == set_by[name][0]:
                        self._problem((*at, clause, field), f"another axis sets {name} too; let one of them set it")
                    set_by[name] = at
                    fields.setdefault(clause, {})[field] = value
        name = _name(values)
        told = {"name": name.replace("/", "-"), "description": f"Cell {name} of the sweep {self._file.name}."}
        try:
            contract = Contract.model_validate_json(canonical_json({**fields, **told}))
        except pydantic.ValidationError as error:
            self._problem(("axes",), f"the contract of {name} cannot be: {wrong_fields(error)}")
            return None
        return Cell(
            name=name,
            values=values,
            contract=contract,
            model=self._model(model[0]),
            reference=_name({**values, **self._file.reference}),
        )

    def _clauses(
        self, chosen: Mapping[tuple[str, str], AxisValue], values: Mapping[str, str]
    ) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
        """Where contract fields are set and which: those of every cell, then each axis's, then adjustments."""
        yield ("contract",), self._file.contract
        for (axis, name), value in chosen.items():
            yield ("axes", axis, name, "contract"), value.contract
        for place, adjustment in enumerate(self._file.adjust):
            if self._has(values, adjustment.cells):
                yield ("adjust", place, "contract"), adjustment.contract

    def _one(
        self, chosen: Mapping[tuple[str, str], AxisValue], field: str, values: Mapping[str, str]
    ) -> tuple[str, KeyPath] | None:
        """The value of what exactly one axis must set, and where it stands."""
        found = [
            (getattr(value, field), ("axes", axis, name, field))
            for (axis, name), value in chosen.items()
            if getattr(value, field) is not None
        ]
        if len(found) == 1:
            return found[0]
        which = "several axes set" if found else "no axis sets"
        self._problem(("axes",), f"{which} `{field}` for {_name(values)}; exactly one must")
        return None

    def _base_fields(self, name: str, at: KeyPath) -> dict[str, dict[str, Any]] | None:
        beside = self._document.path.parent / name
        try:
            return load_contract(str(beside) if beside.is_file() else name).contract.fields()
        except (UnknownNameError, FileProblemsError) as error:
            self._problem(at, str(error))
            return None

    def _model(self, name: str) -> str:
        """A path that counts from the file as one that counts from here; anything else as it stands."""
        beside = self._document.path.parent / name
        return str(beside) if name.startswith(("./", "../")) or beside.is_dir() else name

    def _check_choice(self, at: KeyPath, choice: Mapping[str, str]) -> None:
        for axis, name in choice.items():
            known = self._file.axes.get(axis)
            if known is None:
                self._problem((*at, axis), f"there is no axis {axis!r}.{nearest(axis, tuple(self._file.axes))}")
            elif name not in known:
                self._problem((*at, axis), f"the axis {axis} has no value {name!r}.{nearest(name, tuple(known))}")

    @staticmethod
    def _has(values: Mapping[str, str], choice: Mapping[str, str]) -> bool:
        return all(values[axis] == name for axis, name in choice.items())

    def _problem(self, at: KeyPath, message: str) -> None:
        problem = self._document.problem(at, message)
        # Cells share values: a wrong one is told once.
        if problem not in self._document.problems:
            self._document.problems.append(problem)


def _name(values: Mapping[str, str]) -> str:
    return "/".join(values.values())
