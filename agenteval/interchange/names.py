"""Any text -> a name that the task language accepts, recognizable and unique."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

from agenteval.digest import PREFIX, digest_json
from agenteval.spec.templates import MAX_NAME_CHARACTERS

_DIGEST_CHARACTERS = 8


def fitting_name(text: str, *, prefix: str, taken: Container[str] = ()) -> str:
    """A name as close to a text as the task language allows; the text itself where it is one that is free.

    Accents are taken off, letters of other scripts left out, and whatever else no name can have becomes a dash.

    Args:
        text: An id or name of any kind.
        prefix: Put in front where the text does not start with a letter.
        taken: Names that are given already.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-zA-Z0-9_-]+", "-", plain).strip("-_")
    name = words if words[:1].isalpha() else f"{prefix}-{words}".rstrip("-")
    if len(name) <= MAX_NAME_CHARACTERS and name not in taken:
        return name
    # Digests differ where the readable part has been cut or is another's.
    number = 0
    while True:
        ending = digest_json([text, number]).removeprefix(PREFIX)[:_DIGEST_CHARACTERS]
        number += 1
        shortened = f"{name[: MAX_NAME_CHARACTERS - len(ending) - 1].rstrip('-_')}-{ending}"
        if shortened not in taken:
            return shortened
