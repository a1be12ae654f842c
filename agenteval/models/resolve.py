"""A model's name -> a verified local folder: the one door that the rest of agenteval uses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agenteval.models.cache import cache_folder, folder_bytes
from agenteval.models.catalogue import CatalogueEntry, catalogue
from agenteval.models.errors import ModelFolderError, ModelNotFoundError
from agenteval.models.folder_digest import WEIGHT_PATTERNS, digest_folder
from agenteval.models.hub import cached_snapshot, fetch_snapshot, parse_hub_id
from agenteval.models.progress import Progress, no_progress
from agenteval.models.pull import Machine, entry_folder, pull_entry, require_pinned
from agenteval.records import Model
from agenteval.words import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A catalogue entry and what this machine has of it."""

    entry: CatalogueEntry
    folder: Path | None
    """Finished folder, or None if it has not been pulled."""
    size_bytes: int
    """Size of the folder, on disk if pulled, else as expected."""
    digest: str | None
    """Measured digest, or None if not pulled; compare with `entry.digest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenModel:
    """What this machine has of a model, at a glance: nothing was hashed."""

    name: str
    origin: Literal["catalogue", "hub", "folder"]
    """What the name stands for; a folder of the user's own cannot be fetched."""
    folder: Path | None
    """Where it lies, whole or not; None if it would have to be fetched."""
    size_bytes: int | None
    """Size of the folder, or as the catalogue expects it; None if that shows only when it is fetched."""
    fetch_bytes: int
    """Largest amount of disk used at once while fetching it; 0 if it is here or nobody knows."""
    lack: str | None
    """What keeps a server from loading the folder."""
    tool_call_parser: str | None
    """vLLM's parser for its tool calls; None if not known."""
    pinned_digest: str | None
    """The only digest that the catalogue accepts."""


def resolve(name: str, *, cache_dir: Path | None = None, progress: Progress | None = None) -> Model:
    """Find a model by name, download it if needed, and verify it.

    A catalogue name always means the catalogue's model, so that a folder that happens to be called the same
    cannot change a result; write `./name` for the folder.

    Args:
        name: A folder, a Hugging Face id `organisation/name[@revision]`, or a catalogue name.
        cache_dir: Cache; the default one if None.
        progress: Told what is happening; nobody if None.

    Raises:
        ModelNotFoundError: If the name stands for nothing.
        ModelFolderError: If the folder cannot be served.
        ModelDigestError: If the content is not the pinned one.
        DownloadError: If it cannot be fetched.
        GgufError: If the source file of a catalogue entry cannot be converted.
        DiskFullError: If there is too little disk.
        CacheUnwritableError: If the cache cannot be written.
    """
    entry = _entry(name)
    if entry is None and _is_folder_name(name):
        return _local_model(name, cache_dir=cache_dir)
    return pull(name, cache_dir=cache_dir, progress=progress)


def pull(name: str, *, cache_dir: Path | None = None, progress: Progress | None = None) -> Model:
    """Download a catalogue entry or a Hugging Face id unless it is here, and verify it.

    Args:
        name: A catalogue name, or `organisation/name[@revision]`.
        cache_dir: Cache; the default one if None.
        progress: Told what is happening; nobody if None.

    Raises:
        ModelNotFoundError: If the name stands for nothing that can be pulled.
        ModelFolderError: If the repository holds no model that can be served.
        ModelDigestError: If the content is not the pinned one.
        DownloadError: If it cannot be fetched.
        GgufError: If the source file of a catalogue entry cannot be converted.
        DiskFullError: If there is too little disk.
        CacheUnwritableError: If the cache cannot be written.
    """
    report = progress or no_progress
    cache = cache_folder(cache_dir)
    if (entry := _entry(name)) is not None:
        folder = pull_entry(entry, cache=cache, progress=report, machine=Machine())
        digest = require_pinned(entry, folder, cache=cache)
        return Model(name=name, folder=folder, digest=digest, tool_call_parser=entry.tool_call_parser)
    if (hub_id := parse_hub_id(name)) is None:
        raise _unknown(name)
    report(f"download {hub_id.repo} from Hugging Face", 0, 1)
    folder = fetch_snapshot(hub_id)
    report(f"download {hub_id.repo} from Hugging Face", 1, 1)
    return _served(name, folder, cache=cache)


def look(name: str, *, cache_dir: Path | None = None) -> SeenModel:
    """What `resolve` would find here; fetches, hashes and writes nothing.

    Args:
        name: As `resolve` takes it.
        cache_dir: Cache; the default one if None.

    Raises:
        ModelNotFoundError: If the name stands for nothing.
    """
    if (entry := _entry(name)) is not None:
        return _seen_entry(entry, cache_folder(cache_dir))
    if _is_folder_name(name):
        return _seen_folder(name, "folder", _existing_folder(name))
    if (hub_id := parse_hub_id(name)) is None:
        raise _unknown(name)
    return _seen_folder(name, "hub", cached_snapshot(hub_id))


