"""What is loaded by whom: programs that import agenteval, and people who ask for help, wait for nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("textual", "duckdb", "langgraph", "langchain_core", "openai", "vllm", "torch", "pyarrow", "pydantic")


def loaded_by(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after some code."""
    script = f"import sys\n{code}\nprint(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import agenteval", id="import agenteval"),
        pytest.param("import agenteval.cli", id="import agenteval.cli"),
        pytest.param(
            "from agenteval.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass", id="agenteval --help"
        ),
        pytest.param(
            "from agenteval.cli import main\ntry: main(['run', '--help'])\nexcept SystemExit: pass",
            id="agenteval run --help",
        ),
    ],
)
def test_nothing_heavy_is_loaded(code: str) -> None:
    assert loaded_by(code).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        pytest.param("agenteval.compare", {"duckdb", "langgraph", "openai", "textual", "vllm"}, id="compare"),
        pytest.param("agenteval.audit", {"duckdb", "langgraph", "openai", "textual", "vllm"}, id="audit"),
        pytest.param("agenteval.client", {"duckdb", "langgraph", "openai", "textual", "vllm"}, id="client"),
        pytest.param("agenteval.report", {"langgraph", "openai", "textual", "vllm"}, id="report"),
        pytest.param("agenteval.cli.database", {"langgraph", "openai", "textual", "vllm"}, id="runs, show and sql"),
        pytest.param("agenteval.cli.run", {"textual", "vllm"}, id="run"),
    ],
)
def test_a_module_loads_only_what_it_needs(module: str, forbidden: set[str]) -> None:
    assert loaded_by(f"import {module}").isdisjoint(forbidden)
