"""Python and the packages that agenteval itself needs; imports none of them but `packaging`."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import agenteval
from agenteval.doctor.check import Check, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What agenteval needs before any engine."""

    python: str
    """Versions of Python, as a PEP 440 specifier."""
    packages: tuple[str, ...]
    """Requirements as in a package's metadata."""


def read_needs() -> Needs | None:
    """From the installed package, else from the checkout it runs in; None where it is neither."""
    try:
        metadata = importlib.metadata.distribution("agenteval")
    except importlib.metadata.PackageNotFoundError:
        return _needs_of_checkout(Path(agenteval.__file__).parents[1] / "pyproject.toml")
    return Needs(python=metadata.metadata["Requires-Python"], packages=tuple(metadata.requires or ()))


def _needs_of_checkout(pyproject: Path) -> Needs | None:
    try:
        project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
        return Needs(python=project["requires-python"], packages=tuple(project["dependencies"]))
    except (OSError, ValueError, KeyError):
        return None


def python_check(needs: Needs | None, *, version: str, executable: str) -> Check:
    """Whether this Python is one that agenteval accepts."""
    found = f"{version} in {executable}"
    if needs is None or SpecifierSet(needs.python).contains(version, prereleases=True):
        return Check(name="python", found=found)
    return Check(
        name="python",
        state=State.MISSING,
        found=f"{found}; agenteval accepts {needs.python}",
        to_do="Make an environment with such a Python and install agenteval there.",
    )


def packages_check(needs: Needs | None) -> Check:
    """Whether agenteval's own packages are there, in versions that it accepts, and can be imported."""
    if needs is None:
        return Check(
            name="packages",
            state=State.WARNING,
            found="what agenteval needs is not known: it is not installed as a package",
            to_do="Install it, so that its packages are looked at: pip install . in a checkout.",
        )
    wanted = [requirement for requirement in map(Requirement, needs.packages) if _is_needed(requirement)]
    problems = list(_problems(wanted))
    if not problems:
        return Check(name="packages", found=f"all {len(wanted)} that agenteval needs, in versions that it accepts")
    names = " ".join(f"'{requirement}'" for requirement, _ in problems)
    return Check(
        name="packages",
        state=State.MISSING,
        found="; ".join(problem for _, problem in problems),
        to_do="Install them anew in agenteval's environment.",
        command=f"{sys.executable} -m pip install --force-reinstall {names}",
    )


def _is_needed(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def _problems(wanted: Iterable[Requirement]) -> Iterator[tuple[Requirement, str]]:
    modules = _modules_by_package()
    for requirement in wanted:
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield requirement, f"{requirement.name} is not installed"
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            yield requirement, f"{requirement.name} {version} is installed, {requirement.specifier} is needed"
        elif (reason := _import_failure(modules.get(canonicalize_name(requirement.name), []))) is not None:
            yield requirement, f"{requirement.name} {version} cannot be imported: {reason}"


def _modules_by_package() -> dict[str, list[str]]:
    """The importable names of each installed package, without those for its own use or for type checkers."""
    modules: dict[str, list[str]] = {}
    for module, packages in importlib.metadata.packages_distributions().items():
        if module.isidentifier() and not module.startswith("_"):
            for package in packages:
                modules.setdefault(canonicalize_name(package), []).append(module)
    return modules


def _import_failure(modules: list[str]) -> str | None:
    """Why a package's first module, by length of its name, cannot be imported."""
    for module in sorted(modules, key=lambda name: (len(name), name))[:1]:
        try:
            importlib.import_module(module)
        except Exception as error:  # a broken package raises whatever it likes
            return f"{type(error).__name__}: {error}"
    return None
