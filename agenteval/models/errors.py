"""What can go wrong between a model's name and a verified folder; knows facts and advice, no causes' code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agenteval.errors import ModelError, sentence


class ModelNotFoundError(ModelError):
    """No folder, catalogue entry or repository goes by this name."""

    def __init__(self, name: str, *, reason: str, advice: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"Model {name!r} was not found: {sentence(reason)} {advice}")


class ModelFolderError(ModelError):
    """A folder lacks what a server needs to load it."""

    def __init__(self, folder: Path, *, reason: str) -> None:
        self.folder, self.reason = folder, reason
        super().__init__(
            f"{folder} cannot be served: {sentence(reason)} Name a folder that holds config.json and the weights "
            "as save_pretrained() writes them."
        )


class ModelDigestError(ModelError):
    """The bytes in a folder or a download are not the pinned ones."""

    def __init__(self, what: str, *, expected: str, actual: str, advice: str) -> None:
        self.what, self.expected, self.actual = what, expected, actual
        super().__init__(f"{what} has digest {actual}, but {expected} is pinned. {advice}")


class DownloadError(ModelError):
    """A source did not deliver."""

    def __init__(self, what: str, *, reason: str, advice: str) -> None:
        self.what, self.reason = what, reason
        super().__init__(f"Could not download {what}: {sentence(reason)} {advice}")


class AllSourcesFailedError(DownloadError):
    """Every source of a catalogue entry was tried, and none delivered."""

    def __init__(self, name: str, *, failures: Sequence[ModelError]) -> None:
        self.name, self.failures = name, tuple(failures)
        reasons = "".join(f"\n  {number}. {failure}" for number, failure in enumerate(failures, start=1))
        super().__init__(
            f"model {name!r}",
            reason=f"none of its {len(self.failures)} sources delivered:{reasons}\n",
            advice="Mend one of these and pull again; what was already fetched is kept.",
        )


class GatedModelError(DownloadError):
    """The repository asks for a licence to be accepted, or for a token."""

    def __init__(self, repo: str) -> None:
        self.repo = repo
        super().__init__(
            repo,
            reason="Hugging Face refuses access without an account that has accepted the model's terms",
            advice="Accept them on the model's page, then set HF_TOKEN or run `hf auth login`.",
        )


class OfflineError(DownloadError):
    """The files are not on this machine and the network must not or cannot be used."""

    def __init__(self, repo: str, *, cause: str) -> None:
        self.repo, self.cause = repo, cause
        super().__init__(
            repo,
            reason=f"it is not complete in the Hugging Face cache, and the hub gave no answer ({cause})",
            advice="Unset HF_HUB_OFFLINE and check the network, or name a local folder.",
        )


class PipMissingError(DownloadError):
    """This interpreter has no pip, which fetches wheels from the package index that the machine uses."""

    def __init__(self, what: str, *, python: str) -> None:
        self.python = python
        super().__init__(
            what,
            reason=f"{python} has no pip (virtual environments made by uv come without it)",
            advice=f"Run `{python} -m ensurepip` or `uv pip install pip`, then pull again.",
        )


class DiskFullError(ModelError):
    """The disk has, or had, too little room."""

    def __init__(self, folder: Path, *, needed_bytes: int | None, free_bytes: int) -> None:
        self.folder, self.needed_bytes, self.free_bytes = folder, needed_bytes, free_bytes
        needed = "the disk filled up" if needed_bytes is None else f"{_gigabytes(needed_bytes)} are needed"
        super().__init__(
            f"Too little disk at {folder}: {needed}, {_gigabytes(free_bytes)} are free. "
            "Free some room or point AGENTEVAL_CACHE (for Hugging Face ids: HF_HOME) at a larger disk, "
            "then pull again; what was already fetched is kept."
        )


class CacheUnwritableError(ModelError):
    """The cache folder cannot be written."""

    def __init__(self, folder: Path, *, reason: str) -> None:
        self.folder, self.reason = folder, reason
        super().__init__(
            f"Cannot write the cache {folder}: {sentence(reason)} Point AGENTEVAL_CACHE at a writable folder."
        )


class GgufError(ModelError):
    """A GGUF file cannot be turned into a folder."""

    def __init__(self, path: Path, *, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"{path.name} cannot be converted: {sentence(reason)} Use a Qwen2 GGUF with a byte-level BPE tokenizer, "
            "or convert it elsewhere and name the folder."
        )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
