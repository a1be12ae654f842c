"""Canonical JSON and content hashes: equal content, equal digest, on every machine.

Knows JSON values and bytes; must not know what they mean.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

PREFIX = "sha256:"


def canonical_json(value: Any) -> str:
    """The one text of a JSON value: keys sorted, no blanks, no NaN, text left unescaped.

    Raises:
        ValueError: If the value holds NaN or an infinity.
        TypeError: If it holds something that is not JSON.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def compact_json(value: Any) -> str:
    """A JSON value as text with its keys in the order that they have: no blanks, no NaN, text left unescaped.

    Raises:
        ValueError: If the value holds NaN or an infinity.
        TypeError: If it holds something that is not JSON.
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_bytes(content: bytes) -> str:
    """SHA-256 of bytes, as `sha256:<64 hex digits>`."""
    return PREFIX + hashlib.sha256(content).hexdigest()


def digest_json(value: Any) -> str:
    """SHA-256 of a JSON value's canonical text; independent of key order and layout."""
    return digest_bytes(canonical_json(value).encode("utf-8", errors="surrogatepass"))


def is_digest(text: str) -> bool:
    """Whether a text is a digest; what stands in its place, such as `unknown`, is none."""
    return text.startswith(PREFIX)


def derive_seed(*parts: str | int) -> int:
    """A seed in [0, 2**31) that depends on every part and on nothing else.

    vLLM accepts signed 64-bit seeds; 31 bits also fit every client's integer type.
    """
    hexdigits = digest_json(list(parts)).removeprefix(PREFIX)
    return int(hexdigits[:16], 16) % 2**31
