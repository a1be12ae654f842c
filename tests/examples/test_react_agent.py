"""The example of a graph of one's own, run as its first lines say, on a stand-in server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_vllm import FakeConfig, FakeVllm

from agenteval.cli import main

ROOT = Path(__file__).parents[2]
SUITE = str(ROOT / "tasks" / "starter")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(ROOT / "examples" / "react-agent")
    monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "runs.duckdb"


def run(database: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, summary and id of a strict run of one task on a quiet server."""
    with FakeVllm(FakeConfig(prefix_caching=False, max_num_seqs=1)) as server:
        where = ["--base-url", server.base_url, "--db", str(database)]
        code = main(["run", SUITE, "--contract", "strict", "--limit", "1", "--json", "--quiet", *where, *options])
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, summary, summary["run_id"]


def calls(database: Path, run_id: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Every tool call of a run; LangChain writes the arguments anew, so that only their values can be equal."""
    query = (
        f"SELECT turn, call, call_id, tool, arguments, result FROM tool_calls WHERE run_id = '{run_id}' ORDER BY ALL"
    )
    assert main(["sql", query, "--json", "--db", str(database)]) == 0
    return [{**row, "arguments": json.loads(row["arguments"])} for row in json.loads(capsys.readouterr().out)]


def test_the_example_runs_as_agentevals_own_agent_does(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another's server leaves clauses open (2), but none is breached: nothing that the example sends contradicts."""
    code, theirs, their_id = run(database, capsys, "--agent", "react_agent:make_graph")
    assert (code, theirs["episodes"]["finished"], theirs["episodes"]["not_run"]) == (2, 2, 0)
    assert "breached" not in [clause["verdict"] for clause in theirs["clauses"].values()]
    assert (theirs["repeats"]["pairs"], set(theirs["repeats"]["differing"].values())) == (1, {0})

    _, ours, our_id = run(database, capsys)
    assert theirs["episodes"] == ours["episodes"]
    made = calls(database, their_id, capsys)
    assert made
    assert made == calls(database, our_id, capsys)
