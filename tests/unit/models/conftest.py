"""Shared by the model tests: one tiny model a session, and a pip that sees only its wheels."""

from pathlib import Path

import pytest

from agenteval.models.catalogue import CatalogueEntry

from .builders import build_entry


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that holds the tiny model's GGUF, wheels and expected folder."""
    return tmp_path_factory.mktemp("origin")


@pytest.fixture(scope="session")
def entry(origin: Path) -> CatalogueEntry:
    """A catalogue entry that can be pulled from the wheels in origin/index."""
    return build_entry(origin)


@pytest.fixture
def index(origin: Path, entry: CatalogueEntry, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheels' folder, and a pip that looks nowhere else."""
    folder = origin / "index"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder
