"""Why two episodes part, asked of the stand-in, whose cache, company and boots each change its answers."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_vllm import FakeConfig, FakeVllm
from patience import LONG_S

from agenteval.server.orphans import has_members
from agenteval.store import files_folder

from .conftest import SUITE, CommandLine, Done

FOUR_AT_ONCE = """
name: four
description: strict with four requests at once.
extends: strict
batching: {mode: free, concurrency: 4}
repeats: {agree: measured}
"""


def explained(cli: CommandLine, where: str = "", *arguments: str | Path) -> Done:
    """Explain the first divergence that is one of the model's answers."""
    (pair,) = cli.sql(
        f"select episode_a, episode_b from divergences where token is not null {where} order by all limit 1"
    )
    return cli("explain", pair["episode_a"], pair["episode_b"], "--model", cli.model, "--json", *arguments)


def by_condition(done: Done) -> dict[str, list[dict[str, Any]]]:
    trials: dict[str, list[dict[str, Any]]] = {}
    for trial in json.loads(done.out)["trials"]:
        trials.setdefault(trial["condition"]["name"], []).append(trial)
    return trials


def between_runs(cli: CommandLine, first: str, second: str, *arguments: str | Path) -> Done:
    """Explain a pair of the first repeats of two runs: one whose answers differ in a token, and nothing before."""
    pairs = cli.sql(
        "with said as (select r.contract, r.started_at, e.episode_id, e.task, e.variant, "
        "list(t.output_ids order by t.turn) tokens from episodes e join runs r using (run_id) "
        "join turns t using (episode_id) where e.repeat = 0 and t.kind = 'episode' group by all) "
        f"select a.episode_id a, b.episode_id b from said a join said b using (task, variant) where a.contract "
        f"like '{first}%' and b.contract like '{second}%' and a.started_at < b.started_at and a.tokens != b.tokens "
        "order by all limit 1"
    )
    assert pairs, "no pair differs"
    return cli("explain", pairs[0]["a"], pairs[0]["b"], "--model", cli.model, *arguments)


def wait_for_a_turn(cli: CommandLine, *, position: int) -> None:
    """Until the journal of a run holds a turn of its episode at a position."""
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        lines = [line for path in files_folder(cli.db).glob("*.jsonl") for line in path.read_text().splitlines()]
        if any('"record":"Turn"' in line and f'/{position:05d}"' in line for line in lines):
            return
        time.sleep(0.02)
    pytest.fail(f"no turn of episode {position}")


def test_the_cache_is_found_where_only_the_cache_differed(cli: CommandLine, engine_env: Callable[..., None]) -> None:
    engine_env({"batch_sensitivity": 0.0})
    cli.run("default", "--limit", "3", "--quiet")
    done = explained(cli, "and level <> 'logprobs'")
    found = json.loads(done.out)
    assert (done.code, found["flips"]) == (0, ["cache"])
    assert "what the cache holds alone turns the one answer into the other" in found["conclusion"]
    trials = by_condition(done)
    assert all(len(each) == 2 for each in trials.values())
    for name, each in trials.items():
        wanted = each[0]["condition"]["warm_tokens"]
        if wanted:
            assert [trial["cached_tokens"] for trial in each] == [wanted, wanted], name


def test_company_is_found_where_only_company_differed(
    cli: CommandLine, tmp_path: Path, engine_env: Callable[..., None]
) -> None:
    engine_env({"latency_s": 0.1, "cache_sensitivity": 0.0, "near_tie_share": 0.5})
    contract = tmp_path / "four.yaml"
    contract.write_text(FOUR_AT_ONCE)
    cli.run("strict", "--limit", "4", "--repeats", "1", "--quiet")
    cli.run(contract, "--limit", "4", "--repeats", "1", "--quiet")
    done = between_runs(cli, "strict", "four", "--json")
    found = json.loads(done.out)
    assert (done.code, found["flips"]) == (0, ["batching"])
    assert (found["outcomes"]["cold"], found["outcomes"]["with 3 others"]) == ("a", "b")
    # A cold request of a server whose cache is on stands for one without a cache, bit for bit.
    assert all(trial["is_exact"] for trial in by_condition(done)["cold"])
    assert any("batching.concurrency: 1 against 4" in sign for sign in found["subject"]["signs"])


