"""A model's name -> a verified local folder: the one door that the rest of agenteval uses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from agenteval.models.cache import cache_folder, folder_bytes
from agenteval.models.catalogue import CatalogueEntry, catalogue
from agenteval.models.errors import ModelFolderError, ModelNotFoundError
from agenteval.models.folder_digest import WEIGHT_PATTERNS, digest_folder
from agenteval.models.hub import fetch_snapshot, parse_hub_id
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
    folder = Path(name).expanduser().absolute()
    if not folder.is_dir():
        raise ModelNotFoundError(name, reason="there is no such folder", advice="Check the path.")
    return _served(name, folder, cache=cache_folder(cache_dir))


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
