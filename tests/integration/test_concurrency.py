"""Many episodes at once: order, company, and what is stored of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import CommandLine, Done

FOUR_AT_ONCE = """
name: four
description: strict with four requests at once.
extends: strict
batching: {mode: free, concurrency: 4}
repeats: {agree: measured}
"""


@pytest.fixture
def four_at_once(cli: CommandLine, tmp_path: Path) -> Done:
    contract = tmp_path / "four.yaml"
    contract.write_text(FOUR_AT_ONCE)
    return cli.run_json(contract, "--limit", "6")


@pytest.mark.usefixtures("four_at_once")
def test_a_repeat_begins_when_the_one_before_has_ended(cli: CommandLine) -> None:
    ends = "max(started_at + to_seconds(elapsed_s)) filter (repeat = 0)"
    found = cli.sql(f"select {ends} <= min(started_at) filter (repeat = 1) apart from episodes")
    assert found == [{"apart": True}]


def test_requests_are_together_and_never_more_than_the_contract_allows(cli: CommandLine, four_at_once: Done) -> None:
    assert four_at_once.summary["episodes"]["finished"] == 12
    peak = cli.sql("select max(requests_in_flight) peak from turns where kind = 'episode'")[0]["peak"]
    assert 1 < peak <= 4


@pytest.mark.usefixtures("four_at_once")
def test_every_episodes_turns_are_whole(cli: CommandLine) -> None:
    found = cli.sql(
        "select count(*) episodes from episodes e where turns = "
        "(select count(*) from turns t where t.episode_id = e.episode_id)"
    )
    assert found == [{"episodes": 12}]
