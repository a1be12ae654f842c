"""Hugging Face as a source: its downloads, and its exceptions translated once.

The only importer of huggingface_hub, which is loaded late: most commands never need it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agenteval.models.cache import DISK_ERRNOS, disk_errors_translated
from agenteval.models.catalogue import HuggingFaceSource
from agenteval.models.errors import (
    DownloadError,
    GatedModelError,
    ModelNotFoundError,
    OfflineError,
)

SERVED_PATTERNS = (
    "*.safetensors",
    "*.json",
    "*.jinja",
    "*.model",
    "*.tiktoken",
    "merges.txt",
    "vocab.txt",
)
"""Files that vLLM reads; other formats of the same weights would double the download."""
_HUB_NAME = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?", flags=re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubId:
    """A repository on Hugging Face, at a revision."""

    repo: str
    """`organisation/name`."""
    revision: str | None
    """Commit, tag or branch; None is the default branch, which may move."""


def parse_hub_id(name: str) -> HubId | None:
    """Read `organisation/name[@revision]`, or return None if the name has another form."""
    match = _HUB_NAME.fullmatch(name)
    return None if match is None else HubId(repo=match["repo"], revision=match["revision"])


def fetch_snapshot(hub_id: HubId, *, endpoint: str | None = None, hub_cache: Path | None = None) -> Path:
    """Download what vLLM needs of a repository into Hugging Face's own cache, and return the folder.

    That cache, not agenteval's, because other tools on the machine share it.

    Args:
        hub_id: Repository and revision.
        endpoint: Another hub, a mirror for instance; None is the one that HF_ENDPOINT names.
        hub_cache: Another cache; None is the one that HF_HUB_CACHE names.

    Raises:
        ModelNotFoundError: If there is no such repository or revision.
        GatedModelError: If access needs an account.
        OfflineError: If the hub cannot be reached and the files are not here.
        DownloadError: If the hub answers with any other error.
        DiskFullError: If the disk of Hugging Face's cache fills up.
        CacheUnwritableError: If that cache cannot be written.
    """
    from huggingface_hub import snapshot_download

    with _translated(hub_id):
        folder = snapshot_download(
            hub_id.repo,
            revision=hub_id.revision,
            allow_patterns=list(SERVED_PATTERNS),
            endpoint=endpoint,
            cache_dir=hub_cache,
        )
    return Path(folder)


def cached_snapshot(hub_id: HubId, *, hub_cache: Path | None = None) -> Path | None:
    """The folder of a repository in Hugging Face's cache, complete or not; asks no hub and writes nothing.

    Args:
        hub_id: Repository and revision.
        hub_cache: Another cache; None is the one that HF_HUB_CACHE names.

    Raises:
        ModelNotFoundError: If it is no name that a repository can have.
    """
    from huggingface_hub import try_to_load_from_cache

    with _translated(hub_id):
        found = try_to_load_from_cache(hub_id.repo, "config.json", revision=hub_id.revision, cache_dir=hub_cache)
    return Path(found).parent if isinstance(found, str) else None


def fetch_file(source: HuggingFaceSource, target: Path, *, partial: Path, endpoint: str | None = None) -> None:
    """Download one file of a repository to `target`; a broken download resumes.

    Args:
        source: Repository, revision and file.
        target: File to write.
        partial: Folder that survives a failed pull.
        endpoint: Another hub; None is the one that HF_ENDPOINT names.

    Raises:
        ModelNotFoundError: If there is no such repository, revision or file.
        DownloadError: If the file cannot be had for another reason.
        DiskFullError: If the disk fills up.
        CacheUnwritableError: If the place cannot be written.
    """
    from huggingface_hub import hf_hub_download

    with _translated(HubId(repo=source.repo, revision=source.revision)):
        path = hf_hub_download(
            source.repo,
            source.file,
            revision=source.revision,
            local_dir=partial / "hub",
            endpoint=endpoint,
        )
    shutil.move(path, target)


@contextmanager
def _translated(hub_id: HubId) -> Iterator[None]:
    from huggingface_hub import constants, errors

    with disk_errors_translated(Path(constants.HF_HUB_CACHE)):
        try:
            yield
        except errors.GatedRepoError as error:
            raise GatedModelError(hub_id.repo) from error
        except errors.RevisionNotFoundError as error:
            raise _not_found(hub_id, reason=f"the repository has no revision {hub_id.revision!r}") from error
        except errors.RepositoryNotFoundError as error:
            raise _not_found(hub_id, reason="Hugging Face has no such public repository") from error
        except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
            if isinstance(error.__cause__, errors.HfHubHTTPError):
                raise _refused(hub_id, error.__cause__) from error
            raise OfflineError(hub_id.repo, cause=_first_line(error.__cause__ or error)) from error
        except errors.EntryNotFoundError as error:
            raise _not_found(hub_id, reason="the repository lacks the file") from error
        except errors.HFValidationError as error:
            raise _not_found(hub_id, reason="it is not a valid repository name") from error
        except _transport_errors() as error:
            if isinstance(error, OSError) and error.errno in DISK_ERRNOS:
                raise
            raise _refused(hub_id, error) from error


def _first_line(error: BaseException) -> str:
    """The hub's errors go on for a paragraph of links."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _transport_errors() -> tuple[type[Exception], ...]:
    """OSError and the root of the transport's errors; the transport depends on huggingface_hub's release."""
    from huggingface_hub.errors import HfHubHTTPError

    return tuple(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception))


def _refused(hub_id: HubId, error: Exception) -> DownloadError:
    status = getattr(getattr(error, "response", None), "status_code", None)
    answer = "" if status is None else f"the hub answered {status}: "
    return DownloadError(hub_id.repo, reason=answer + _first_line(error), advice="Pull again later; what came is kept.")


def _not_found(hub_id: HubId, *, reason: str) -> ModelNotFoundError:
    name = hub_id.repo if hub_id.revision is None else f"{hub_id.repo}@{hub_id.revision}"
    return ModelNotFoundError(
        name, reason=reason, advice="Check the spelling; a private repository also needs HF_TOKEN."
    )
