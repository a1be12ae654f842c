"""The product on a real vLLM and a real model: what the README's first screen promises."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval.models import cache_folder

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[2]
SUITE = str(ROOT / "tasks" / "starter")
TALK_HEAD = """
name: talk
description: A lamp, a fault and a user who asks twice.
agent:
  system_prompt: You do what the user asks with tool calls, then you call finish.
  tool_choice: required
  max_turns: 6
  max_tokens: 64
  parallel_tool_calls: true
  finish_tool: finish
"""
TALK_TASKS = """
tools:
  - name: switch_lamp
    description: Switch a lamp on or off.
    parameters:
      type: object
      properties: {lamp: {type: string}, state: {type: string, enum: ["on", "off"]}}
      required: [lamp, state]
      additionalProperties: false
    default:
      returns: {lamp: "${args.lamp}", state: "${args.state}"}
      effects: [{op: add, path: "/lamps/${args.lamp}", value: "${args.state}"}]
      latency_s: 1
tasks:
  - name: two-lamps
    prompt: Switch on the lamp ${vars.lamp}. Then call finish with its state.
    follow_ups: ["Now switch ${vars.lamp} off again, then call finish."]
    tools: [switch_lamp]
    variants: {hall: {lamp: hall}}
    world: {lamps: {hall: "off", desk: "off"}}
    faults: [{kind: timeout, tool: switch_lamp, at: [1], applied: true}]
    checks:
      - {kind: world, that: "world.lamps[vars.lamp] == 'off'"}
      - {kind: unchanged, except: ["/lamps/${vars.lamp}"]}
      - {kind: called, tool: switch_lamp, outcome: any}
