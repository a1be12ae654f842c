"""The command line on a stand-in for the program vLLM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli import main

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "fake_vllm" / "program"
STRICT_PROBES = 11
"""Requests of a strict boot before its first episode."""
SUITE = str(ROOT / "tasks" / "starter")


@dataclass
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """What --json printed."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def verdicts(self) -> dict[str, str]:
        """Clause to verdict, from --json."""
        return {clause: found["verdict"] for clause, found in self.summary["clauses"].items()}


@dataclass
class CommandLine:
    """Runs commands on one database, in this process or in another."""

    folder: Path
    model: Path
    capture: pytest.CaptureFixture[str]
    env: dict[str, str] = field(default_factory=dict)

    @property
    def db(self) -> Path:
        return self.folder / "runs.duckdb"

    def __call__(self, *arguments: str | Path) -> Done:
        """Run a command here; a usage error exits as argparse does."""
        self.capture.readouterr()
        try:
            code = main([*map(str, arguments), "--db", str(self.db)])
        except SystemExit as leaving:
            code = int(str(leaving.code))
        shown = self.capture.readouterr()
        assert "Traceback" not in shown.err
        return Done(code, shown.out, shown.err)

    def run(self, contract: str | Path, *arguments: str | Path) -> Done:
        """`agenteval run` of the starter suite with the tiny model."""
        return self("run", SUITE, "--contract", contract, "--model", self.model, *arguments)

    def run_json(self, contract: str | Path, *arguments: str | Path) -> Done:
        return self.run(contract, "--json", "--quiet", *arguments)

    def sql(self, query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self("sql", query, "--json").out)
        return rows

    def words(self, contract: str, *arguments: str) -> list[str]:
        """The command line of a run in another process."""
        run = ["run", SUITE, "--contract", contract, "--model", str(self.model), "--db", str(self.db)]
        return [sys.executable, "-m", "agenteval", *run, *arguments]

    def start(self, words: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """A command in another process, whose environment is this one's."""
        return subprocess.Popen(
            words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Facts about the stand-in engine, asked for once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text('{"max_position_embeddings": 32768}')
    # A template that teaches Hermes' calls, by which the parser is chosen.
    (folder / "chat_template.jinja").write_text("<tool_call>")
    (folder / "model.safetensors").write_bytes(b"\0")
    return folder


@pytest.fixture(scope="module")
def module_env(cache: Path) -> Iterator[pytest.MonkeyPatch]:
    """The environment in which agenteval finds the stand-in, for fixtures that outlive a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PROGRAM), str(ROOT)]))
        patch.setenv("AGENTEVAL_CACHE", str(cache))
        patch.delenv("AGENTEVAL_ENGINE_PYTHON", raising=False)
        yield patch


@pytest.fixture
def cli(
    tmp_path: Path, tiny_model: Path, module_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """A command line with a database of its own."""
    return CommandLine(tmp_path, tiny_model, capsys)


@pytest.fixture
def engine_env(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what the stand-in does: `die_after_requests=20`, or `config={...}`."""

    def set_variables(config: dict[str, Any] | None = None, **variables: object) -> None:
        if config is not None:
            monkeypatch.setenv("FAKE_VLLM_CONFIG", json.dumps(config))
        for name, value in variables.items():
            monkeypatch.setenv(f"FAKE_VLLM_{name.upper()}", str(value))

    return set_variables
