"""How each record stands in its table: columns, and the way there and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, NotRequired

import pyarrow as pa
import pydantic
from typing_extensions import TypedDict

from agenteval.errors import DamagedRecordError
from agenteval.loading import wrong_fields
from agenteval.records import (
    Boot,
    BootEnd,
    Divergence,
    Episode,
    EpisodePlan,
    Evidence,
    FaultCount,
    Grade,
    Run,
    RunEnd,
    TaskRecord,
    ToolCall,
    Turn,
)
from agenteval.store.lines import DAMAGE, Row
from agenteval.store.table import BOOL, INT, MOMENT, REAL, TEXT, Table

RUNS = Table(
    name="runs",
    columns={
        "run_id": TEXT,
        "suite": TEXT,
        "suite_digest": TEXT,
        "contract": TEXT,
        "contract_digest": TEXT,
        "contract_fields": TEXT,
        "model": TEXT,
        "model_digest": TEXT,
        "agent": TEXT,
        "samples": INT,
        "repeats": INT,
        "planned_episodes": INT,
        "started_at": MOMENT,
        "agenteval_version": TEXT,
        "facts": TEXT,
        "status": TEXT,
    },
    json_columns=frozenset({"contract_fields", "facts"}),
)
TASKS = Table(
    name="tasks",
    columns={"run_id": TEXT, "task": TEXT, "variant": TEXT, "tags": pa.list_(TEXT), "definition": TEXT},
    json_columns=frozenset({"definition"}),
)
BOOTS = Table(
    name="boots",
    columns={
        "boot_id": TEXT,
        "run_id": TEXT,
        "is_managed": BOOL,
        "started_at": MOMENT,
        "ready_s": REAL,
        "base_url": TEXT,
        "argv": pa.list_(TEXT),
        "env": TEXT,
        "facts": TEXT,
    },
    json_columns=frozenset({"env", "facts"}),
)
EPISODES = Table(
    name="episodes",
    columns={
        "episode_id": TEXT,
        "run_id": TEXT,
        "boot_id": TEXT,
        "position": INT,
        "task": TEXT,
        "variant": TEXT,
        "sample": INT,
        "repeat": INT,
        "seed": INT,
        "cache_salt": TEXT,
        "status": TEXT,
        "stop_reason": TEXT,
        "message": TEXT,
        "answer": TEXT,
        "world": TEXT,
        "turns": INT,
        "started_at": MOMENT,
        "elapsed_s": REAL,
    },
    json_columns=frozenset({"world"}),
)
TURNS = Table(
    name="turns",
    columns={
        "run_id": TEXT,
        "boot_id": TEXT,
        "episode_id": TEXT,
        "turn": INT,
        "kind": TEXT,
        "started_at": MOMENT,
        "elapsed_s": REAL,
        "queued_s": REAL,
        "requests_in_flight": INT,
        "request": TEXT,
        "messages_kept": INT,
        "messages_added": TEXT,
        "prompt_tokens": INT,
        "prompt_kept": INT,
        "prompt_added": pa.list_(INT),
        "is_continuous": BOOL,
        "output_ids": pa.list_(INT),
        "output_tokens": pa.list_(TEXT),
        "logprobs": pa.list_(pa.float32()),
        "runner_up_tokens": pa.list_(TEXT),
        "runner_up_logprobs": pa.list_(pa.float32()),
        "cached_tokens": INT,
        "finish_reason": TEXT,
        "content": TEXT,
        "response": TEXT,
    },
    json_columns=frozenset({"request", "messages_added", "response"}),
    keeps_order=True,
)
TOOL_CALLS = Table(
    name="tool_calls",
    columns={
        "run_id": TEXT,
        "episode_id": TEXT,
        "turn": INT,
        "call": INT,
        "call_id": TEXT,
        "server_call_id": TEXT,
        "tool": TEXT,
        "arguments": TEXT,
        "result": TEXT,
        "error": TEXT,
        "is_broken": BOOL,
        "state_digest": TEXT,
        "world_patch": TEXT,
        "is_repeatable": BOOL,
        "fault": TEXT,
    },
    json_columns=frozenset({"world_patch"}),
)
GRADES = Table(
    name="grades",
    columns={
        "run_id": TEXT,
        "episode_id": TEXT,
        "check": INT,
        "kind": TEXT,
        "passed": BOOL,
        "reason": TEXT,
        "weight": REAL,
    },
)
EVIDENCE = Table(
    name="evidence",
    columns={
        "run_id": TEXT,
        "clause": TEXT,
        "fact": TEXT,
        "verdict": TEXT,
        "expected": TEXT,
        "observed": TEXT,
        "detail": TEXT,
    },
    json_columns=frozenset({"detail"}),
)
DIVERGENCES = Table(
    name="divergences",
    columns={
        "run_id": TEXT,
        "episode_a": TEXT,
        "episode_b": TEXT,
        "task": TEXT,
        "variant": TEXT,
        "sample": INT,
        "repeat_a": INT,
        "repeat_b": INT,
        "level": TEXT,
        "turn": INT,
        "token": INT,
        "text_a": TEXT,
        "text_b": TEXT,
        "margin_a": REAL,
        "margin_b": REAL,
        "cause": TEXT,
        "cause_kind": TEXT,
    },
)
_LATER: Row = {"fault": None, "is_broken": None}
"""Fields of calls that schemas after the first have added, as an older runner's calls have them."""
TABLES = {
    table.name: table for table in (RUNS, TASKS, BOOTS, EPISODES, TURNS, TOOL_CALLS, GRADES, EVIDENCE, DIVERGENCES)
}