def test_another_boot_is_found_where_only_the_boot_differed(
    cli: CommandLine, tmp_path: Path, engine_env: Callable[..., None]
) -> None:
    boots = tmp_path / "boots"
    engine_env({"near_tie_share": 0.5}, boots=boots)
    for _ in range(2):
        cli.run("strict", "--limit", "2", "--repeats", "1", "--quiet")
    boots.unlink()
    engine_env({"near_tie_share": 0.5, "batch_sensitivity": 0.0})
    done = between_runs(cli, "strict", "strict", "--json")
    found = json.loads(done.out)
    assert (found["outcomes"]["cold"], found["outcomes"]["other boot"]) == ("a", "b")
    assert "boot" in found["flips"]


def test_a_server_that_writes_another_prompt_explains_nothing(
    cli: CommandLine, engine_env: Callable[..., None]
) -> None:
    cli.run("default", "--limit", "3", "--quiet")
    engine_env({"render_call_ids": True})
    done = explained(cli, "and turn > 0")
    assert done.code == 2
    assert "made other token ids" in json.loads(done.out)["conclusion"]


def test_equal_episodes_have_nothing_to_explain(cli: CommandLine) -> None:
    cli.run("strict", "--limit", "1", "--quiet")
    first, second = (row["episode_id"] for row in cli.sql("select episode_id from episodes order by repeat"))
    done = cli("explain", first, second)
    assert done.code == 2
    assert "they agree in every bit" in done.err


def test_an_unknown_episode_is_told(cli: CommandLine) -> None:
    cli.run("strict", "--limit", "1", "--repeats", "1", "--quiet")
    done = cli("explain", "nobody/00000", "nobody/00001")
    assert done.code == 2
    assert "There is no episode 'nobody/00000'" in done.err


def test_another_model_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    cli.run("default", "--limit", "2", "--quiet")
    other = tmp_path / "other"
    other.mkdir()
    for file in cli.model.iterdir():
        (other / file.name).write_bytes(file.read_bytes() + b" ")
    done = explained(cli, "", "--model", other)
    assert done.code == 2
    assert "whose answers would explain nothing" in done.err


def test_the_text_is_a_table_and_a_sentence(cli: CommandLine) -> None:
    cli.run("default", "--limit", "2", "--quiet")
    (pair,) = cli.sql("select episode_a, episode_b from divergences where token is not null order by all limit 1")
    done = cli("explain", pair["episode_a"], pair["episode_b"], "--model", cli.model)
    assert "condition" in done.out
    assert "cache.mode: shared in the run, per_episode here" in done.out
    assert done.out.rstrip().splitlines()[-1].startswith("Alone and cold the server answers as")


def test_every_exchange_is_kept_beside_the_database_and_the_database_is_as_it_was(cli: CommandLine) -> None:
    cli.run("default", "--limit", "2", "--quiet")
    before = cli.sql("select count(*) n from turns")
    done = explained(cli)
    found = json.loads(done.out)
    kept = [json.loads(line) for line in Path(found["exchanges"]).read_text().splitlines()]
    ids = {exchange["response"]["id"] for exchange in kept if "messages" in exchange["request"]}
    assert {trial["request_id"] for trial in found["trials"]} <= ids
    assert cli.sql("select count(*) n from turns") == before
    assert not list(files_folder(cli.db).glob("*.damaged"))


def test_a_second_database_holds_the_other_side(cli: CommandLine, tmp_path: Path) -> None:
    cli.run("default", "--limit", "2", "--quiet")
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(cli.db.read_bytes())
    assert explained(cli, "", "--db-b", copy).code in (0, 1)
    missing = explained(cli, "", "--db-b", tmp_path / "none.duckdb")
    assert (missing.code, "none.duckdb" in missing.err) == (2, True)


