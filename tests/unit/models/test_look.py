"""What this machine has of a model, at a glance: nothing is fetched, hashed or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.models import catalogue, look
from agenteval.models.errors import ModelNotFoundError
from agenteval.models.hub import HubId, cached_snapshot
from agenteval.models.pull import entry_folder

ENTRY = catalogue()[0]


def write_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("<tool_call>")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_a_catalogued_model_that_is_not_here_is_as_the_catalogue_expects_it(tmp_path: Path) -> None:
    seen = look(ENTRY.name, cache_dir=tmp_path)
    assert (seen.folder, seen.size_bytes, seen.fetch_bytes) == (None, ENTRY.folder_bytes, ENTRY.peak_disk_bytes)


def test_a_catalogued_model_that_is_too_small_is_not_whole(tmp_path: Path) -> None:
    folder = write_model(entry_folder(ENTRY, tmp_path))
    seen = look(ENTRY.name, cache_dir=tmp_path)
    assert (seen.folder, seen.fetch_bytes) == (folder, 0)
    assert seen.lack == f"it has 20 bytes, and {ENTRY.folder_bytes} are expected"


def test_a_catalogued_model_of_the_right_size_is_whole(tmp_path: Path) -> None:
    folder = write_model(entry_folder(ENTRY, tmp_path))
    # Sparse: as large as expected without taking the room.
    with (folder / "model.safetensors").open("wb") as weights:
        weights.truncate(ENTRY.folder_bytes)
    assert look(ENTRY.name, cache_dir=tmp_path).lack is None


def test_a_folder_is_looked_at_where_it_lies_and_the_cache_stays_empty(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    seen = look(str(folder), cache_dir=tmp_path / "cache")
    assert (seen.folder, seen.size_bytes, seen.tool_call_parser, seen.lack) == (folder, 20, "hermes", None)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("index", "lack"),
    [
        pytest.param(
            '{"weight_map": {"a": "gone.safetensors"}}', "it lacks 1 of its weight files", id="a missing file"
        ),
        pytest.param("{", "model.safetensors.index.json is damaged", id="a damaged index"),
    ],
)
def test_what_a_folder_lacks_is_told_not_raised(tmp_path: Path, index: str, lack: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "model.safetensors.index.json").write_text(index)
    assert (look(str(folder), cache_dir=tmp_path).lack or "").startswith(lack)


@pytest.mark.parametrize("name", ["./nothing-here", "no such name"])
def test_a_name_that_stands_for_nothing_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelNotFoundError):
        look(name, cache_dir=tmp_path)


def test_a_repository_in_the_hubs_cache_is_found_without_the_hub(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    folder = write_model(repository / "snapshots" / "abc")
    assert cached_snapshot(HubId(repo="org/name", revision=None), hub_cache=tmp_path) == folder


def test_a_repository_that_is_not_in_the_hubs_cache_is_not_asked_for(tmp_path: Path) -> None:
    assert cached_snapshot(HubId(repo="org/name", revision=None), hub_cache=tmp_path) is None
    assert list(tmp_path.iterdir()) == []
