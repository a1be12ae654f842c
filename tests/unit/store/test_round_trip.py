"""What is stored reads back equal, to the last bit of a float32 logprob."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import strategies
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agenteval.errors import StoreError, UnknownNameError
from agenteval.records import Evidence, RunEnd
from agenteval.schema import MIGRATIONS
from agenteval.store import RunReader, RunWriter
from agenteval.store.lines import KINDS, Record, parse_line, to_line
from agenteval.store.tables import TABLES, rows_of

from .conftest import NOW, make_call, make_episode, make_run, make_turn

_numbers = itertools.count()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One database for all examples; each is a run of its own."""
    return tmp_path_factory.mktemp("shared") / "runs.duckdb"


# Without shrinking: an example takes a fifth of a second, and a failing one is small enough to read.
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(st.data())
def test_every_record_reads_back_equal(shared: Path, data: st.DataObject) -> None:
    run_id = f"run-{next(_numbers)}"
    run = data.draw(strategies.runs(run_id))
    tasks = data.draw(
        st.lists(strategies.task_records(run_id), max_size=3, unique_by=lambda task: (task.task, task.variant))
    )
    boot, boot_end = data.draw(strategies.boots(run_id)), data.draw(strategies.boot_ends(run_id))
    episodes = [data.draw(strategies.episodes(run_id, place)) for place in range(2)]
    ids = [episode.plan.episode_id for episode in episodes]
    turns = {ids[0]: [data.draw(strategies.turns(run_id, ids[0], turn)) for turn in range(2)], ids[1]: []}
    grades = [data.draw(strategies.grades(run_id, ids[0], check)) for check in range(2)]
    evidence = data.draw(st.lists(strategies.evidence(run_id), max_size=3))
    divergences = data.draw(st.lists(strategies.divergences(run_id), max_size=1))
    end = data.draw(strategies.run_ends(run_id))
    with RunWriter(shared, run) as writer:
        records: list[Record] = [
            *tasks,
            boot,
            *turns[ids[0]],
            *episodes,
            *grades,
            *evidence,
            *divergences,
            boot_end,
            end,
        ]
        for record in records:
            writer.append(record)
    reader = RunReader(path=shared, run_id=run_id)
    assert reader.run() == (run, end)
    assert reader.tasks() == tasks
    assert reader.boots() == [(boot, boot_end)]
    assert reader.episodes() == episodes
    assert reader.grades() == grades
    assert reader.evidence() == evidence
    assert reader.divergences() == divergences
    assert list(reader.turns(ids[0])) == turns[ids[0]]
    of_episodes = {ids[0]: tuple(turn for turn in turns[ids[0]] if turn.kind == "episode"), ids[1]: ()}
    assert {episode.plan.episode_id: found for episode, found in reader.trajectories()} == of_episodes
    probes = [turn for turn in turns[ids[0]] if turn.kind == "probe"]
    assert sorted(reader.probe_turns(), key=lambda turn: turn.turn) == probes


@given(st.data())
def test_a_lines_fields_are_the_records(data: st.DataObject) -> None:
    turn = data.draw(strategies.turns("run", "run/00000"))
    line = parse_line(to_line(turn).encode())
    assert (line["request"], line["response"], line["started_at"]) == (turn.request, turn.response, turn.started_at)


