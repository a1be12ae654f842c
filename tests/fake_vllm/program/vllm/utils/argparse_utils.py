"""vLLM's parser: argparse, but underscores in an option's name are as good as dashes."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any


class FlexibleArgumentParser(argparse.ArgumentParser):
    """An ArgumentParser that also takes `--max_num_seqs 1`."""

    def __init__(self, *args: Any, add_json_tip: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """Parse, or leave with status 2 and a message, as argparse does."""
        words = sys.argv[1:] if args is None else args
        return super().parse_args([self._dashed(word) for word in words], namespace)

    @staticmethod
    def _dashed(word: str) -> str:
        name, equals, value = word.partition("=")
        return name.replace("_", "-") + equals + value if name.startswith("--") else word


def human_readable_int(value: str) -> int:
    """An integer, or one with a suffix: 1k is 1000, 1K is 1024."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)([kKmMgGtT]?)", value)
    if match is None:
        raise argparse.ArgumentTypeError(f"Invalid value: {value!r}")
    number, suffix = match.groups()
    power = " kmgt".index(suffix.lower()) if suffix else 0
    return int(float(number) * (1024 if suffix.isupper() else 1000) ** power)
