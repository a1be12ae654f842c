"""A matrix of runs on the stand-in: cells, what is run again, the table and what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import httpx
import pytest

from .conftest import SUITE, CommandLine, Done

SWEEP = """\
name: small
description: Two contracts.
suite: {suite}
samples: 1
select: {{limit: 3}}
axes:
  serving:
    strict: {{extends: strict, model: {model}}}
    default: {{extends: default, model: {model}}}
    invariant: {{extends: invariant, model: {model}}}
reference: {{serving: strict}}
servers: {{at_once: 2}}
"""


@pytest.fixture
def file(cli: CommandLine, tmp_path: Path) -> Path:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP.format(suite=SUITE, model=cli.model))
    return path


def statuses(done: Done) -> dict[str, str]:
    return {cell["cell"]: cell["status"] for cell in json.loads(done.out)["cells"]}


def test_every_cell_has_an_outcome_and_those_that_ran_are_compared(cli: CommandLine, file: Path) -> None:
    done = cli("sweep", file, "--json", "--quiet")
    assert done.code == 0
    assert statuses(done) == {"strict": "run", "default": "run", "invariant": "refused"}
    rates = {
        (item["cell"], item["against"]): {level: rate["count"] for level, rate in item["rates"].items()}
        for item in json.loads(done.out)["comparisons"]
    }
    assert rates["strict", "repeats"] == dict.fromkeys(("logprobs", "tokens", "calls", "tools", "outcome"), 0)
    assert rates["default", "reference"]["logprobs"] == 6
    assert set(rates) == {("strict", "repeats"), ("default", "repeats"), ("default", "reference")}


def test_a_cell_that_cannot_be_kept_says_why(cli: CommandLine, file: Path) -> None:
    done = cli("sweep", file, "--quiet")
    assert "invariant: refused: engine: attention backend TRITON_ATTN needs a GPU" in done.out


def test_cells_that_were_run_are_taken_as_they_are(cli: CommandLine, file: Path) -> None:
    first = cli("sweep", file, "--json", "--quiet")
    again = cli("sweep", file, "--json", "--quiet")
    assert statuses(again) == {"strict": "reused", "default": "reused", "invariant": "refused"}
    runs = [[cell["run_id"] for cell in json.loads(done.out)["cells"]] for done in (first, again)]
    assert runs[0] == runs[1]
    assert json.loads(again.out)["comparisons"] == json.loads(first.out)["comparisons"]


def test_a_cells_verdict_that_no_run_writes_is_named(cli: CommandLine, file: Path) -> None:
    cli("sweep", file, "--quiet")
    with duckdb.connect(str(cli.db)) as connection:
        connection.execute("UPDATE runs SET verdict = 'maybe'")
    done = cli("sweep", "--show")
    assert done.code == 2
    assert "its table runs holds what no run writes: " in done.err


def test_cells_can_be_left_for_later(cli: CommandLine, file: Path) -> None:
    first = cli("sweep", file, "--json", "--quiet", "--only", "str*")
    assert first.code == 2
    assert statuses(first) == {"strict": "run", "default": "left", "invariant": "refused"}
    assert statuses(cli("sweep", file, "--json", "--quiet"))["default"] == "run"


def test_a_changed_cell_is_run_anew(cli: CommandLine, file: Path) -> None:
    cli("sweep", file, "--quiet")
    file.write_text(
        file.read_text().replace("{extends: default,", "{extends: default, contract: {sampling: {seed: 5}},")
    )
    assert statuses(cli("sweep", file, "--json", "--quiet")) == {
        "strict": "reused",
        "default": "run",
        "invariant": "refused",
    }


def test_a_run_of_the_same_contract_by_hand_counts(cli: CommandLine, file: Path) -> None:
    cli.run("strict", "--limit", "3", "--quiet")
    assert statuses(cli("sweep", file, "--json", "--quiet"))["strict"] == "reused"


def test_a_cell_that_breaks_off_spares_the_others_and_is_run_next_time(
    cli: CommandLine, file: Path, engine_env: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(file.read_text().replace("{extends: default,", "{extends: isolated,"))
    engine_env(die_after_requests=14)
    done = cli("sweep", file, "--json", "--quiet")
    assert done.code == 2
    assert statuses(done)["strict"] == "failed"
    monkeypatch.delenv("FAKE_VLLM_DIE_AFTER_REQUESTS")
    assert statuses(cli("sweep", file, "--json", "--quiet"))["strict"] == "run"


SAME_SERVER = """\
name: drawn
description: Two temperatures on one server, and the control on its own.
suite: {suite}
samples: 1
select: {{limit: 2}}
axes:
  serving:
    greedy: {{extends: strict, model: {model}}}
    drawn: {{extends: strict, model: {model}, contract: {{sampling: {{temperature: 0.7}}}}}}
    control: {{extends: default, model: {model}}}
    drawn-control: {{extends: default, model: {model}, contract: {{sampling: {{temperature: 0.7}}}}}}
reference: {{serving: greedy}}
servers: {{at_once: 1}}
"""


def test_cells_that_start_a_server_alike_share_it_unless_its_cache_is_shared(cli: CommandLine, file: Path) -> None:
    file.write_text(SAME_SERVER.format(suite=SUITE, model=cli.model))
    done = cli("sweep", file, "--json", "--quiet")
    assert {cell["verdict"] for cell in json.loads(done.out)["cells"][:2]} == {"kept"}
    boots = cli.sql(
        "select r.contract, b.base_url, b.reason, b.facts->>'served_before' served_before from boots b "
        "join runs r using (run_id) order by b.started_at"
    )
    assert [(boot["contract"], boot["served_before"]) for boot in boots] == [
        ("greedy", "false"),
        ("drawn", "true"),
        ("control", "false"),
        ("drawn-control", "false"),
    ]
    assert boots[0]["base_url"] == boots[1]["base_url"]
    assert [boot["reason"] for boot in boots] == ["kept for the next run"] * 2 + ["stopped"] * 2
    for boot in boots:
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{boot['base_url']}/health", timeout=2.0)
    run_id = json.loads(done.out)["cells"][1]["run_id"]
    assert cli("verify", run_id).code == 0


def test_the_whole_is_in_the_database(cli: CommandLine, file: Path) -> None:
    cli("sweep", file, "--quiet")
    found = cli.sql("select cell, level, pairs, differing from sweep_rates where against = 'reference' order by level")
    assert found[1] == {"cell": "default", "level": "logprobs", "pairs": 6, "differing": 6}
    assert len(found) == 5
    assert cli.sql("select count(*) n from sweep_pairs where cause_kind = 'setting'")[0]["n"] == 6


def test_the_table_can_be_printed_again(cli: CommandLine, file: Path) -> None:
    printed = cli("sweep", file, "--quiet")
    again = cli("sweep", "--show")
    assert (again.code, again.out) == (printed.code, printed.out)


def test_a_wrong_file_runs_nothing(cli: CommandLine, file: Path) -> None:
    file.write_text(file.read_text().replace("reference: {serving: strict}", "reference: {serving: no}"))
    done = cli("sweep", file)
    assert done.code == 2
    assert "the axis serving has no value 'no'" in done.err
    assert not cli.db.exists()


def test_no_sweep_yet_is_told(cli: CommandLine) -> None:
    cli.run("strict", "--limit", "1", "--repeats", "1", "--quiet")
    done = cli("sweep", "--show")
    assert done.code == 2
    assert "holds no sweep yet" in done.err
