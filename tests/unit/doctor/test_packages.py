"""Python and agenteval's own packages: there, of the right version, and whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agenteval.doctor.check import Check, State
from agenteval.doctor.packages import Needs, packages_check, python_check, read_needs


def check(*packages: str) -> Check:
    return packages_check(Needs(python=">=3.11", packages=packages))


def install(folder: Path, name: str, code: str) -> None:
    """A package as pip would leave it, version 1.5."""
    (folder / f"{name}.py").write_text(code)
    metadata = folder / f"{name}-1.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (metadata / "top_level.txt").write_text(f"{name}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose packages are found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_what_agenteval_needs_is_known_and_here() -> None:
    needs = read_needs()
    assert needs is not None
    assert any(package.startswith("duckdb") for package in needs.packages)
    assert packages_check(needs).state is State.OK


@pytest.mark.parametrize(
    ("version", "state"), [("3.11.7", State.OK), ("3.14.0rc1", State.OK), ("3.10.2", State.MISSING)]
)
def test_python_must_be_of_an_accepted_version(version: str, state: State) -> None:
    needs = Needs(python=">=3.11", packages=())
    assert python_check(needs, version=version, executable="/python").state is state


def test_a_package_that_is_not_installed_is_named() -> None:
    assert check("no-such-package>=1").found == "no-such-package is not installed"


def test_a_package_of_another_version_is_named(site: Path) -> None:
    install(site, "doctor_case_old", "")
    assert check("doctor_case_old>=2").found == "doctor_case_old 1.5 is installed, >=2 is needed"


def test_a_package_that_cannot_be_imported_is_named_with_its_error(site: Path) -> None:
    install(site, "doctor_case_broken", "raise ValueError('numpy.dtype size changed')")
    found = check("doctor_case_broken>=1").found
    assert found == "doctor_case_broken 1.5 cannot be imported: ValueError: numpy.dtype size changed"


def test_a_whole_package_is_ok(site: Path) -> None:
    install(site, "doctor_case_whole", "")
    assert check("doctor_case_whole>=1,<2").state is State.OK


def test_every_problem_is_mended_by_one_command(site: Path) -> None:
    install(site, "doctor_case_both", "")
    command = check("doctor_case_both>=2", "no-such-package").command
    assert command == f"{sys.executable} -m pip install --force-reinstall 'doctor_case_both>=2' 'no-such-package'"


@pytest.mark.parametrize("marker", ["sys_platform == 'no-such-system'", "extra == 'dev'"])
def test_what_is_needed_elsewhere_is_not_missed(marker: str) -> None:
    assert check(f"no-such-package; {marker}").state is State.OK


def test_unknown_needs_are_no_obstacle() -> None:
    assert packages_check(None).state is State.WARNING
