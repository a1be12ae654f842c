"""The wheel holds everything, and nothing at the top of anyone's import path but `agenteval`."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the tracked files, so that the build leaves nothing behind in the checkout."""
    source = tmp_path_factory.mktemp("source")
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    archive = tmp_path_factory.mktemp("archive") / "source.tar"
    present = [name for name in files if name and (ROOT / name.decode()).exists()]
    subprocess.run(
        ("tar", "cf", str(archive), "--null", "--files-from=-"), cwd=ROOT, check=True, input=b"\0".join(present)
    )
    subprocess.run(("tar", "xf", str(archive)), cwd=source, check=True)
    out = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source))
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that holds the wheel and nothing else."""
    environment = tmp_path_factory.mktemp("clean")
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    subprocess.run((str(python), "-I", "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)), check=True)
    return python


def output_of(python: Path, code: str) -> str:
    done = subprocess.run((str(python), "-I", "-c", code), check=True, capture_output=True, text=True, cwd="/")
    return done.stdout.strip()


def test_the_browser_is_a_part_of_the_package(clean_python: Path) -> None:
    assert output_of(clean_python, "import agenteval.tui; print(agenteval.tui.__name__)") == "agenteval.tui"


@pytest.mark.parametrize("name", ["strict", "isolated", "invariant", "default"])
def test_the_built_in_contracts_are_inside(clean_python: Path, name: str) -> None:
    code = f"import agenteval, pathlib as p; print((p.Path(agenteval.__path__[0])/'contracts/{name}.yaml').is_file())"
    assert output_of(clean_python, code) == "True"


@pytest.mark.parametrize("name", ["starter", "toolsuite"])
def test_the_suites_are_inside_whole(wheel: Path, name: str) -> None:
    inside = {Path(file).name for file in zipfile.ZipFile(wheel).namelist() if f"tasks/{name}/" in file}
    assert inside == {path.name for path in (ROOT / "tasks" / name).iterdir() if path.suffix in (".yaml", ".py")}


@pytest.mark.parametrize("name", ["tui", "tasks", "contracts", "tests", "examples"])
def test_no_other_name_becomes_importable(clean_python: Path, name: str) -> None:
    code = f"import importlib.util; print(importlib.util.find_spec({name!r}))"
    assert output_of(clean_python, code) == "None"


def test_the_browser_refuses_to_be_imported_from_the_top() -> None:
    done = subprocess.run((sys.executable, "-c", "import tui"), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "agenteval.tui" in done.stderr


def test_types_and_the_catalogue_travel_with_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"agenteval/py.typed", "agenteval/models/catalogue.yaml"} <= names


def test_the_suite_to_start_from_travels_with_the_wheel(wheel: Path) -> None:
    inside = {Path(file).name for file in zipfile.ZipFile(wheel).namelist() if "agenteval/cli/new_suite/" in file}
    assert inside == {path.name for path in (ROOT / "agenteval" / "cli" / "new_suite").iterdir()}
