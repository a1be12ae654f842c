"""Bad input and faults: one clear message that ends with what to do, exit 2, and no finished turn lost."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_vllm import FakeConfig, FakeVllm

from .conftest import STRICT_PROBES, SUITE, CommandLine

Engine = Callable[..., None]


def contract_file(cli: CommandLine, text: str) -> Path:
    path = cli.folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


HEAD = "name: mine\ndescription: mine\nextends: strict\n"


@pytest.mark.parametrize(
    ("arguments", "words", "advice"),
    [
        pytest.param(["--model", "no-such-model"], "no-such-model", "a model on Hugging Face.", id="wrong model name"),
        pytest.param(["--contract", "strickt"], "'strickt'", "Did you mean 'strict'?", id="wrong contract name"),
        pytest.param(["--task", "busy-bnak"], "There is no task 'busy-bnak'", "Did you mean 'busy-bank'?", id="task"),
        pytest.param(["--tag", "nope"], "There is no tag 'nope'", "Name one of these.", id="wrong tag"),
        pytest.param(["--agent", "nothing"], "names no agent", "Write it as package.module:factory.", id="agent"),
        pytest.param(["--agent", "no_such_module:x"], "cannot be imported", "on PYTHONPATH?", id="agent's module"),
        pytest.param(
            ["--base-url", "http://127.0.0.1:9"], "127.0.0.1:9", "to have one started.", id="nobody at the base URL"
        ),
        pytest.param(["--limit", "0"], "no whole number above 0", "write 1 or more", id="limit"),
        pytest.param(["--port", "99999"], "no port", "write one from 1 to 65535", id="port"),
    ],
)
def test_a_wrong_option_is_answered_with_what_to_do(
    cli: CommandLine, arguments: list[str], words: str, advice: str
) -> None:
    defaults = ["--contract", "strict", "--model", str(cli.model), "--limit", "1"]
    done = cli("run", SUITE, *defaults, *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.rstrip().endswith(advice)


def test_a_mistake_of_our_own_is_not_taken_for_a_verdict(cli: CommandLine) -> None:
    (cli.folder / "duckdb.py").write_text("raise RuntimeError('a broken duckdb')")
    process = cli.start([sys.executable, "-m", "agenteval", "runs"])
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "RuntimeError: a broken duckdb" in err
    assert err.rstrip().endswith("Please report it, with the lines above.")


def test_a_server_that_wants_a_key_is_answered_with_where_to_put_it(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTEVAL_API_KEY", raising=False)
    with FakeVllm(FakeConfig(api_key="secret")) as server:
        done = cli("run", SUITE, "--contract", "default", "--base-url", server.base_url)
    assert done.code == 2
    assert done.err.rstrip().endswith("Set AGENTEVAL_API_KEY to a key that the server takes, then run again.")


def test_a_suite_that_is_none(cli: CommandLine) -> None:
    done = cli("run", cli.folder, "--contract", "strict")
    assert (done.code, "is no suite: it has no suite.yaml" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param(HEAD + "cache:\n  mode: off\nbatchng:\n  mode: serial\n", ["cache.mode", "batchng"], id="two"),
        pytest.param("name: [\n", ["mine.yaml"], id="no YAML"),
        pytest.param(HEAD + "cache: {mode: shared}\ncache: {mode: disabled}\n", ["cache"], id="a key twice"),
        pytest.param("", ["mine.yaml"], id="empty"),
    ],
)
def test_a_wrong_contract_names_every_problem_and_runs_nothing(
    cli: CommandLine, text: str, problems: list[str]
) -> None:
    done = cli.run(contract_file(cli, text))
    assert done.code == 2
    assert all(problem in done.err for problem in problems)
    assert "nothing was run" in done.err
    assert not cli.db.exists()


def test_a_wrong_task_file_names_every_problem(cli: CommandLine) -> None:
    suite = cli.folder / "suite"
    suite.mkdir()
    (suite / "suite.yaml").write_text((Path(SUITE) / "suite.yaml").read_text())
    (suite / "a.yaml").write_text("tasks:\n  - name: one\n    promt: hello\n    tools: [nothing]\n    checks: []\n")
    done = cli("run", suite, "--contract", "strict", "--model", cli.model)
    assert (done.code, "a.yaml:3" in done.err, "promt" in done.err) == (2, True, True)


def test_a_contract_for_another_model_is_refused(cli: CommandLine) -> None:
    digest = "sha256:" + "0" * 64
    done = cli.run(contract_file(cli, f"{HEAD}model:\n  digest: {digest}\n"))
    assert done.code == 2
    assert f"accepts only a model with digest {digest}" in done.err
    assert done.err.rstrip().endswith("or change model.digest in the contract.")


def test_a_taken_port_is_named(cli: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = cli.run("strict", "--limit", "1", "--port", str(port))
    assert done.code == 2
    assert f"Port {port} is taken. Name another one" in done.err


def test_out_of_memory_at_the_start_says_what_to_free(cli: CommandLine, engine_env: Engine) -> None:
    engine_env(exit_code=1, exit_text="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    done = cli.run("strict", "--limit", "1", "--quiet")
    assert done.code == 2
    assert "CUDA out of memory. Tried to allocate" in done.err
    assert "The GPU is full" in done.err
    assert str(cli.db) in done.err, "where the whole log is"
    assert cli.sql("select status from runs") == [{"status": "failed"}]


def test_an_engine_that_exits_shows_the_end_of_its_log(cli: CommandLine, engine_env: Engine) -> None:
    engine_env(exit_code=3, exit_text="RuntimeError: something else")
    done = cli.run("strict", "--limit", "1", "--quiet")
    assert (done.code, "RuntimeError: something else" in done.err) == (2, True)


def test_a_dead_server_costs_the_episode_in_flight_and_is_started_again(cli: CommandLine, engine_env: Engine) -> None:
    engine_env(die_after_requests=STRICT_PROBES + 15)
    done = cli.run("strict", "--limit", "3")
    assert done.code == 2
    assert "warning   the server died" in done.err
    rows = cli.sql("select boot_id, status, count(*) n from episodes group by all order by all")
    not_run = [row for row in rows if row["status"] == "not_run"]
    assert sum(row["n"] for row in rows) == 6
    assert len({row["boot_id"] for row in rows}) == len(cli.sql("select boot_id from boots")) == len(not_run) + 1
    assert [row["n"] for row in not_run] == [1] * len(not_run), "one episode for each death"
    assert "episodes were not run; mend the cause, then run again" in done.out
    assert done.out.count("not run: ") == len(not_run)


def test_the_turns_before_a_death_are_stored(cli: CommandLine, engine_env: Engine) -> None:
    engine_env(die_after_requests=STRICT_PROBES + 7)
    cli.run("strict", "--limit", "1", "--quiet")
    boots = cli.sql("select boot_id, count(*) n from turns group by boot_id order by boot_id")
    assert boots[0]["n"] == STRICT_PROBES + 7
    ends = cli.sql("select reason from boots order by started_at")
    assert ends[0]["reason"].startswith("no longer answered")


def test_a_server_that_keeps_dying_ends_the_run(cli: CommandLine, engine_env: Engine) -> None:
    engine_env(die_after_requests=STRICT_PROBES + 1)
    done = cli.run("strict", "--limit", "4", "--quiet")
    assert done.code == 2
    assert "5 of 8 episodes could not be run" in done.err
    assert cli.sql("select status from runs") == [{"status": "failed"}]
    assert len(cli.sql("select boot_id from boots")) == 3


def test_a_server_that_dies_during_its_probes_is_a_server_that_died(cli: CommandLine, engine_env: Engine) -> None:
    engine_env(die_after_requests=1)
    done = cli.run("strict", "--limit", "1", "--quiet")
    assert (done.code, "stopped answering" in done.err) == (2, True)


def test_one_bad_answer_costs_one_episode_and_no_server(cli: CommandLine, engine_env: Engine) -> None:
    engine_env({"faults": {"error_on": [STRICT_PROBES + 2]}})
    done = cli.run("strict", "--limit", "2", "--quiet")
    assert done.code == 2
    assert done.out.count("not run: ") == 1
    assert "The server answered 500" in done.out
    assert len(cli.sql("select boot_id from boots")) == 1


def test_a_response_without_its_evidence_says_how_to_see_which_version_answered(
    cli: CommandLine, engine_env: Engine
) -> None:
    engine_env({"faults": {"omit": ["token_ids"]}})
    done = cli.run("strict", "--limit", "1", "--quiet")
    assert (done.code, "has no usable 'choices[0].token_ids'" in done.err) == (2, True)
    advised = done.err.rstrip().rpartition("agenteval sql ")[2].strip('"')
    (answer,) = cli.sql(advised)
    assert list(answer.values())[1].startswith("0.")


def test_a_database_that_cannot_be_made_is_known_before_the_server_starts(cli: CommandLine) -> None:
    cli.folder /= "folder"
    cli.folder.write_text("a file where the folder should be")
    done = cli.run("strict", "--limit", "1")
    assert done.code == 2
    assert f"Cannot write {cli.db}" in done.err
    assert done.err.rstrip().endswith("or free some space.")
    assert "ready" not in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write read-only files")
def test_a_read_only_database_is_known_before_the_server_starts(cli: CommandLine) -> None:
    cli.run("strict", "--limit", "1", "--quiet")
    cli.db.chmod(stat.S_IRUSR)
    done = cli.run("strict", "--limit", "1")
    assert (done.code, "the file is read-only" in done.err, "ready" in done.err) == (2, True, False)


def test_a_cache_folder_that_is_a_file_is_a_message(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setenv("AGENTEVAL_CACHE", str(blocked))
    done = cli.run("strict", "--limit", "1", "--quiet")
    assert done.code == 2
    assert str(blocked) in done.err
