"""A suite in which every form of input has something to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval.play import PlaySession
from agenteval.spec import load_suite

CLOCK = "2026-01-15T09:00:00Z"
HEAD = """
name: kitchen
description: Tools of every sort.
agent:
  system_prompt: You cook.
  tool_choice: required
  max_turns: 5
  max_tokens: 64
  parallel_tool_calls: true
  finish_tool: {finish}
"""
TOOLS = """
tools:
  - name: put
    description: Put something on a shelf. Nothing else.
    parameters:
      type: object
      properties: {shelf: {type: string}, thing: {}, units: {type: integer, minimum: 1}}
      required: [shelf]
      additionalProperties: false
    cases:
      - when: "args.shelf == 'top'"
        error: "the top shelf is out of reach"
    default:
      returns: {on: "${args.shelf}"}
      effects:
        - {op: add, path: "/shelves/${args.shelf}", value: "${args}"}
        - {op: add, path: /log/-, value: "${args.shelf}"}
  - name: bake
    description: Bake for an hour.
    parameters: {type: object}
    default: {returns: baked, latency_s: 3600}
  - name: world
    description: A tool that has the name of a command.
    parameters: {type: object}
    default: {returns: round}
  - name: break
    description: A mock that cannot answer.
    parameters: {type: object}
    default: {returns: "${world.absent}"}
"""
TASK = """
tasks:
  - name: cook
    prompt: Cook.
    tools: [put, bake, world, break]
"""
WORLD = """
    world: {shelves: {}, log: [first]}
"""
CHECKS = """
    checks:
      - {kind: together, tools: [put, bake], weight: 3}
      - {kind: answer, contains: [ready]}
"""

Play = Callable[..., PlaySession]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Opens the task with what is put behind it."""

    def opened(more: str = CHECKS, *, finish: str = "finish") -> PlaySession:
        (tmp_path / "suite.yaml").write_text(HEAD.replace("{finish}", finish))
        (tmp_path / "kitchen.yaml").write_text(TOOLS + TASK + ("" if "world:\n" in more else WORLD) + more)
        return PlaySession(load_suite(tmp_path).variants[0], clock=CLOCK)

    return opened
