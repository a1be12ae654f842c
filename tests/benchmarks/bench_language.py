"""How long a mock call and the check of large suites take: `python tests/benchmarks/bench_language.py`.

Each figure comes from fresh processes, since parsed expressions and schemas are kept. Pytest does not collect this.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CALL_LIMIT_US = 200.0
"""Median of one mock call."""
LOAD_LIMIT_S = 3.0
"""Load and check of all suites."""
SUITES, TASKS, TASKS_A_FILE = 100, 100, 25
CALLS, PROCESSES = 2_000, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    median: float
    p90: float
    unit: str
    limit: float | None


HEAD = """\
name: bench-{suite}
description: Orders of a shop, number {suite}.
agent:
  system_prompt: You solve the user's request by calling tools.
  tool_choice: required
  max_turns: 8
  max_tokens: 128
  parallel_tool_calls: false
  finish_tool: finish
"""
TOOLS = """\
tools:
  - name: find_order_{file}
    description: Find an order by its id.
    parameters: &by_id
      type: object
      properties:
        id: {{type: string, description: The order's id.}}
        reason: {{type: string}}
      required: [id]
      additionalProperties: false
    cases:
      - when: "!(args.id in world.orders)"
        error: "there is no order ${{args.id}}"
    default:
      returns: {{id: "${{args.id}}", units: "${{world.orders[args.id].units}}", at: "${{clock}}"}}
  - name: ship_order_{file}
    description: Ship units of an order.
    parameters:
      type: object
      properties:
        id: {{type: string}}
        units: {{type: integer, minimum: 1}}
      required: [id, units]
      additionalProperties: false
    cases:
      - when: "!(args.id in world.orders)"
        error: "there is no order ${{args.id}}"
      - when: args.units > world.orders[args.id].units
        error: "only ${{world.orders[args.id].units}} left"
    default:
      returns: {{shipped: "${{args.units}}", left: "${{world.orders[args.id].units - args.units}}"}}
      effects:
        - {{op: replace, path: "/orders/${{args.id}}/units", value: "${{world.orders[args.id].units - args.units}}"}}
        - {{op: add, path: /log/-, value: {{id: "${{args.id}}", at: "${{clock}}"}}}}
tasks:
"""
TASK = """\
  - name: task-{task}
    tags: [orders, stateful]
    prompt: >-
      Ship {units} units of order A-{task} for customer {task}, but look first whether there are enough of them, then
      finish with what is left of the order.
    tools: [find_order_{file}, ship_order_{file}]
    world:
      orders:
        A-{task}: {{units: {stock}, item: lamp, customer: customer-{task}, paid: true}}
        B-{task}: {{units: 3, item: mug, customer: customer-{task}, paid: false}}
      log: []
    checks:
      - {{kind: world, that: "world.orders['A-{task}'].units == {left} && size(world.log) == 1"}}
      - {{kind: called, tool: ship_order_{file}, arguments: {{id: A-{task}, units: {units}}}, at_most: 1}}
      - {{kind: answer, number: {left}}}
"""


def write_suites(folder: Path, count: int = SUITES) -> list[Path]:
    """Folders of suites with as many tasks each; two tools a file, which its tasks share."""
    suites = []
    for number in range(count):
        suite = folder / f"suite-{number:03d}"
        suite.mkdir()
        (suite / "suite.yaml").write_text(HEAD.format(suite=number))
        for file in range(TASKS // TASKS_A_FILE):
            text = TOOLS.format(file=file)
            for place in range(TASKS_A_FILE):
                task = file * TASKS_A_FILE + place
                units, stock = 1 + task % 7, 10 + task + number
                text += TASK.format(task=task, file=file, units=units, stock=stock, left=stock - units)
            (suite / f"orders-{file}.yaml").write_text(text)
        suites.append(suite)
    return suites


def measure_calls() -> dict[str, list[float]]:
    """Microseconds of calls with a condition, templates and a patch, by size of the world; each in its next state."""
    from agenteval.spec import ToolMock
    from agenteval.tools import State, ToolKit, call_tool

    mock = ToolMock.model_validate_json(json.dumps(SHIP))
    kit = ToolKit(mocks={"ship": mock})
    found = {}
    for name, orders in (("small", 4), ("large", 200)):
        world = {
            "orders": {f"A-{n}": {"units": 1_000_000, "item": "lamp", "customer": f"c{n}"} for n in range(orders)},
            "log": [],
        }
        state, spent = State.begin(world=world, clock="2026-01-15T09:00:00Z"), []
        for place in range(CALLS):
            if place % 20 == 0:
                state = State.begin(world=world, clock="2026-01-15T09:00:00Z")
            began = time.perf_counter_ns()
            outcome = call_tool(kit, "ship", '{"id": "A-1", "units": 2}', state)
            spent.append((time.perf_counter_ns() - began) / 1_000)
            assert outcome.error is None
            state = outcome.state
        found[name] = spent[CALLS // 10 :]
    return found


SHIP: dict[str, Any] = {
    "name": "ship",
    "description": "Ships units of an order.",
    "parameters": {
        "type": "object",
        "properties": {"id": {"type": "string"}, "units": {"type": "integer", "minimum": 1}},
        "required": ["id", "units"],
        "additionalProperties": False,
    },
    "cases": [{"when": "!(args.id in world.orders)", "error": "there is no order ${args.id}"}],
    "default": {
        "returns": {"shipped": "${args.units}", "left": "${world.orders[args.id].units - args.units}"},
        "effects": [
            {
                "op": "replace",
                "path": "/orders/${args.id}/units",
                "value": "${world.orders[args.id].units - args.units}",
            },
            {"op": "add", "path": "/log/-", "value": {"id": "${args.id}", "at": "${clock}"}},
        ],
    },
}


def measure_check(folder: Path) -> float:
    """Seconds that `agenteval check` takes for every suite below a folder, its start included."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "agenteval", "check", str(folder)], check=True, capture_output=True)
    return time.perf_counter() - began


def in_a_process(*arguments: str) -> Any:
    """What this file prints, in a process of its own."""
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def p90(values: list[float]) -> float:
    """The value that nine in ten stay below."""
    return statistics.quantiles(values, n=10)[-1] if len(values) > 1 else values[0]


def rows() -> list[Row]:
    """All figures."""
    runs = [in_a_process("--calls") for _ in range(PROCESSES)]
    found = []
    for name, what in (("small", "mock call, 4 orders"), ("large", "mock call, 200 orders")):
        spent = [value for run in runs for value in run[name]]
        limit = CALL_LIMIT_US if name == "small" else None
        found.append(Row(what=what, median=statistics.median(spent), p90=p90(spent), unit="us", limit=limit))
    with tempfile.TemporaryDirectory() as folder:
        write_suites(Path(folder))
        checks = [measure_check(Path(folder)) for _ in range(PROCESSES)]
    what = f"check of {SUITES} suites x {TASKS} tasks"
    found.append(Row(what=what, median=statistics.median(checks), p90=p90(checks), unit="s", limit=LOAD_LIMIT_S))
    return found


def table(lines: list[Row]) -> str:
    """The figures as text."""
    shown = [f"{'what':<42}{'median':>10}{'p90':>10}{'limit':>8}"]
    for row in lines:
        limit = "-" if row.limit is None else f"{row.limit:g}"
        verdict = "" if row.limit is None or row.median <= row.limit else "  over the limit"
        shown.append(f"{row.what:<42}{row.median:>10.2f}{row.p90:>10.2f}{limit:>8} {row.unit}{verdict}")
    return "\n".join(shown)


def main() -> int:
    """Print the table, or one raw figure for the process that asked; 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true", help="raw microseconds of calls, as JSON")
    parser.add_argument("--write", type=Path, help="write the suites into a folder, to profile with")
    arguments = parser.parse_args()
    if arguments.calls:
        print(json.dumps(measure_calls()))
    elif arguments.write:
        write_suites(arguments.write)
    else:
        found = rows()
        print(table(found))
        return int(any(row.limit is not None and row.median > row.limit for row in found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
