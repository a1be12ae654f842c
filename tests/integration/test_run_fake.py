"""`agenteval run` end to end on the stand-in: verdicts and exit statuses, and how a run is cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_vllm import FakeConfig, FakeVllm

from agenteval.contract.clauses import CLAUSES

from .conftest import SUITE, CommandLine, Done


def test_strict_is_kept(cli: CommandLine) -> None:
    done = cli.run("strict", "--limit", "3")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "verdict   kept: every clause was kept"
    assert "6 of 6 finished" in done.out
    assert "server    ready" in done.err
    assert "about " in done.err, "an estimate of the time left"


def test_isolated_is_kept_with_reuse_inside_an_episode(cli: CommandLine) -> None:
    done = cli.run_json("isolated", "--limit", "3")
    assert (done.code, set(done.verdicts.values())) == (0, {"kept"})
    hits = cli.sql("select sum(cached_tokens) hits from turns where kind = 'episode' and turn > 0")
    assert hits[0]["hits"] > 0


def test_default_diverges_and_names_each_episode_with_turn_and_token(cli: CommandLine) -> None:
    done = cli.run("default", "--limit", "6", "--quiet")
    assert done.code == 1
    assert "verdict   diverged" in done.out
    rows = cli.sql("select task, variant, level, turn, token from divergences")
    assert rows
    for row in rows:
        token = "" if row["token"] is None else f" token {row['token']}"
        name = f"{row['task']}/{row['variant']} sample 0 repeat 0 against 1: {row['level']} differ from turn "
        assert f"{name}{row['turn']}{token} on" in done.out


def test_invariant_is_refused_without_a_gpu_before_anything_starts(cli: CommandLine) -> None:
    done = cli.run("invariant")
    assert done.code == 2
    assert "Contract 'invariant' cannot be kept here, so nothing was started:" in done.err
    assert "batch-invariant kernels need an NVIDIA GPU" in done.err
    assert done.err.rstrip().endswith("take one that works here with --contract: isolated, strict, default.")
    assert not list(cli.folder.iterdir())


def test_json_is_the_only_thing_on_standard_output(cli: CommandLine) -> None:
    done = cli.run("strict", "--limit", "1", "--json")
    assert done.summary["verdict"] == "kept"
    assert done.summary["exit_code"] == done.code == 0
    assert list(done.summary["clauses"]) == list(CLAUSES)
    assert all(clause["evidence"] for clause in done.summary["clauses"].values())


@pytest.mark.parametrize(
    ("options", "episodes"),
    [
        pytest.param(["--limit", "1"], 2, id="limit"),
        pytest.param(["--task", "busy-bank", "--task", "move-money", "--limit", "1"], 2, id="tasks and limit"),
        pytest.param(["--limit", "1", "--repeats", "3"], 3, id="repeats"),
    ],
)
def test_a_run_can_be_cut(cli: CommandLine, options: list[str], episodes: int) -> None:
    done = cli.run_json("strict", *options)
    assert (done.code, done.summary["episodes"]["finished"]) == (0, episodes)


def test_a_tag_selects_its_tasks(cli: CommandLine) -> None:
    from agenteval.spec import load_suite

    variants = load_suite(Path(SUITE)).variants
    tag = next(tag for variant in variants for tag in variant.tags)
    done = cli.run_json("strict", "--tag", tag, "--limit", "2")
    tasks = {row["task"] for row in cli.sql("select distinct task from episodes")}
    assert done.code == 0
    assert tasks <= {variant.task for variant in variants if tag in variant.tags}


def test_one_repeat_proves_no_repeatability(cli: CommandLine) -> None:
    done = cli.run_json("strict", "--limit", "1", "--repeats", "1")
    assert (done.code, done.summary["verdict"], done.verdicts["repeats"]) == (2, "unproven", "unproven")
    assert done.summary["contract"] == "strict+repeats=1"


def test_another_seed_is_another_sample_and_never_a_repeat(cli: CommandLine) -> None:
    done = cli.run_json("strict", "--limit", "1", "--samples", "2")
    assert (done.code, done.summary["episodes"]["finished"]) == (0, 4)
    rows = cli.sql("select sample, count(distinct seed) seeds, count(*) n from episodes group by all order by all")
    assert [(row["sample"], row["seeds"], row["n"]) for row in rows] == [(0, 1, 2), (1, 1, 2)]


AGENT = """
from agenteval.agent import build_graph

def build(context):
    {body}
"""


@pytest.fixture
def agent(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module with a graph of one's own; a name that no other test uses."""
    name = f"own_agent_{abs(hash(request.node.name))}"
    (cli.folder / f"{name}.py").write_text(AGENT.format(body=request.param))
    monkeypatch.syspath_prepend(cli.folder)
    return f"{name}:build"