"""


def agenteval(database: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user would; progress goes to the test's own stderr."""
    return subprocess.run(
        [sys.executable, "-m", "agenteval", *arguments, "--db", str(database)],
        cwd=database.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def run_suite(database: Path, contract: str, limit: int) -> tuple[int, dict[str, Any]]:
    """A run's exit status and its summary."""
    done = agenteval(database, "run", SUITE, "--contract", contract, "--limit", str(limit), "--json")
    return done.returncode, json.loads(done.stdout)


def query(database: Path, sql: str) -> list[dict[str, Any]]:
    """Rows of a query, through the command line."""
    rows: list[dict[str, Any]] = json.loads(agenteval(database, "sql", sql, "--json").stdout)
    return rows


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real") / "runs.duckdb"


@pytest.fixture(scope="module")
def strict(database: Path) -> tuple[int, dict[str, Any]]:
    return run_suite(database, "strict", 1)


@pytest.fixture(scope="module")
def isolated(database: Path) -> tuple[int, dict[str, Any]]:
    return run_suite(database, "isolated", 1)


@pytest.fixture(scope="module")
def crowded(database: Path) -> tuple[int, dict[str, Any]]:
    """The engine's defaults with four requests at once; which bits that moves depends on the processor."""
    return run_suite(database, str(ROOT / "examples" / "crowded.yaml"), 4)


@pytest.fixture(scope="module")
def talk(database: Path) -> tuple[int, dict[str, Any]]:
    """A suite with a fault, a clock that moves, and a second question."""
    folder = database.parent / "talk"
    folder.mkdir()
    (folder / "suite.yaml").write_text(TALK_HEAD)
    (folder / "tasks.yaml").write_text(TALK_TASKS)
    done = agenteval(database, "run", str(folder), "--contract", "isolated", "--json")
    return done.returncode, json.loads(done.stdout)


def test_strict_is_kept_in_every_clause_and_bit(strict: tuple[int, dict[str, Any]]) -> None:
    code, summary = strict
    assert summary["verdict"] == "kept", summary["clauses"]
    assert code == 0
    assert {clause["verdict"] for clause in summary["clauses"].values()} == {"kept"}
    assert summary["repeats"]["pairs"] == 1
    assert summary["repeats"]["differing"]["logprobs"] == 0


def test_isolated_is_kept_and_reuses_only_its_own_turns(isolated: tuple[int, dict[str, Any]], database: Path) -> None:
    code, summary = isolated
    assert (code, summary["verdict"]) == (0, "kept"), summary["clauses"]
    run_id = summary["run_id"]
    first, later = (
        query(
            database,
            f"select sum(cached_tokens) cached from turns where run_id = '{run_id}' and kind = 'episode' and {turns}",
        )[0]["cached"]
        for turns in ("turn = 0", "turn > 0")
    )
    assert float(first or 0) == 0
    assert float(later) > 0


def test_a_fault_and_a_second_question_repeat_to_the_bit(talk: tuple[int, dict[str, Any]], database: Path) -> None:
    code, summary = talk
    assert (code, summary["verdict"]) == (0, "kept"), summary["clauses"]
    assert summary["repeats"]["differing"]["logprobs"] == 0
    # The model is small, so that only what it cannot help is certain: its first call meets the fault.
    assert [fault["fired"] for fault in summary["faults"]] == [1, 1]
    spoken = query(
        database,
        "select count(*) n from turns where messages_added::varchar like '%off again%' "
        f"and run_id = '{summary['run_id']}'",
    )
    assert spoken[0]["n"] == 2


def test_the_engines_defaults_move_logprobs_and_each_diverged_episode_is_named(
    crowded: tuple[int, dict[str, Any]],
) -> None:
    code, summary = crowded
    assert (code, summary["verdict"]) == (1, "diverged"), summary["clauses"]
    assert 1 <= len(summary["divergences"]) <= summary["repeats"]["pairs"] == 4
    for divergence in summary["divergences"]:
        assert divergence["cause"].startswith(("cached tokens differ", "company of", "other requests in flight"))
        assert divergence["texts"][0]


@pytest.mark.parametrize("name", ["strict", "isolated", "crowded"])
def test_verify_derives_the_same_without_a_server(name: str, database: Path, request: pytest.FixtureRequest) -> None:
    code, summary = request.getfixturevalue(name)
    done = agenteval(database, "verify", summary["run_id"], "--json")
    found = json.loads(done.stdout)
    assert (found["agrees"], found["differences"]) == (True, [])
    assert (done.returncode, found["verdict"]) == (code, summary["verdict"])


@pytest.mark.usefixtures("strict", "isolated")
def test_canaries_of_two_boots_agree_to_the_bit(database: Path) -> None:
    """Whatever the contract, since they are asked alone and cold."""
    rows = query(
        database,
        "select count(distinct (output_ids, logprobs)) answers, count(*) asked from turns t join runs r "
        "using (run_id) where kind = 'probe' and episode_id like '%canary-%' and r.contract in ('strict', 'isolated') "
        "group by prompt_added",
    )
    # The long one at both ends of each boot; the short one in company as well.
    assert [row["answers"] for row in rows] == [1, 1]
    assert sorted(row["asked"] for row in rows) >= [4, 6]


def test_the_contracts_that_are_kept_differ_as_diff_says(
    strict: tuple[int, dict[str, Any]], isolated: tuple[int, dict[str, Any]], database: Path
) -> None:
    done = agenteval(database, "diff", strict[1]["run_id"], isolated[1]["run_id"], "--json")
    found = json.loads(done.stdout)
    assert done.returncode == found["exit_code"]
    assert found["settings"] == ["cache.mode: disabled against per_episode"]
    assert [pair["task"] for pair in found["pairs"]] == [found["pairs"][0]["task"]] * 2
    assert agenteval(database, "diff", strict[1]["run_id"]).returncode == 0


def test_a_divergence_is_replayed_by_its_token_ids(crowded: tuple[int, dict[str, Any]], database: Path) -> None:
    """Which change flips it depends on the processor; that each condition is reached and repeats itself does not."""
    assert crowded[1]["divergences"]
    (pair,) = query(
        database, "select episode_a, episode_b from divergences where token is not null order by turn, token limit 1"
    )
    done = agenteval(database, "explain", pair["episode_a"], pair["episode_b"], "--boots", "1", "--json")
    trials = json.loads(done.stdout)["trials"]
    assert all(trial["is_same_prompt"] for trial in trials)
    alone = [trial for trial in trials if not trial["condition"]["company"]]
    assert all(trial["is_reached"] for trial in alone)
    answers: dict[str, list[Any]] = {}
    for trial in alone:
        answers.setdefault(trial["condition"]["name"], []).append(trial["answer"])
    assert len(answers["cold"]) == 2
    assert all(first == second for first, second in answers.values())


def test_the_locks_of_two_contracts_differ_in_what_they_fix(
    strict: tuple[int, dict[str, Any]], isolated: tuple[int, dict[str, Any]], database: Path
) -> None:
    done = agenteval(database, "lock", "diff", strict[1]["run_id"], isolated[1]["run_id"])
    assert done.returncode == 1
    assert "contract.fields.cache.mode: disabled → per_episode" in done.stdout
    assert "engine.vllm" not in done.stdout


def test_this_machine_can_keep_what_it_has_kept(database: Path) -> None:
    assert agenteval(database, "doctor").returncode == 0


@pytest.mark.usefixtures("strict")
def test_every_turn_is_in_the_database_with_ids_and_logprobs(database: Path) -> None:
    rows = query(
        database,
        "select count(*) n, bool_and(len(output_ids) > 0 and len(output_ids) = len(logprobs) "
        "and len(output_ids) = len(output_tokens)) whole, bool_and(prompt_tokens > 100) prompted "
        "from turns where kind = 'episode'",
    )
    assert rows[0]["n"] >= 2
    assert rows[0]["whole"] is True
    assert rows[0]["prompted"] is True


@pytest.mark.usefixtures("strict", "isolated", "talk", "crowded")
def test_no_server_is_left_at_any_boots_port(database: Path) -> None:
    boots = query(database, "select base_url from boots")
    assert len(boots) == 4
    for row in boots:
        with socket.socket() as probe:
            port = int(row["base_url"].rpartition(":")[2])
            assert probe.connect_ex(("127.0.0.1", port)) != 0, row


@pytest.mark.usefixtures("strict", "isolated", "talk", "crowded")
def test_no_note_of_a_running_server_is_left() -> None:
    assert list((cache_folder() / "boots").glob("*.json")) == []
