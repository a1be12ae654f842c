"""The options of the server, by name and kind, from the table in flags.txt."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from vllm.utils.argparse_utils import FlexibleArgumentParser, human_readable_int

_FLAGS = Path(__file__).resolve().parents[2] / "flags.txt"
_TYPES: dict[str, Any] = {"int": int, "float": float, "size": human_readable_int, "text": str}
DEFAULTS: dict[str, Any] = {
    "--model": "Qwen/Qwen3-0.6B",
    "--port": 8000,
    "--seed": 0,
    "--dtype": "auto",
    "--max-logprobs": 20,
    "--generation-config": "auto",
    "--kv-cache-dtype": "auto",
}


def make_arg_parser(parser: FlexibleArgumentParser) -> FlexibleArgumentParser:
    """Add the server's options to a parser and return it."""
    parser.add_argument("model_tag", nargs="?")
    for line in _FLAGS.read_text().splitlines():
        if not line.startswith("#"):
            names, kind = line.split(" ", 1)
            parser.add_argument(*names.split(","), **_options(names.split(",")[0], kind))
    return parser


def _options(name: str, kind: str) -> dict[str, Any]:
    options: dict[str, Any] = {"default": DEFAULTS.get(name)}
    if kind == "switch":
        return options | {"action": argparse.BooleanOptionalAction}
    if kind == "flag":
        return {"action": "store_true"}
    if kind.endswith("+"):
        options["nargs"] = "+"
    kind = kind.removesuffix("+")
    if kind.startswith("one-of:"):
        return options | {"choices": kind.removeprefix("one-of:").split(",")}
    return options | {"type": _TYPES[kind]}
