"""How each record stands in its table: columns, and the way there and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired

import pyarrow as pa
import pydantic
from typing_extensions import TypedDict

from agenteval.digest import canonical_json, compact_json
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

_MOMENT = pa.timestamp("us", tz="UTC")
_TEXT, _INT, _BOOL, _REAL = pa.string(), pa.int32(), pa.bool_(), pa.float64()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table that records are appended to."""

    name: str
    columns: Mapping[str, pa.DataType]
    json_columns: frozenset[str] = frozenset()
    keeps_order: bool = False
    """Whether the keys of its JSON stay in their order: a chat template writes a request's into the prompt."""

    def to_arrow(self, rows: list[Row]) -> pa.Table:
        """Rows as an Arrow table; JSON columns as text, canonical unless the order of keys matters."""
        text = compact_json if self.keeps_order else canonical_json
        arrays = [
            pa.array([text(row[name]) if name in self.json_columns else row[name] for row in rows], type=kind)
            for name, kind in self.columns.items()
        ]
        return pa.table(dict(zip(self.columns, arrays, strict=True)))


RUNS = Table(
    name="runs",
    columns={
        "run_id": _TEXT,
        "suite": _TEXT,
        "suite_digest": _TEXT,
        "contract": _TEXT,
        "contract_digest": _TEXT,
        "contract_fields": _TEXT,
        "model": _TEXT,
        "model_digest": _TEXT,
        "agent": _TEXT,
        "samples": _INT,
        "repeats": _INT,
        "planned_episodes": _INT,
        "started_at": _MOMENT,
        "agenteval_version": _TEXT,
        "facts": _TEXT,
        "status": _TEXT,
    },
    json_columns=frozenset({"contract_fields", "facts"}),
)
TASKS = Table(
    name="tasks",
    columns={"run_id": _TEXT, "task": _TEXT, "variant": _TEXT, "tags": pa.list_(_TEXT), "definition": _TEXT},
    json_columns=frozenset({"definition"}),
)
BOOTS = Table(
    name="boots",
    columns={
        "boot_id": _TEXT,
        "run_id": _TEXT,
        "is_managed": _BOOL,
        "started_at": _MOMENT,
        "ready_s": _REAL,
        "base_url": _TEXT,
        "argv": pa.list_(_TEXT),
        "env": _TEXT,
        "facts": _TEXT,
    },
    json_columns=frozenset({"env", "facts"}),
)
EPISODES = Table(
    name="episodes",
    columns={
        "episode_id": _TEXT,
        "run_id": _TEXT,
        "boot_id": _TEXT,
        "position": _INT,
        "task": _TEXT,
        "variant": _TEXT,
        "sample": _INT,
        "repeat": _INT,
        "seed": _INT,
        "cache_salt": _TEXT,
        "status": _TEXT,
        "stop_reason": _TEXT,
        "message": _TEXT,
        "answer": _TEXT,
        "world": _TEXT,
        "turns": _INT,
        "started_at": _MOMENT,
        "elapsed_s": _REAL,
    },
    json_columns=frozenset({"world"}),
)
TURNS = Table(
    name="turns",
    columns={
        "run_id": _TEXT,
        "boot_id": _TEXT,
        "episode_id": _TEXT,
        "turn": _INT,
        "kind": _TEXT,
        "started_at": _MOMENT,
        "elapsed_s": _REAL,
        "queued_s": _REAL,
        "requests_in_flight": _INT,
        "request": _TEXT,
        "messages_kept": _INT,
        "messages_added": _TEXT,
        "prompt_tokens": _INT,
        "prompt_kept": _INT,
        "prompt_added": pa.list_(_INT),
        "is_continuous": _BOOL,
        "output_ids": pa.list_(_INT),
        "output_tokens": pa.list_(_TEXT),
        "logprobs": pa.list_(pa.float32()),
        "runner_up_tokens": pa.list_(_TEXT),
        "runner_up_logprobs": pa.list_(pa.float32()),
        "cached_tokens": _INT,
        "finish_reason": _TEXT,
        "content": _TEXT,
        "response": _TEXT,
    },
    json_columns=frozenset({"request", "messages_added", "response"}),
    keeps_order=True,
)
TOOL_CALLS = Table(
    name="tool_calls",
    columns={
        "run_id": _TEXT,
        "episode_id": _TEXT,
        "turn": _INT,
        "call": _INT,
        "call_id": _TEXT,
        "server_call_id": _TEXT,
        "tool": _TEXT,
        "arguments": _TEXT,
        "result": _TEXT,
        "error": _TEXT,
        "is_broken": _BOOL,
        "state_digest": _TEXT,
        "world_patch": _TEXT,
        "is_repeatable": _BOOL,
        "fault": _TEXT,
    },
    json_columns=frozenset({"world_patch"}),
)
GRADES = Table(
    name="grades",
    columns={
        "run_id": _TEXT,
        "episode_id": _TEXT,
        "check": _INT,
        "kind": _TEXT,
        "passed": _BOOL,
        "reason": _TEXT,
        "weight": _REAL,
    },
)
EVIDENCE = Table(
    name="evidence",
    columns={
        "run_id": _TEXT,
        "clause": _TEXT,
        "fact": _TEXT,
        "verdict": _TEXT,
        "expected": _TEXT,
        "observed": _TEXT,
        "detail": _TEXT,
    },
    json_columns=frozenset({"detail"}),
)
DIVERGENCES = Table(
    name="divergences",
    columns={
        "run_id": _TEXT,
        "episode_a": _TEXT,
        "episode_b": _TEXT,
        "task": _TEXT,
        "variant": _TEXT,
        "sample": _INT,
        "repeat_a": _INT,
        "repeat_b": _INT,
        "level": _TEXT,
        "turn": _INT,
        "token": _INT,
        "text_a": _TEXT,
        "text_b": _TEXT,
        "margin_a": _REAL,
        "margin_b": _REAL,
        "cause": _TEXT,
        "cause_kind": _TEXT,
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
