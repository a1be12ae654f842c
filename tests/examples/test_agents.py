"""The examples of agents of one's own, run as their first lines say, on a stand-in server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_vllm import FakeConfig, FakeVllm

from agenteval.cli import main

ROOT = Path(__file__).parents[2]
STARTER = ROOT / "tasks" / "starter"
# The prebuilt agent has moved to a package that the example does without.
pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
FOLLOW_UP_SUITE = """
name: talk
description: Two questions in a row.
agent:
  system_prompt: You answer with tools.
  tool_choice: required
  max_turns: 12
  max_tokens: 64
  parallel_tool_calls: false
  finish_tool: finish
"""
FOLLOW_UP_TASKS = """
tools:
  - name: ping
    description: Answers pong.
    parameters: {type: object, properties: {}, additionalProperties: false}
    default: {returns: pong}
tasks:
  - name: twice
    prompt: Call finish with one.
    follow_ups: [Call finish with two.]
    tools: [ping]
    checks: [{kind: answer, contains: [two]}]
"""


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("react-agent", "planner-agent"):
        monkeypatch.syspath_prepend(ROOT / "examples" / name)
    monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "runs.duckdb"


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A suite whose user asks twice."""
    folder = tmp_path / "talk"
    folder.mkdir()
    (folder / "suite.yaml").write_text(FOLLOW_UP_SUITE)
    (folder / "tasks.yaml").write_text(FOLLOW_UP_TASKS)
    return folder


def run(database: Path, capsys: pytest.CaptureFixture[str], suite: Path, *options: str) -> dict[str, Any]:
    """The summary of a strict run of a suite's first task on a quiet server of someone else's."""
    with FakeVllm(FakeConfig(prefix_caching=False, max_num_seqs=1)) as server:
        where = ["--base-url", server.base_url, "--db", str(database)]
        code = main(["run", str(suite), "--contract", "strict", "--limit", "1", "--json", "--quiet", *where, *options])
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    # Another's server leaves clauses open.
    assert code == 2
    return summary


def rows(database: Path, capsys: pytest.CaptureFixture[str], query: str) -> list[dict[str, Any]]:
    assert main(["sql", query, "--json", "--db", str(database)]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def calls(database: Path, capsys: pytest.CaptureFixture[str], run_id: str) -> list[dict[str, Any]]:
    """Every tool call of a run; LangChain writes the arguments anew, so that only their values can be equal."""
    query = (
        f"SELECT turn, call, call_id, tool, arguments, result FROM tool_calls WHERE run_id = '{run_id}' ORDER BY ALL"
    )
    return [{**row, "arguments": json.loads(row["arguments"])} for row in rows(database, capsys, query)]


@pytest.mark.parametrize("agent", ["react_agent:make_graph", "planner_agent:make_graph"])
def test_an_example_runs_to_the_end_and_breaches_nothing(
    agent: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = run(database, capsys, STARTER, "--agent", agent)
    assert (summary["episodes"]["finished"], summary["episodes"]["not_run"]) == (2, 0)
    assert "breached" not in [clause["verdict"] for clause in summary["clauses"].values()]
    assert (summary["repeats"]["pairs"], set(summary["repeats"]["differing"].values())) == (1, {0})


def test_the_prebuilt_agent_makes_the_calls_of_agentevals_own(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = run(database, capsys, STARTER, "--agent", "react_agent:make_graph")
    ours = run(database, capsys, STARTER)
    assert theirs["episodes"] == ours["episodes"]
    made = calls(database, capsys, theirs["run_id"])
    assert made
    assert made == calls(database, capsys, ours["run_id"])


def test_the_planner_plans_without_tools_before_it_acts(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = run(database, capsys, STARTER, "--agent", "planner_agent:make_graph")
    query = (
        "SELECT turn, (request->'tools') IS NULL AS plans FROM turns WHERE kind = 'episode' "
        f"AND run_id = '{summary['run_id']}' ORDER BY episode_id, turn"
    )
    found = rows(database, capsys, query)
    assert {row["plans"] for row in found if row["turn"] == 0} == {True}
    assert {row["plans"] for row in found if row["turn"] > 0} == {False}


@pytest.mark.parametrize("agent", [None, "react_agent:make_graph", "planner_agent:make_graph"])
def test_every_agent_hears_the_users_follow_up(
    agent: str | None, talk: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = run(database, capsys, talk, *(() if agent is None else ("--agent", agent)))
    assert summary["episodes"]["not_run"] == 0
    query = (
        "SELECT count(*) AS count FROM turns WHERE kind = 'episode' AND messages_added::VARCHAR LIKE '%with two%' "
        f"AND run_id = '{summary['run_id']}'"
    )
    assert rows(database, capsys, query)[0]["count"] == 2
