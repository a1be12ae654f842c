"""A suite of one or two tools and one task, and what `check` finds odd in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agenteval.lint import inspect_suite

HEAD: dict[str, Any] = {
    "name": "demo",
    "description": "A suite.",
    "agent": {
        "system_prompt": "Help.",
        "tool_choice": "required",
        "max_turns": 4,
        "max_tokens": 10,
        "parallel_tool_calls": False,
        "finish_tool": "finish",
    },
}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"item": {"type": "string", "enum": ["lamp", "mug"]}},
    "additionalProperties": False,
}
SHIP: dict[str, Any] = {
    "name": "ship",
    "description": "Ships.",
    "parameters": PARAMETERS,
    "cases": [{"when": "world.stock == 0", "error": "none left"}],
    "default": {"returns": "${args.item}", "effects": [{"op": "replace", "path": "/stock", "value": 0}]},
}
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object"},
    "default": {"returns": "${world.stock}"},
}
SHIPPED = {"kind": "called", "tool": "ship", "arguments": {"item": "lamp"}}
TASK: dict[str, Any] = {
    "name": "send",
    "prompt": "Ship a lamp.",
    "tools": ["ship"],
    "world": {"stock": 1},
    "checks": [SHIPPED],
}


def oddities(folder: Path, *, head: Any = HEAD, suite_tools: Any = (SHIP,), **task: Any) -> list[tuple[str, str]]:
    """(key, message) of every warning about a suite of these tools and one task with these fields."""
    content = {"tools": list(suite_tools), "tasks": [{**TASK, **task}]}
    (folder / "suite.yaml").write_text(json.dumps(head), encoding="utf-8")
    (folder / "a.yaml").write_text(json.dumps(content, indent=1), encoding="utf-8")
    return [(warning.key, warning.message) for warning in inspect_suite(folder).warnings]


def cases(*given: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A suite whose tool has these cases."""
    return {"suite_tools": [{**SHIP, "cases": given, **fields}]}


def fault(**fields: Any) -> dict[str, Any]:
    """A task with this fault of its tool."""
    return {"faults": [{"kind": "malformed", "tool": "ship", **fields}]}


def also_checks(**fields: Any) -> dict[str, Any]:
    """A task with this check behind one that can fail and pass."""
    return {"checks": [SHIPPED, fields]}


def only_looks(**fields: Any) -> dict[str, Any]:
    """A task whose tool changes nothing."""
    return {"suite_tools": [LOOK], "tools": ["look"], "checks": [{"kind": "called", "tool": "look"}], **fields}


MUG = {"match": {"item": "mug"}, "returns": 1}
