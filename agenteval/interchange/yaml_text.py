"""JSON values -> YAML text that the loader reads back equal, with plain words for what people read.

Knows `loading`'s YAML: its core words only, no tags, no anchors.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./(][A-Za-z0-9_.,;/()'-]*)*\Z")
"""Texts that need no quotes in any YAML, unless they are words of its own."""
_WORDS = frozenset("null true false yes no on off y n nan inf".split())
"""Words that some version of YAML reads as something else than a text, in small letters."""
_LINE_WIDTH = 120


def to_yaml(value: Any) -> str:
    """The YAML text of a JSON value, keys in the order given.

    Args:
        value: Of dicts with text keys, lists, texts, finite numbers, booleans and None.
    """
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_LINE_WIDTH, default_flow_style=False
    )


class _Dumper(yaml.CSafeDumper):
    """Without anchors, and with quotes around every text that could be read as something else."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """No value is written as an alias of an equal one, whatever it is."""
        return True


def _text_node(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    if _PLAIN.match(text) and text.lower() not in _WORDS:
        return None
    # What a block cannot show, such as a space before a line's end, libyaml puts in quotes all the same; behind a block
    # that keeps empty lines at its end it closes the document, in the middle of a file that is put together.
    return "|" if "\n" in text and not text.endswith("\n\n") and text.strip("\n") else '"'


_Dumper.add_representer(str, _text_node)