def arrow_tables(lines: list[Row]) -> dict[str, pa.Table]:
    """The rows that lines add, by table; raises one of `DAMAGE` where a value does not fit its column."""
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    for line in lines:
        for name, row in rows_of(line):
            rows[name].append(row)
    return {name: TABLES[name].to_arrow(added) for name, added in rows.items() if added}


def rows_of(line: Row) -> list[tuple[str, Row]]:
    """The rows that a journal's line adds, as (table, row); a RunEnd and a BootEnd add none."""
    kind = line["record"]
    if kind == "Run":
        return [("runs", {**line, "status": "running"})]
    if kind == "Turn":
        shared = {"run_id": line["run_id"], "episode_id": line["episode_id"], "turn": line["turn"]}
        return [("turns", line), *(("tool_calls", {**_LATER, **call, **shared}) for call in line["tool_calls"])]
    if kind == "Episode":
        plan = line["plan"]
        episode_id = EpisodePlan(**plan).episode_id
        return [("episodes", {**line, **plan, "episode_id": episode_id})]
    simple = {
        "TaskRecord": "tasks",
        "Boot": "boots",
        "Grade": "grades",
        "Evidence": "evidence",
        "Divergence": "divergences",
    }
    return [(simple[kind], line)] if kind in simple else []


class _Fault(TypedDict):
    kind: str


class _Definition(TypedDict):
    """What is read of a task's definition."""

    faults: list[_Fault]
    checks: NotRequired[list[dict[str, Any]]]


class _ServerFacts(TypedDict, total=False):
    """What is read of what a server said of itself."""

    served_models: list[str]
    cache_config: dict[str, Any]
    config: dict[str, Any]
    log: dict[str, Any]
    metrics: dict[str, float]


_SHAPES: dict[tuple[str, str], pydantic.TypeAdapter[Any]] = {
    ("tasks", "definition"): pydantic.TypeAdapter(_Definition),
    ("boots", "facts"): pydantic.TypeAdapter(_ServerFacts),
    ("boots", "metrics"): pydantic.TypeAdapter(dict[str, float]),
}
"""By table and column, what a JSON value must hold besides what its record says of it."""
_PER_TOKEN = ("output_ids", "output_tokens", "logprobs", "runner_up_tokens", "runner_up_logprobs")
"""Columns of a turn with one entry for each token of the answer."""

_ADAPTERS: dict[type[Any], pydantic.TypeAdapter[Any]] = {
    kind: pydantic.TypeAdapter(kind)
    for kind in (
        Run,
        RunEnd,
        TaskRecord,
        Boot,
        BootEnd,
        EpisodePlan,
        Episode,
        ToolCall,
        Turn,
        Grade,
        FaultCount,
        Evidence,
        Divergence,
    )
}
"""Checks a row's values against the types of its record."""


