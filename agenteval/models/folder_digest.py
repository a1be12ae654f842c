"""The content hash of a model folder: what a contract means by "the same model".

Knows which files decide what a model answers; knows nothing of where they came from.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from agenteval.digest import digest_json
from agenteval.files import write_whole
from agenteval.models.cache import cache_folder
from agenteval.models.errors import ModelFolderError

WEIGHT_PATTERNS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf")
"""Names of files that hold weights."""
FILE_PATTERNS = (
    *WEIGHT_PATTERNS,
    "*.json",
    "*.jinja",
    "*.model",
    "*.tiktoken",
    "merges.txt",
    "vocab.txt",
    "*.py",
)
"""Names of the files that can change an answer: weights, config, tokenizer, chat template, remote code.

Texts about the model (README, LICENSE) and hidden files (.git, .cache) are left out.
"""
REMEMBER_FROM_BYTES = 1 << 20
"""Smaller files are hashed every time: it costs milliseconds, and config and template are the ones edited."""
SETTLE_S = 2.0
"""A file changed this recently is not remembered: coarse file clocks could hide a second change."""
REMEMBER_AT_MOST = 4096
"""Files remembered; the oldest entries go first."""
MEMORY_NAME = "digests.json"


def digest_folder(folder: Path, *, cache_dir: Path | None = None) -> str:
    """Hash a model's content, independent of the folder's name, its place and all file times.

    Large files are hashed once, then recognised by device, inode, size and the times of their last change.

    Args:
        folder: The folder that a server would load.
        cache_dir: Where to remember hashes; the default cache if None.

    Returns:
        "sha256:<hex>" of the canonical JSON {relative path: sha256 of the file}.

    Raises:
        ModelFolderError: If the folder is missing or holds no file of a model.
    """
    files = model_files(folder)
    if not files:
        raise ModelFolderError(folder, reason="it holds no weights, config or tokenizer")
    memory_path = cache_folder(cache_dir) / MEMORY_NAME
    known = _recall(memory_path)
    fresh: dict[str, str] = {}
    hashes = {}
    for relative, path in files.items():
        identity = _identity(path)
        if identity not in known:
            known[identity] = fresh[identity] = _hash_file(path)
            if not _is_settled(path, identity):
                del fresh[identity]
        hashes[relative] = known[identity]
    if fresh:
        _remember(memory_path, fresh)
    return digest_json(hashes)


def model_files(folder: Path) -> dict[str, Path]:
    """Files that the digest covers, by path relative to the folder with forward slashes.

    Links to files are followed (the Hugging Face cache is made of them); hidden folders are not entered.
    """
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in names:
            if not name.startswith(".") and any(fnmatch.fnmatchcase(name, pattern) for pattern in FILE_PATTERNS):
                path = Path(parent, name)
                found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items()))


def _identity(path: Path) -> str:
    facts = path.stat()
    return f"{facts.st_dev}:{facts.st_ino}:{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ctime_ns}"


def _is_settled(path: Path, identity: str) -> bool:
    """Whether the file is worth remembering, and was not written to while it was hashed."""
    facts = path.stat()
    age_s = time.time() - max(facts.st_mtime, facts.st_ctime)
    return facts.st_size >= REMEMBER_FROM_BYTES and age_s > SETTLE_S and _identity(path) == identity


def _hash_file(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _recall(memory_path: Path) -> dict[str, str]:
    """Remembered hashes by file identity; a missing or damaged memory only costs hashing again."""
    try:
        memory = json.loads(memory_path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(memory, dict):
        return {}
    return {
        identity: digest
        for identity, digest in memory.items()
        if isinstance(digest, str) and len(digest) == hashlib.sha256().digest_size * 2
    }


def _remember(memory_path: Path, fresh: dict[str, str]) -> None:
    """Add hashes; of two writers at once one may lose its entries, which costs it hashing again."""
    kept = {**_recall(memory_path), **fresh}
    newest = dict(list(kept.items())[-REMEMBER_AT_MOST:])
    # A read-only or full cache disk must not stop a run: the digest itself is already known.
    with suppress(OSError):
        write_whole(memory_path, json.dumps(newest, indent=0))