def list_models(*, cache_dir: Path | None = None) -> tuple[ListedModel, ...]:
    """Every catalogue entry, with what this machine has of it.

    Args:
        cache_dir: Cache; the default one if None.
    """
    cache = cache_folder(cache_dir)
    return tuple(_listed(entry, cache) for entry in catalogue())


def _entry(name: str) -> CatalogueEntry | None:
    return next((entry for entry in catalogue() if entry.name == name), None)


def _is_folder_name(name: str) -> bool:
    if not name:
        return False
    return name.startswith(("/", "./", "../", "~")) or name in (".", "..") or Path(name).is_dir()


def _local_model(name: str, *, cache_dir: Path | None) -> Model:
    return _served(name, _existing_folder(name), cache=cache_folder(cache_dir))


def _existing_folder(name: str) -> Path:
    folder = Path(name).expanduser().absolute()
    if not folder.is_dir():
        raise ModelNotFoundError(name, reason="there is no such folder", advice="Check the path.")
    return folder


def _seen_entry(entry: CatalogueEntry, cache: Path) -> SeenModel:
    folder = entry_folder(entry, cache)
    is_here = folder.is_dir()
    size_bytes = folder_bytes(folder) if is_here else entry.folder_bytes
    lack = _seen_lack(folder) if is_here else None
    if lack is None and size_bytes < entry.folder_bytes:
        lack = f"it has {size_bytes} bytes, and {entry.folder_bytes} are expected"
    return SeenModel(
        name=entry.name,
        origin="catalogue",
        folder=folder if is_here else None,
        size_bytes=size_bytes,
        fetch_bytes=0 if is_here else entry.peak_disk_bytes,
        lack=lack,
        tool_call_parser=entry.tool_call_parser,
        pinned_digest=entry.digest,
    )


def _seen_folder(name: str, origin: Literal["hub", "folder"], folder: Path | None) -> SeenModel:
    return SeenModel(
        name=name,
        origin=origin,
        folder=folder,
        size_bytes=None if folder is None else folder_bytes(folder),
        fetch_bytes=0,
        lack=None if folder is None else _seen_lack(folder),
        tool_call_parser=None if folder is None else _tool_call_parser(folder),
        pinned_digest=None,
    )


def _seen_lack(folder: Path) -> str | None:
    try:
        return _lack(folder)
    except ModelFolderError as error:
        return error.reason


def _served(name: str, folder: Path, *, cache: Path) -> Model:
    if (lack := _lack(folder)) is not None:
        raise ModelFolderError(folder, reason=lack)
    digest = digest_folder(folder, cache_dir=cache)
    return Model(name=name, folder=folder, digest=digest, tool_call_parser=_tool_call_parser(folder))


def _tool_call_parser(folder: Path) -> str | None:
    """The parser for the calls that the chat template teaches: Hermes writes them in <tool_call> tags."""
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        file = folder / name
        if file.is_file() and "<tool_call>" in file.read_text(encoding="utf-8", errors="replace"):
            return "hermes"
    return None


def _lack(folder: Path) -> str | None:
    """What keeps a server from loading the folder, if anything; a broken download may lack a shard."""
    if not (folder / "config.json").is_file():
        return "it has no config.json"
    if not any(next(folder.glob(pattern), None) for pattern in WEIGHT_PATTERNS):
        return "it holds no weights"
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        missing = sorted(name for name in _shards(index) if not (folder / name).is_file())
        if missing:
            return f"it lacks {len(missing)} of its weight files, the first being {missing[0]}"
    return None


def _shards(index: Path) -> set[str]:
    try:
        return set(json.loads(index.read_bytes())["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFolderError(index.parent, reason=f"{index.name} is damaged ({error!r})") from error


def _listed(entry: CatalogueEntry, cache: Path) -> ListedModel:
    folder = entry_folder(entry, cache)
    if not folder.is_dir():
        return ListedModel(entry=entry, folder=None, size_bytes=entry.folder_bytes, digest=None)
    digest = digest_folder(folder, cache_dir=cache)
    return ListedModel(entry=entry, folder=folder, size_bytes=folder_bytes(folder), digest=digest)


def _unknown(name: str) -> ModelNotFoundError:
    known = [entry.name for entry in catalogue()]
    meant = nearest(name, known) or " Name one of these, a folder, or a model on Hugging Face."
    return ModelNotFoundError(
        name,
        reason="it is no folder, no Hugging Face id (organisation/name) and not in the catalogue",
        advice=f"Known by name: {', '.join(known)}.{meant}",
    )