def test_a_server_that_someone_else_runs_is_asked_without_another_boot(cli: CommandLine) -> None:
    config = FakeConfig(batch_sensitivity=0.0, near_tie_share=0.5)
    with FakeVllm(config) as server:
        cli("run", SUITE, "--contract", "default", "--base-url", server.base_url, "--limit", "3", "--quiet")
        (pair,) = cli.sql(
            "select episode_a, episode_b from divergences where token is not null and level <> 'logprobs' "
            "order by all limit 1"
        )
        done = cli("explain", pair["episode_a"], pair["episode_b"], "--base-url", server.base_url, "--json")
        refused = cli("explain", pair["episode_a"], pair["episode_b"], "--base-url", server.base_url, "--boots", "2")
    found = json.loads(done.out)
    assert (done.code, found["flips"]) == (0, ["cache"])
    assert "other boot" not in found["outcomes"]
    assert (refused.code, "leave them out with --base-url" in refused.err) == (2, True)


def test_a_run_of_someone_elses_server_is_explained_on_ours_and_its_model_called_unknown(cli: CommandLine) -> None:
    with FakeVllm(FakeConfig(batch_sensitivity=0.0)) as server:
        cli("run", SUITE, "--contract", "default", "--base-url", server.base_url, "--limit", "2", "--quiet")
    done = explained(cli)
    assert any("of a server that someone else ran" in change for change in json.loads(done.out)["changes"])


def test_what_a_killed_runner_left_can_be_explained_as_far_as_it_goes(
    cli: CommandLine, engine_env: Callable[..., None]
) -> None:
    engine_env({"latency_s": 0.1})
    running = cli.start(cli.words("default", "--limit", "3"))
    wait_for_a_turn(cli, position=4)
    running.kill()
    running.communicate()
    first = cli.sql("select min(episode_id) first from episodes")[0]["first"].rpartition("/")[0]
    whole = cli("explain", f"{first}/00000", f"{first}/00003", "--model", cli.model)
    assert (whole.code in (0, 1), "Alone and cold" in whole.out) == (True, True)
    broken_off = cli("explain", f"{first}/00001", f"{first}/00004", "--model", cli.model)
    assert (broken_off.code, f"There is no episode '{first}/00004'" in broken_off.err) == (2, True)


def test_asked_to_stop_it_leaves_no_server_and_says_where_its_exchanges_are(
    cli: CommandLine, cache: Path, engine_env: Callable[..., None]
) -> None:
    cli.run("default", "--limit", "2", "--quiet")
    (pair,) = cli.sql("select episode_a, episode_b from divergences where token is not null order by all limit 1")
    engine_env({"latency_s": 0.3})
    words = [sys.executable, "-m", "agenteval", "explain", pair["episode_a"], pair["episode_b"]]
    running = cli.start([*words, "--model", str(cli.model), "--db", str(cli.db)])
    assert running.stderr is not None
    seen = ""
    for line in running.stderr:
        seen += line
        if "trial " in line:
            break
    (note,) = [
        kept
        for path in (cache / "boots").glob("*.json")
        if (kept := json.loads(path.read_text()))["runner"] == running.pid
    ]
    leader = int(note["pid"])
    assert has_members(leader)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=LONG_S)
    assert (running.returncode, out) == (2, "")
    assert "its exchanges so far are in" in err
    assert "Traceback" not in seen + err
    assert not has_members(leader)


def test_what_a_model_wrote_steers_no_terminal(cli: CommandLine, engine_env: Callable[..., None]) -> None:
    hostile = {"text": "\x07 done", "when_warm": {"text": "\x1b[2J done"}}
    engine_env({"script": [{"when": "account", "replies": [hostile]}], "batch_sensitivity": 0.0})
    cli.run("default", "--limit", "1", "--quiet")
    (pair,) = cli.sql("select episode_a, episode_b from divergences where token is not null order by all limit 1")
    done = cli("explain", pair["episode_a"], pair["episode_b"], "--model", cli.model)
    assert all(character.isprintable() or character == "\n" for character in done.out + done.err)
    assert "\\x1b" in done.out
