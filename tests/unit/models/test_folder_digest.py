"""The digest is the identity of a model: these tests are its specification."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.digest import digest_json
from agenteval.models import digest_folder
from agenteval.models.errors import ModelFolderError
from agenteval.models.folder_digest import MEMORY_NAME, REMEMBER_FROM_BYTES

LONG_AGO_S = 1_600_000_000
CONTENT = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "tokenizer.json": b"[1]",
    "chat_template.jinja": b"{{ messages }}",
}


def write_model(folder: Path, content: dict[str, bytes] = CONTENT) -> Path:
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_digest_is_the_canonical_hash_of_the_file_hashes(tmp_path: Path, cache: Path) -> None:
    folder = write_model(tmp_path / "model", {"config.json": b"{}", "sub/model.safetensors": b""})
    hashes = {
        "config.json": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "sub/model.safetensors": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }
    assert digest_folder(folder, cache_dir=cache) == digest_json(hashes)


def test_digest_ignores_folder_name_file_times_and_order_of_creation(tmp_path: Path, cache: Path) -> None:
    first = write_model(tmp_path / "first")
    second = write_model(tmp_path / "elsewhere" / "second", dict(reversed(CONTENT.items())))
    os.utime(second / "model.safetensors", (LONG_AGO_S, LONG_AGO_S))
    assert digest_folder(first, cache_dir=cache) == digest_folder(second, cache_dir=cache)


@pytest.mark.parametrize(
    "extra", ["README.md", "LICENSE", "notes.txt", ".git/config.json", ".cache/x.json", "__pycache__/m.py"]
)
def test_digest_ignores_what_no_server_reads(tmp_path: Path, cache: Path, extra: str) -> None:
    folder = write_model(tmp_path / "model")
    before = digest_folder(folder, cache_dir=cache)
    write_model(folder, {extra: b"anything"})
    assert digest_folder(folder, cache_dir=cache) == before


@pytest.mark.parametrize(
    "extra",
    ["generation_config.json", "merges.txt", "model-2.safetensors", "modeling.py", "templates/tool.jinja"],
)
def test_digest_covers_every_file_that_can_change_an_answer(tmp_path: Path, cache: Path, extra: str) -> None:
    folder = write_model(tmp_path / "model")
    before = digest_folder(folder, cache_dir=cache)
    write_model(folder, {extra: b"anything"})
    assert digest_folder(folder, cache_dir=cache) != before


@given(
    name=st.sampled_from(sorted(CONTENT)),
    data=st.binary(min_size=1, max_size=64),
    place=st.integers(min_value=0),
    flipped=st.integers(min_value=1, max_value=255),
)
def test_digest_changes_with_any_byte(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes, place: int, flipped: int
) -> None:
    root = tmp_path_factory.mktemp("model")
    changed = bytearray(data)
    changed[place % len(data)] ^= flipped
    before = write_model(root / "before", {**CONTENT, name: data})
    after = write_model(root / "after", {**CONTENT, name: bytes(changed)})
    assert digest_folder(before, cache_dir=root) != digest_folder(after, cache_dir=root)


def test_digest_changes_when_two_files_swap_their_content(tmp_path: Path, cache: Path) -> None:
    before = write_model(tmp_path / "before", {"a.json": b"1", "b.json": b"2"})
    after = write_model(tmp_path / "after", {"a.json": b"2", "b.json": b"1"})
    assert digest_folder(before, cache_dir=cache) != digest_folder(after, cache_dir=cache)


def test_links_to_files_count_as_their_content(tmp_path: Path, cache: Path) -> None:
    """The Hugging Face cache is made of such links."""
    plain = write_model(tmp_path / "plain")
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in CONTENT:
        (linked / name).symlink_to(plain / name)
    assert digest_folder(linked, cache_dir=cache) == digest_folder(plain, cache_dir=cache)


def write_old_weights(folder: Path, *, byte: bytes = b"w") -> Path:
    weights = write_model(folder) / "model.safetensors"
    weights.write_bytes(byte * REMEMBER_FROM_BYTES)
    return weights


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled at once; nobody can set a file's change time back, and tests should not wait."""
    monkeypatch.setattr("agenteval.models.folder_digest.SETTLE_S", -1.0)


@pytest.mark.usefixtures("settled")
def test_a_large_file_is_hashed_once(tmp_path: Path, cache: Path) -> None:
    """Shown by planting another hash in the memory: it is believed for as long as the file is not touched."""
    weights = write_old_weights(tmp_path / "model")
    true_digest = digest_folder(weights.parent, cache_dir=cache)
    memory = json.loads((cache / MEMORY_NAME).read_text())
    assert len(memory) == 1
    (cache / MEMORY_NAME).write_text(json.dumps(dict.fromkeys(memory, "0" * 64)))
    assert digest_folder(weights.parent, cache_dir=cache) != true_digest
    weights.write_bytes(weights.read_bytes())
    assert digest_folder(weights.parent, cache_dir=cache) == true_digest


@pytest.mark.usefixtures("settled")
def test_equal_size_and_modification_time_do_not_hide_a_change(tmp_path: Path, cache: Path) -> None:
    weights = write_old_weights(tmp_path / "model")
    os.utime(weights, (LONG_AGO_S, LONG_AGO_S))
    before = digest_folder(weights.parent, cache_dir=cache)
    with weights.open("r+b") as file:
        file.write(b"x")
    os.utime(weights, (LONG_AGO_S, LONG_AGO_S))
    assert digest_folder(weights.parent, cache_dir=cache) != before


def test_a_file_changed_just_now_is_not_remembered(tmp_path: Path, cache: Path) -> None:
    weights = write_old_weights(tmp_path / "model")
    digest_folder(weights.parent, cache_dir=cache)
    assert not (cache / MEMORY_NAME).exists()


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("damage", [b"", b'{"1:2', b"[]", b'{"1:2:3:4:5": 7}', b"\xff\xfe", b"null"])
def test_a_damaged_memory_only_costs_time(tmp_path: Path, cache: Path, damage: bytes) -> None:
    weights = write_old_weights(tmp_path / "model")
    expected = digest_folder(weights.parent, cache_dir=tmp_path / "other")
    cache.mkdir()
    (cache / MEMORY_NAME).write_bytes(damage)
    assert digest_folder(weights.parent, cache_dir=cache) == expected
    assert expected == digest_folder(weights.parent, cache_dir=cache)
    assert len(json.loads((cache / MEMORY_NAME).read_text())) == 1


@pytest.mark.usefixtures("settled")
def test_a_cache_that_cannot_be_written_does_not_stop_a_run(tmp_path: Path) -> None:
    weights = write_old_weights(tmp_path / "model")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert digest_folder(weights.parent, cache_dir=blocked).startswith("sha256:")


@pytest.mark.parametrize("kind", ["missing", "empty", "only a readme"])
def test_a_folder_without_a_model_has_no_digest(tmp_path: Path, cache: Path, kind: str) -> None:
    folder = write_model(tmp_path / "model", {"README.md": b"hello"})
    if kind != "only a readme":
        shutil.rmtree(folder)
    if kind == "empty":
        folder.mkdir()
    with pytest.raises(ModelFolderError, match=r"config\.json"):
        digest_folder(folder, cache_dir=cache)
