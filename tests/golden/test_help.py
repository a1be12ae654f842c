"""The command line as people read it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest
from golden_files import check_golden

from agenteval.cli.parser import build_parser


def commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A command and all below it."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from commands(inner, f"{name} {word}")


ALL = dict(commands(build_parser(), "agenteval"))


@pytest.mark.parametrize("name", list(ALL))
def test_help(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    check_golden(f"help/{name.replace(' ', '-')}.txt", ALL[name].format_help())


def test_every_command_names_a_function_that_exists() -> None:
    from agenteval.cli.main import _load

    leaves = [parser for parser in ALL.values() if parser._subparsers is None]
    assert len(leaves) >= 10
    assert all(callable(_load(parser.get_default("command"))) for parser in leaves)
