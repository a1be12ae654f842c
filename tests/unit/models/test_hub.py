"""Hugging Face's answers become one folder or one clear error; the hub here is a small HTTP server."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from agenteval.models import resolve
from agenteval.models.catalogue import HuggingFaceSource
from agenteval.models.errors import (
    DownloadError,
    GatedModelError,
    ModelNotFoundError,
    OfflineError,
)
from agenteval.models.hub import HubId, fetch_file, fetch_snapshot, parse_hub_id

pytest.importorskip("huggingface_hub")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "chat_template.jinja": b"{{ 1 }}",
    "pytorch_model.bin": b"the same weights again",
    "README.md": b"# hello",
}


class _Hub(BaseHTTPRequestHandler):
    """Speaks as much of the hub's protocol as a download needs."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        _Hub.asked.append(self.path)
        match self.path.split("?")[0].strip("/").split("/"):
            case ["api", "models", "org", "gated", *_] | ["org", "gated", *_]:
                self._refuse(403, "GatedRepo")
            case ["api", "models", "org", "broken", *_]:
                self._refuse(400, "")
            case ["api", "models", "org", "model", "revision", revision] if revision not in ("main", COMMIT):
                self._refuse(404, "RevisionNotFound")
            case ["api", "models", "org", "model", "tree", *_]:
                self._json([_listed(name, data) for name, data in FILES.items()])
            case ["api", "models", "org", "model", *_]:
                self._json({"id": "org/model", "sha": COMMIT, "siblings": [{"rfilename": name} for name in FILES]})
            case ["org", "model", "resolve", _, name] if name in FILES:
                self._file(FILES[name])
            case ["org", "model", "resolve", _, _]:
                self._refuse(404, "EntryNotFound")
            case _:
                self._refuse(401, "RepoNotFound")

    do_HEAD = do_GET

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, b"{}", {"X-Error-Code": code, "X-Error-Message": "no"})

    def _json(self, value: object) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _file(self, data: bytes) -> None:
        self._answer(200, data, {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": COMMIT})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


def _listed(name: str, data: bytes) -> dict[str, object]:
    return {"type": "file", "path": name, "size": len(data), "oid": _oid(data)}


def _oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@pytest.fixture
def hub() -> Iterator[str]:
    _Hub.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org/name", HubId(repo="org/name", revision=None)),
        ("Qwen/Qwen2.5-0.5B@v1.0", HubId(repo="Qwen/Qwen2.5-0.5B", revision="v1.0")),
        ("org/name@refs/pr/1", HubId(repo="org/name", revision="refs/pr/1")),
        ("name", None),
        ("a/b/c", None),
        ("org/name@", None),
        ("org/na me", None),
    ],
)
def test_hub_ids(name: str, expected: HubId | None) -> None:
    assert parse_hub_id(name) == expected


def test_a_snapshot_holds_what_a_server_reads_and_no_more(hub: str, tmp_path: Path) -> None:
    folder = fetch_snapshot(HubId(repo="org/model", revision=None), endpoint=hub, hub_cache=tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [
        "chat_template.jinja",
        "config.json",
        "model.safetensors",
    ]
    model = resolve(str(folder), cache_dir=tmp_path / "cache")
    assert model.digest.startswith("sha256:")


def test_the_asked_revision_is_fetched(hub: str, tmp_path: Path) -> None:
    folder = fetch_snapshot(HubId(repo="org/model", revision=COMMIT), endpoint=hub, hub_cache=tmp_path)
    assert folder.name == COMMIT


def test_a_fetched_snapshot_is_found_offline(hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub_id = HubId(repo="org/model", revision=None)
    online_folder = fetch_snapshot(hub_id, endpoint=hub, hub_cache=tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert fetch_snapshot(hub_id, hub_cache=tmp_path) == online_folder


@pytest.mark.parametrize(
    ("hub_id", "error", "words"),
    [
        (HubId(repo="org/gated", revision=None), GatedModelError, "HF_TOKEN"),
        (HubId(repo="org/nothing", revision=None), ModelNotFoundError, "no such public repository"),
        (HubId(repo="org/model", revision="v9"), ModelNotFoundError, "no revision 'v9'"),
        (HubId(repo="org/--name", revision=None), ModelNotFoundError, "not a valid repository name"),
        (HubId(repo="org/broken", revision=None), DownloadError, "the hub answered 400"),
    ],
    ids=["gated", "no repository", "no revision", "invalid name", "any other answer"],
)
def test_the_hubs_refusals_are_translated(
    hub: str, tmp_path: Path, hub_id: HubId, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        fetch_snapshot(hub_id, endpoint=hub, hub_cache=tmp_path)


def test_offline_without_the_files_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(OfflineError, match="Unset HF_HUB_OFFLINE"):
        fetch_snapshot(HubId(repo="org/model", revision=None), hub_cache=tmp_path)


def test_an_unreachable_hub_is_said(tmp_path: Path) -> None:
    with pytest.raises(OfflineError, match="the hub gave no answer"):
        fetch_snapshot(HubId(repo="org/model", revision=None), endpoint="http://127.0.0.1:9", hub_cache=tmp_path)


def test_one_file_is_fetched(hub: str, tmp_path: Path) -> None:
    source = HuggingFaceSource(kind="huggingface", repo="org/model", revision=COMMIT, file="model.safetensors")
    fetch_file(source, tmp_path / "target", partial=tmp_path, endpoint=hub)
    assert (tmp_path / "target").read_bytes() == FILES["model.safetensors"]


def test_a_file_that_the_repository_lacks_is_said(hub: str, tmp_path: Path) -> None:
    source = HuggingFaceSource(kind="huggingface", repo="org/model", revision=COMMIT, file="other.gguf")
    with pytest.raises(ModelNotFoundError, match="lacks the file"):
        fetch_file(source, tmp_path / "target", partial=tmp_path, endpoint=hub)
