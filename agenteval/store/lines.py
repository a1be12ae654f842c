"""A record as a line of a journal, and back."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from typing import Any

from agenteval.records import Boot, BootEnd, Divergence, Episode, Evidence, Grade, Run, RunEnd, TaskRecord, Turn

Row = dict[str, Any]
Record = Run | RunEnd | TaskRecord | Boot | BootEnd | Episode | Turn | Grade | Evidence | Divergence
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Run, RunEnd, TaskRecord, Boot, BootEnd, Episode, Turn, Grade, Evidence, Divergence)
}
"""Every kind of line that a journal holds, besides its first."""
LATER: dict[str, Row] = {"Divergence": {"cause_kind": None}}
"""Fields that a kind has got since the first version, as an older runner's lines have them."""
DAMAGE = (ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""What reading a line that is no record raises."""


def fields_of(record: Any) -> Row:
    """A record's fields, one level deep; nested records become mappings."""
    return {item.name: _plain(getattr(record, item.name)) for item in dataclasses.fields(record)}


def to_line(record: Record) -> str:
    """A record as one line of a journal.

    Raises:
        ValueError: If it holds NaN or an infinity, which JSON has not.
        TypeError: If it holds what is not JSON.
    """
    fields = {"record": type(record).__name__, **fields_of(record)}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def parse_line(text: bytes) -> Row:
    """A line of a journal, with every field of its record; raises one of `DAMAGE` where it is none."""
    line: Row = json.loads(text)
    if line["record"] == "Journal":
        return line
    if b"\\ud" in text:
        line = _without_surrogates(line)
    line = {**LATER.get(line["record"], {}), **line}
    names = [item.name for item in dataclasses.fields(KINDS[line["record"]])]
    return with_moments({name: line[name] for name in ("record", *names)})


def with_moments(line: Row) -> Row:
    """A parsed line with its moments as aware datetimes."""
    return {
        key: datetime.fromisoformat(value) if key.endswith("_at") and isinstance(value, str) else value
        for key, value in line.items()
    }


def _without_surrogates(value: Any) -> Any:
    """Half a surrogate pair, which a model can write in a JSON escape, has no UTF-8: it becomes that escape's text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return fields_of(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        return [fields_of(item) for item in value]
    return value
