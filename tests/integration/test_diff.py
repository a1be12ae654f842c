"""Two runs beside each other on the stand-in: what pairs, what differs, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.compare import Trajectory, compare_pair, passed_by_episode
from agenteval.diff import RunDiff, diff_runs
from agenteval.diff.settings import settings_of
from agenteval.store import RunReader, run_ids

from .conftest import SUITE, CommandLine


def run(cli: CommandLine, contract: str | Path, *arguments: str) -> str:
    """Make a run; gives its id."""
    cli.run(contract, "--quiet", *arguments)
    return run_ids(cli.db)[-1]


@pytest.fixture
def strict(cli: CommandLine) -> str:
    return run(cli, "strict", "--limit", "4")


@pytest.fixture
def default(cli: CommandLine, strict: str) -> str:
    assert strict
    return run(cli, "default", "--limit", "4")


def diff(cli: CommandLine, a: str, b: str | None = None) -> RunDiff:
    readers = [RunReader(path=cli.db, run_id=run_id) for run_id in (a, b) if run_id is not None]
    return diff_runs(readers[0], readers[1] if b else None)


def test_repeats_that_agree_in_every_bit_are_identical(cli: CommandLine, strict: str) -> None:
    done = cli("diff", strict)
    assert done.code == 0
    assert "verdict   identical: all 4 pairs agree at logprobs" in done.out


def test_repeats_that_differ_are_told_with_their_cause(cli: CommandLine, default: str) -> None:
    done = cli("diff", default)
    assert done.code == 1
    assert "because   cache (4)" in done.out
    assert "cached tokens differ" in done.out


def test_a_looser_level_may_agree_where_a_stricter_one_does_not(cli: CommandLine, default: str) -> None:
    assert cli("diff", default, "--level", "logprobs").code == 1
    assert cli("diff", default, "--level", "outcome").code == 0


def test_two_runs_tell_what_was_set_otherwise(cli: CommandLine, strict: str, default: str) -> None:
    done = cli("diff", strict, default, "--json")
    found = json.loads(done.out)
    assert done.code == found["exit_code"] == 1
    assert found["settings"] == [
        "cache.mode: disabled against shared",
        "batching.mode: serial against free",
    ]
    assert found["rates"]["logprobs"]["of"] == 8
    assert set(found["causes"]) == {"setting"}
    signs = [pair["signs"] for pair in found["pairs"] if pair["divergence"]]
    assert all("settings differ" in each[0] and any("cached tokens differ" in sign for sign in each) for each in signs)


def test_a_run_compared_with_itself_is_identical(cli: CommandLine, strict: str) -> None:
    assert cli("diff", strict, strict).code == 0


def test_what_has_no_partner_is_named_with_the_reason(cli: CommandLine, strict: str) -> None:
    fewer = run(cli, "strict", "--limit", "3", "--repeats", "1")
    found = diff(cli, strict, fewer)
    assert len(found.pairs) == 3
    reasons = {item.reason for item in found.unpaired}
    assert reasons == {"b has no repeat 1", "b has no such task variant"}
    assert {item.side for item in found.unpaired} == {"a"}


def test_another_sample_has_no_partner(cli: CommandLine) -> None:
    one = run(cli, "strict", "--limit", "1", "--repeats", "1")
    two = run(cli, "strict", "--limit", "1", "--repeats", "1", "--samples", "2")
    found = diff(cli, one, two)
    assert [item.reason for item in found.unpaired] == ["a has no sample 1"]


def test_nothing_to_compare_is_no_agreement(cli: CommandLine) -> None:
    alone = run(cli, "strict", "--limit", "1", "--repeats", "1")
    done = cli("diff", alone)
    assert done.code == 2
    assert "verdict   none" in done.out


def test_tasks_that_are_defined_otherwise_do_not_pair(cli: CommandLine, strict: str, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    for file in Path(SUITE).iterdir():
        (folder / file.name).write_text(file.read_text().replace("prompt: ", "prompt: Please. ", 1))
    cli("run", folder, "--contract", "strict", "--model", cli.model, "--limit", "4", "--quiet")
    found = diff(cli, strict, run_ids(cli.db)[-1])
    assert "the task is defined otherwise in the other run" in {item.reason for item in found.unpaired}


def test_a_run_of_another_database_can_be_compared(cli: CommandLine, strict: str, tmp_path: Path) -> None:
    other = tmp_path / "it's another.duckdb"
    other.write_bytes(cli.db.read_bytes())
    done = cli("diff", strict, strict, "--db-b", other)
    assert done.code == 0


@pytest.mark.parametrize("arguments", [("nonsense",), ("--db-b", "missing.duckdb")])
def test_what_is_not_there_is_told(cli: CommandLine, strict: str, arguments: tuple[str, ...]) -> None:
    assert strict
    done = cli("diff", *arguments)
    assert done.code == 2
    assert done.err.startswith("agenteval: ")


def test_an_episode_is_shown_from_both_sides(cli: CommandLine, default: str) -> None:
    pair = diff(cli, default).diverging()[0]
    done = cli("diff", default, "--episode", f"{pair.task}/{pair.variant}")
    assert done.code == 1
    assert f"{pair.task}/{pair.variant}" in done.out
    for word in ("because", "then", "cached tokens", "runner-up", "≠" if pair.divergence.token is not None else "turn"):
        assert word in done.out


def test_an_unknown_episode_is_told(cli: CommandLine, default: str) -> None:
    done = cli("diff", default, "--episode", "no/such")
    assert done.code == 2
    assert "There is no compared episode 'no/such'" in done.err


@pytest.mark.parametrize("sides", ["repeats", "runs"])
def test_reading_less_changes_nothing(cli: CommandLine, strict: str, default: str, sides: str) -> None:
    """The database finds what is equal, so that it is not read: the same as comparing everything."""
    a = RunReader(path=cli.db, run_id=strict if sides == "runs" else default)
    b = RunReader(path=cli.db, run_id=default)
    found = diff_runs(a, b if sides == "runs" else None)
    settings = settings_of(a.run()[0], b.run()[0]) if sides == "runs" else ()
    whole = [
        {
            episode.plan.episode_id: Trajectory(
                episode=episode,
                turns=turns,
                passed=passed_by_episode(reader.grades()).get(episode.plan.episode_id),
            )
            for episode, turns in reader.trajectories()
        }
        for reader in (a, b)
    ]
    assert found.pairs
    for pair in found.pairs:
        expected = compare_pair(whole[0][pair.episode_a], whole[1][pair.episode_b], settings=settings)
        assert (pair.divergence, pair.aftermath, pair.signs) == (
            expected.divergence,
            expected.aftermath,
            expected.signs,
        )