def _record(kind: type[Any], table: str, row: Row, *parsed: str) -> Any:
    """A row as a record whose every value is what the record's type says; `parsed` names its JSON columns.

    Raises:
        DamagedRecordError: If a value is none that a run writes.
    """
    try:
        values = {**row, **{name: json.loads(row[name]) for name in parsed}}
        for name in parsed:
            if (table, name) in _SHAPES:
                _SHAPES[table, name].validate_python(values[name], strict=True)
        return _ADAPTERS[kind].validate_python(_only(kind, values))
    except pydantic.ValidationError as error:
        raise DamagedRecordError(run_id=row["run_id"], table=table, reason=wrong_fields(error)) from error
    except DAMAGE as error:
        raise DamagedRecordError(run_id=row["run_id"], table=table, reason=str(error)) from error


def run_from(row: Row) -> Run:
    """A row of `runs` as its record."""
    run: Run = _record(Run, "runs", row, "contract_fields", "facts")
    return run


def run_end_from(row: Row) -> RunEnd | None:
    """How a run ended; None while it is running, or where its runner died."""
    return None if row["ended_at"] is None else _record(RunEnd, "runs", row)


def task_from(row: Row) -> TaskRecord:
    """A row of `tasks` as its record."""
    task: TaskRecord = _record(TaskRecord, "tasks", row, "definition")
    return task


def boot_from(row: Row) -> Boot:
    """A row of `boots` as its record."""
    boot: Boot = _record(Boot, "boots", row, "env", "facts")
    return boot


def boot_end_from(row: Row) -> BootEnd | None:
    """How a boot ended; None where nothing was recorded."""
    return None if row["ended_at"] is None else _record(BootEnd, "boots", row, "metrics")


def episode_from(row: Row) -> Episode:
    """A row of `episodes` as its record."""
    plan = _record(EpisodePlan, "episodes", row)
    episode: Episode = _record(Episode, "episodes", {**row, "plan": plan}, "world")
    return episode


def tool_call_from(row: Row) -> ToolCall:
    """A row of `tool_calls` as its record."""
    call: ToolCall = _record(ToolCall, "tool_calls", {**_LATER, **row}, "world_patch")
    return call


def turn_from(row: Row, calls: tuple[ToolCall, ...]) -> Turn:
    """A row of `turns`, with its calls, as its record."""
    turn: Turn = _record(Turn, "turns", {**row, "tool_calls": calls}, "request", "response", "messages_added")
    lengths = {len(getattr(turn, name)) for name in _PER_TOKEN}
    if len(lengths) > 1:
        place = f"turn {turn.turn} of {turn.episode_id}"
        reason = f"{', '.join(_PER_TOKEN)} of {place} are not equally long"
        raise DamagedRecordError(run_id=turn.run_id, table="turns", reason=reason)
    return turn


def grade_from(row: Row) -> Grade:
    """A row of `grades` as its record."""
    grade: Grade = _record(Grade, "grades", row)
    return grade


def fault_count_from(row: Row) -> FaultCount:
    """A row of the view `faults` as its record."""
    count: FaultCount = _record(FaultCount, "faults", row)
    return count


def evidence_from(row: Row) -> Evidence:
    """A row of `evidence` as its record."""
    evidence: Evidence = _record(Evidence, "evidence", row, "detail")
    return evidence


def divergence_from(row: Row) -> Divergence:
    """A row of `divergences` as its record."""
    divergence: Divergence = _record(Divergence, "divergences", {"cause_kind": None, **row})
    return divergence


FROM_ROW: dict[str, Callable[[Row], Any]] = {
    "runs": run_from,
    "tasks": task_from,
    "boots": boot_from,
    "episodes": episode_from,
    "grades": grade_from,
    "evidence": evidence_from,
    "divergences": divergence_from,
}


def _only(kind: type[Any], row: Row) -> Row:
    return {item.name: row[item.name] for item in dataclasses.fields(kind)}