def test_moments_in_the_users_own_data_stay_text() -> None:
    evidence = Evidence(
        run_id="r",
        clause="cache",
        fact="f",
        verdict="kept",  # type: ignore[arg-type]
        expected="",
        observed="",
        detail={"created_at": "2026-01-15T09:00:00", "deep": [{"ended_at": "2026-01-15"}]},
    )
    assert parse_line(to_line(evidence).encode())["detail"] == evidence.detail


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_moments_are_read_in_utc_wherever_one_is(database: Path, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    with RunWriter(database, make_run()):
        pass
    read = RunReader(path=database, run_id="run-a").run()[0].started_at
    assert (read, read.utcoffset()) == (NOW, NOW.utcoffset())


def test_trajectories_keep_repeats_together_and_turns_with_their_own_calls(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        for position, sample, repeat, turns in [(0, 1, 1, 2), (1, 0, 0, 0), (2, 1, 0, 0), (3, 0, 1, 2), (4, 0, 2, 1)]:
            episode = make_episode(position, sample=sample, repeat=repeat)
            for turn in range(turns):
                calls = tuple(make_call(call) for call in range((position + turn) % 3))
                of_episode = {"episode_id": episode.plan.episode_id, "kind": "episode", "tool_calls": calls}
                writer.append(replace(make_turn(turn), **of_episode))  # type: ignore[arg-type]
            writer.append(episode)
    found = [
        (episode.plan.sample, episode.plan.repeat, [len(turn.tool_calls) for turn in turns])
        for episode, turns in RunReader(path=database, run_id="run-a").trajectories()
    ]
    assert found == [(0, 0, []), (0, 1, [0, 1]), (0, 2, [1]), (1, 0, []), (1, 1, [0, 1])]


def test_half_a_surrogate_pair_is_kept_as_its_escape(database: Path) -> None:
    with RunWriter(database, make_run()) as writer:
        writer.append(make_turn(0, text="a\ud83db\U0001f600"))()
    [turn] = RunReader(path=database, run_id="run-a").turns("run-a/00000")
    assert (turn.content, turn.messages_added[0]["content"]) == ("a\\ud83db\U0001f600",) * 2


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, Path("x")], ids=["NaN", "infinity", "set", "path"]
)
def test_value_that_json_cannot_hold_is_refused_and_loses_nothing(database: Path, value: object) -> None:
    bad = RunEnd(run_id="run-a", ended_at=NOW, status="finished", verdict=None, message=value)  # type: ignore[arg-type]
    writer = RunWriter(database, make_run())
    for record in (make_turn(0), bad, make_turn(1)):
        writer.append(record)
    with pytest.raises(StoreError, match="A RunEnd cannot be stored"):
        writer.close()
    assert len(RunReader(path=database, run_id="run-a").turns("run-a/00000")) == 2


def test_who_waits_for_a_refused_record_is_told(database: Path) -> None:
    bad = RunEnd(run_id="run-a", ended_at=NOW, status="finished", verdict=None, message={1})  # type: ignore[arg-type]
    writer = RunWriter(database, make_run())
    with pytest.raises(StoreError, match="A RunEnd cannot be stored"):
        writer.append(bad)()
    with pytest.raises(StoreError, match="A RunEnd cannot be stored"):
        writer.close()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_line_reaches_a_table(kind: str) -> None:
    strategy = {
        "Run": strategies.runs("r"),
        "RunEnd": strategies.run_ends("r"),
        "TaskRecord": strategies.task_records("r"),
        "Boot": strategies.boots("r"),
        "BootEnd": strategies.boot_ends("r"),
        "Episode": strategies.episodes("r"),
        "Turn": strategies.turns("r", "r/00000"),
        "Grade": strategies.grades("r", "r/00000"),
        "Evidence": strategies.evidence("r"),
        "Divergence": strategies.divergences("r"),
    }[kind]

    @settings(max_examples=1, database=None, deadline=None)
    @given(strategy)
    def check(record: object) -> None:
        names = {name for name, _ in rows_of(parse_line(to_line(record).encode()))}  # type: ignore[arg-type]
        assert names <= TABLES.keys()
        assert names or kind in ("RunEnd", "BootEnd"), "an end changes the row of its beginning"

    check()


def test_every_column_that_is_written_exists() -> None:
    sql = " ".join(migration.sql for migration in MIGRATIONS)
    for table in TABLES.values():
        body = sql.split(f"CREATE TABLE {table.name} (")[1].split(");")[0]
        body += "".join(part.split(";")[0] for part in sql.split(f"ALTER TABLE {table.name} ADD COLUMN")[1:])
        assert all(f" {column} " in body or f'"{column}" ' in body for column in table.columns), table.name


def test_run_that_is_not_there_is_named_with_those_that_are(database: Path) -> None:
    with RunWriter(database, make_run()):
        pass
    with pytest.raises(UnknownNameError, match="run-a"):
        RunReader(path=database, run_id="run-b").run()
