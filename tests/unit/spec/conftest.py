"""Suite folders made of what their YAML says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import FileProblemsError
from agenteval.spec import Suite, TaskVariant, load_suite

HEAD: dict[str, Any] = {
    "name": "demo",
    "description": "A suite.",
    "agent": {
        "system_prompt": "Help.",
        "tool_choice": "required",
        "max_turns": 4,
        "max_tokens": 64,
        "parallel_tool_calls": False,
        "finish_tool": "finish",
    },
}
TOOL: dict[str, Any] = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
TASK: dict[str, Any] = {
    "name": "find",
    "prompt": "Find it.",
    "tools": ["look"],
    "checks": [{"kind": "answer", "contains": ["x"]}],
}


def write(folder: Path, head: Any = HEAD, **files: Any) -> Path:
    """A suite folder; each file is given as text, or as what its YAML says."""
    for name, content in {"suite": head, **files}.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1, ensure_ascii=False)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def load(folder: Path, *, tool: dict[str, Any] | None = None, task: dict[str, Any] | None = None) -> Suite:
    """A suite of one tool and one task, with the given fields changed."""
    return load_suite(write(folder, a={"tools": [{**TOOL, **(tool or {})}], "tasks": [{**TASK, **(task or {})}]}))


def problems_of(folder: Path) -> list[tuple[str, str, str]]:
    """File, key and message of every problem."""
    with pytest.raises(FileProblemsError) as caught:
        load_suite(folder)
    return [(problem.path.name, problem.key, problem.message) for problem in caught.value.problems]


def one_problem(folder: Path, **fields: Any) -> tuple[str, str]:
    with pytest.raises(FileProblemsError) as caught:
        load(folder, **fields)
    (problem,) = caught.value.problems
    return problem.key, problem.message


def variants_of(folder: Path, *, head: dict[str, Any] | None = None, **task: Any) -> tuple[TaskVariant, ...]:
    """The variants of one task with these fields; a field given as None is left out."""
    fields = {key: value for key, value in {**TASK, **task}.items() if value is not None}
    return load_suite(write(folder, {**HEAD, **(head or {})}, a={"tools": [TOOL], "tasks": [fields]})).variants


def printed_by(code: str, folder: Path) -> set[bytes]:
    """What code prints of a suite's folder, in processes that order sets differently."""
    return {
        subprocess.run(
            [sys.executable, "-c", code, str(folder)],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
        ).stdout
        for seed in ("0", "1")
    }


def labels(variants: tuple[TaskVariant, ...]) -> list[str]:
    """Names of variants, in order."""
    return [variant.variant for variant in variants]
