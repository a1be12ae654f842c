"""Why two episodes part, asked of the stand-in, whose cache, company and boots each change its answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .conftest import CommandLine, Done

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


def test_the_cache_is_found_where_only_the_cache_differed(cli: CommandLine) -> None:
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
    engine_env({"latency_s": 0.05, "prefix_caching": False})
    contract = tmp_path / "four.yaml"
    contract.write_text(FOUR_AT_ONCE)
    cli.run(contract, "--limit", "4", "--quiet")
    cli.run("strict", "--limit", "4", "--quiet")
    episodes = cli.sql(
        "select a.episode_id a, b.episode_id b from episodes a join episodes b using (task, variant, sample, repeat) "
        "where a.run_id like '%strict%' and b.run_id like '%four%' and repeat = 0 order by all limit 1"
    )[0]
    engine_env({"latency_s": 0.05})
    done = cli("explain", episodes["a"], episodes["b"], "--model", cli.model, "--json")
    trials = by_condition(done)
    assert {trial["match"] for trial in trials["cold"]} == {"a"}
    crowded = next(each for name, each in trials.items() if name.startswith("with "))
    assert {trial["match"] for trial in crowded}.isdisjoint({"a"})


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
