"""The base of every model that people write."""

from __future__ import annotations

from typing import Annotated, TypeVar

import pydantic


class Frozen(pydantic.BaseModel):
    """Base of every model that people write: immutable, and unknown keys are refused."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


FrozenT = TypeVar("FrozenT", bound=Frozen)
ItemT = TypeVar("ItemT")
Many = Annotated[tuple[ItemT, ...], pydantic.Strict(False)]
"""Items in order: a list in a file, a list or a tuple in Python."""