@pytest.mark.parametrize("agent", ["return build_graph(context)"], indirect=True)
def test_a_graph_of_ones_own_is_held_and_recorded_the_same_way(cli: CommandLine, agent: str) -> None:
    done = cli.run_json("strict", "--limit", "1", "--agent", agent)
    assert (done.code, done.summary["verdict"]) == (0, "kept")


@pytest.mark.parametrize("agent", ["raise KeyError('tools')"], indirect=True)
def test_a_graph_that_raises_leaves_the_question_open(cli: CommandLine, agent: str) -> None:
    done = cli.run("strict", "--limit", "1", "--agent", agent)
    assert done.code == 2
    assert "not run: read-balance/savings sample 0 repeat 0: The agent raised" in done.out
    assert "KeyError: 'tools'" in done.out
    assert "verdict   unproven: 2 of 2 episodes were not run" in done.out


@pytest.mark.parametrize("agent", ["context.openai().chat.completions.create(model='x', messages=[])"], indirect=True)
def test_a_graph_that_contradicts_the_contract_ends_the_run(cli: CommandLine, agent: str) -> None:
    done = cli.run("strict", "--limit", "2", "--agent", agent)
    assert done.code == 2
    assert "The agent's request sets model to 'x'" in done.err
    assert done.err.rstrip().endswith("or change model in the contract.")
    assert cli.sql("select status from runs") == [{"status": "failed"}]


@pytest.mark.parametrize(
    "agent",
    ["return type('G', (), {'invoke': lambda *a: {'messages': [{'role': 'assistant', 'content': 'x'}]}})()"],
    indirect=True,
)
def test_a_graph_that_asks_no_model_proves_nothing(cli: CommandLine, agent: str) -> None:
    done = cli.run_json("strict", "--limit", "1", "--agent", agent)
    assert (done.code, set(done.verdicts.values())) == (2, {"unproven"})


def outside(cli: CommandLine, config: FakeConfig, *arguments: str) -> Done:
    with FakeVllm(config) as server:
        options = ["--contract", "strict", "--limit", "1", "--base-url", server.base_url, *arguments]
        return cli("run", SUITE, *options)


QUIET_SERVER = FakeConfig(prefix_caching=False, max_num_seqs=1)


def test_anothers_server_leaves_open_what_only_a_managed_one_can_keep(cli: CommandLine) -> None:
    done = outside(cli, QUIET_SERVER, "--json", "--quiet")
    open_clauses = [clause for clause, verdict in done.verdicts.items() if verdict == "unproven"]
    assert (done.code, open_clauses) == (2, ["batching", "model", "boot"])
    assert "breached" not in done.verdicts.values()
    shown = cli("show")
    assert "others' are unknown" in shown.out
    assert "the server is not ours, restarts are unseen" in shown.out
    assert "not ours to hash" in shown.out
    assert shown.out.splitlines()[-1].startswith("verdict   unproven")


def test_a_breach_of_anothers_server_shows_before_the_first_episode(cli: CommandLine) -> None:
    done = outside(cli, FakeConfig(), "--quiet")
    assert (done.code, done.out) == (2, "")
    assert "cannot be kept here, so no episode was started:\n  cache: probe: the same prompt again" in done.err
    assert done.err.rstrip().endswith("or take one that works here with --contract: invariant, isolated, default.")


@pytest.mark.parametrize(
    ("config", "model", "words"),
    [
        pytest.param(QUIET_SERVER, "other", "does not serve 'other'. Name what it serves", id="another model"),
        pytest.param(FakeConfig(api_key="secret"), "fake", "401", id="a key is missing"),
    ],
)
def test_anothers_server_that_cannot_be_used(cli: CommandLine, config: FakeConfig, model: str, words: str) -> None:
    done = outside(cli, config, "--model", model)
    assert done.code == 2
    assert words in done.err


def test_anothers_key_comes_from_the_environment(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_API_KEY", "secret")
    done = outside(cli, FakeConfig(prefix_caching=False, max_num_seqs=1, api_key="secret"), "--json", "--quiet")
    assert done.summary["episodes"]["finished"] == 2
    kept = cli.sql("select facts::varchar || env::varchar as said from boots")
    assert "secret" not in kept[0]["said"]


def test_a_port_of_ones_own_needs_a_managed_server(cli: CommandLine) -> None:
    done = outside(cli, QUIET_SERVER, "--port", "9999")
    assert (done.code, "--port is for a managed server" in done.err) == (2, True)


@pytest.mark.parametrize("field", ["cache_salt", "min_p"])
def test_a_server_that_lacks_a_field_is_refused_before_the_first_episode(
    cli: CommandLine, engine_env: Callable[..., None], field: str
) -> None:
    config: dict[str, Any] = {"unknown_fields": [field]}
    engine_env(config)
    done = cli.run("strict", "--limit", "1", "--quiet")
    assert done.code == 2
    assert f"chat completions have no field '{field}'" in done.err
    assert cli.sql("select count(*) n from turns") == [{"n": 0}]
