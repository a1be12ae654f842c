"""Databases that were edited by hand: what no run writes is named, with its run and its table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from agenteval.cli import main
from agenteval.errors import DamagedRecordError
from agenteval.store import RunReader, run_ids

from .conftest import SUITE, CommandLine


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, module_env: pytest.MonkeyPatch) -> Path:
    """A database with a strict run that was kept."""
    path = tmp_path_factory.mktemp("finished") / "runs.duckdb"
    words = ["--contract", "strict", "--model", str(tiny_model), "--limit", "1", "--quiet", "--db", str(path)]
    assert main(["run", SUITE, *words]) == 0
    return path


def edit(cli: CommandLine, finished: Path, statement: str) -> None:
    """Copy the database to where the command reads it, and run a statement there."""
    shutil.copy(finished, cli.db)
    with duckdb.connect(str(cli.db)) as connection:
        connection.execute(statement)


DAMAGES = {
    "boots.facts is a list": ("boots", "UPDATE boots SET facts = '[]'"),
    "boots.facts.metrics": ("boots", """UPDATE boots SET facts = '{"metrics": {"x": "3"}}'"""),
    "boots.metrics": ("boots", """UPDATE boots SET metrics = '{"vllm:num_preemptions_total": "3"}'"""),
    "boots.env": ("boots", "UPDATE boots SET env = '3'"),
    "turns.logprobs": ("turns", "UPDATE turns SET logprobs = [1.0]"),
    "turns.request": ("turns", "UPDATE turns SET request = '[]'"),
    "turns.messages_added": ("turns", "UPDATE turns SET messages_added = '{}'"),
    "turns.output_ids": ("turns", "UPDATE turns SET output_ids = [NULL]"),
    "runs.contract_fields": ("runs", "UPDATE runs SET contract_fields = '{}'"),
    "runs.verdict": ("runs", "UPDATE runs SET verdict = 'maybe'"),
    "runs.status": ("runs", "UPDATE runs SET status = 'maybe'"),
    "tasks.definition": ("tasks", "UPDATE tasks SET definition = '{}'"),
    "evidence.verdict": ("evidence", "UPDATE evidence SET verdict = 'maybe'"),
    "evidence.detail": ("evidence", "UPDATE evidence SET detail = '[]'"),
    "episodes.stop_reason": ("episodes", "UPDATE episodes SET stop_reason = 'finished'"),
    "episodes.world": ("episodes", "UPDATE episodes SET world = 'null'"),
    "tool_calls.world_patch": ("tool_calls", "UPDATE tool_calls SET world_patch = '[3]'"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_no_run_writes_is_named_with_its_run_and_table(cli: CommandLine, finished: Path, name: str) -> None:
    table, statement = DAMAGES[name]
    edit(cli, finished, statement)
    done = cli("verify")
    assert (done.code, done.out) == (2, "")
    assert f"its table {table} holds what no run writes: " in done.err
    assert done.err.rstrip().endswith("Restore the database from a copy, or make the run again.")
    # `show` reads less; what it reads, it names the same way.
    assert "mistake in agenteval" not in cli("show").err


def test_one_episode_that_cannot_be_read_is_named(cli: CommandLine, finished: Path) -> None:
    edit(cli, finished, "UPDATE turns SET logprobs = [1.0]")
    (run_id,) = run_ids(cli.db)
    with pytest.raises(DamagedRecordError, match="are not equally long"):
        RunReader(path=cli.db, run_id=run_id).turns(f"{run_id}/00000")


CONTRADICTIONS = {
    "the contract's name": "UPDATE runs SET contract = 'other'",
    "the contract's digest": "UPDATE runs SET contract_digest = 'sha256:00'",
    "the suite": "UPDATE runs SET suite_digest = 'sha256:00'",
    "the model": "UPDATE runs SET model = 'other'",
    "the model's digest": "UPDATE runs SET model_digest = 'sha256:00'",
    "the status": "UPDATE runs SET status = 'failed'",
    "no grades": "DELETE FROM grades",
    "one grade less": 'DELETE FROM grades WHERE "check" = 0',
    "the text of a turn": "UPDATE turns SET content = 'other' WHERE kind = 'episode' AND turn = 0",
    "the logprobs of an episode": (
        "UPDATE turns SET logprobs = list_transform(logprobs, lambda x: x - 0.5) WHERE episode_id LIKE '%/00001'"
    ),
    "the evidence": "UPDATE evidence SET observed = 'all is well' WHERE clause = 'cache'",
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_contradicts_itself_is_told(cli: CommandLine, finished: Path, name: str) -> None:
    edit(cli, finished, CONTRADICTIONS[name])
    done = cli("verify", "--json")
    found = json.loads(done.out)
    assert (done.code, found["agrees"]) == (2, False)
    assert found["differences"]


@pytest.mark.parametrize(
    ("assignments", "outcome"),
    [
        pytest.param("verdict = verdict", "kept", id="as written"),
        pytest.param("verdict = NULL, status = 'stopped'", "stopped", id="no verdict"),
        pytest.param("verdict = 'maybe'", "damaged", id="no word for a verdict"),
        pytest.param("verdict = NULL, status = 'maybe'", "damaged", id="no word for a status"),
        pytest.param("status = 'failed'", "damaged", id="a verdict on a run that failed"),
    ],
)
def test_the_list_of_runs_shows_no_verdict_that_no_run_writes(
    cli: CommandLine, finished: Path, assignments: str, outcome: str
) -> None:
    edit(cli, finished, f"UPDATE runs SET {assignments}")
    done = cli("runs")
    assert (done.code, done.out.split()[-1]) == (0, outcome)


def test_what_nobody_edited_agrees(cli: CommandLine, finished: Path) -> None:
    edit(cli, finished, "SELECT 1")
    done = cli("verify", "--json")
    assert (done.code, json.loads(done.out)["differences"]) == (0, [])
