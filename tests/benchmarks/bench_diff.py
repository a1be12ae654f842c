"""How long `diff` takes on large runs, and how much memory: run it by hand, on a quiet machine.

    python tests/benchmarks/bench_diff.py [EPISODES]

Writes two runs of EPISODES (10,000) episodes of 10 turns into a database of its own, for each of three kinds of
difference, and compares them in a process of its own. The limit for 10,000 is 20 s and 2 GiB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from agenteval.schema import MIGRATIONS

TURNS, TOKENS, PROMPT = 10, 60, 80
KINDS = {
    "all equal": "0",
    "all differ in logprobs from the first turn on": "CASE WHEN e.run = 'b' THEN 0.001 ELSE 0 END",
    "a third differ in tokens and calls from the third turn on": "0",
}
RUN = """
INSERT INTO runs SELECT r, 'suite', 'sha256:0', 'strict', 'sha256:0', $contract, 'model', 'sha256:0', 'agenteval', 1, 1,
    $episodes, now(), '0', '{}', now(), 'finished', 'kept', NULL FROM unnest(['a', 'b']) t(r)
"""
EPISODES = """
INSERT INTO episodes SELECT r || '/' || lpad(n::VARCHAR, 5, '0'), r, r || '/boot-0', n, 'task-' || n, '', 0, 0, 1, NULL,
    'finished', 'finish_tool', NULL, 'answer', '{}', $turns, now(), 1.0
FROM unnest(['a', 'b']) t(r), range($episodes) s(n)
"""
TURN_ROWS = """
INSERT INTO turns BY NAME
SELECT e.run AS run_id, e.run || '/boot-0' AS boot_id, e.run || '/' || lpad(e.n::VARCHAR, 5, '0') AS episode_id,
    t.turn AS turn, 'episode' AS kind, now() AS started_at, 0.1 AS elapsed_s, 0.0 AS queued_s, 1 AS requests_in_flight,
    '{{"temperature":0.0,"tools":[]}}' AS request, 2 * t.turn AS messages_kept,
    '[{{"role":"tool","content":"some result of a tool, of middling length"}}]' AS messages_added,
    {prompt} * (t.turn + 1) AS prompt_tokens, {prompt} * t.turn AS prompt_kept,
    list_transform(range({prompt}), lambda x: (x * 7 + e.n + t.turn)::INTEGER) AS prompt_added, true AS is_continuous,
    list_transform(range({tokens}), lambda x: (x * 11 + e.n + t.turn + {other})::INTEGER) AS output_ids,
    list_transform(range({tokens}), lambda x: 't' || x) AS output_tokens,
    list_transform(range({tokens}), lambda x: (-0.1 - x / 1000 + {shift})::FLOAT) AS logprobs,
    list_transform(range({tokens}), lambda x: 'r' || x) AS runner_up_tokens,
    list_transform(range({tokens}), lambda x: (-2.1 - x / 1000)::FLOAT) AS runner_up_logprobs,
    0 AS cached_tokens, 'tool_calls' AS finish_reason, NULL AS content, '{{"system_fingerprint":"x"}}' AS response
FROM (SELECT r AS run, n FROM unnest(['a', 'b']) t(r), range($episodes) s(n)) e, range($turns) t(turn)
"""
CALL_ROWS = """
INSERT INTO tool_calls BY NAME
SELECT e.run AS run_id, e.run || '/' || lpad(e.n::VARCHAR, 5, '0') AS episode_id, t.turn AS turn, 0 AS call,
    'call' AS call_id, 'server' AS server_call_id, 'look' AS tool, '{{"id":' || (e.n + {other}) || '}}' AS arguments,
    '{{"found":1}}' AS result, NULL AS error, 'sha256:0' AS state_digest, '[]' AS world_patch, true AS is_repeatable,
    NULL AS fault, false AS is_broken
FROM (SELECT r AS run, n FROM unnest(['a', 'b']) t(r), range($episodes) s(n)) e, range($turns) t(turn)
"""
COMPARE = """
import resource, sys, time
from pathlib import Path
from agenteval.diff import diff_runs
from agenteval.records import Level
from agenteval.store import RunReader
path = Path(sys.argv[1])
started = time.perf_counter()
found = diff_runs(RunReader(path=path, run_id="a"), RunReader(path=path, run_id="b"))
rates = {level.value: rate.count for level, rate in found.rates.items()}
elapsed = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(f"{elapsed:.1f} s, {peak:.2f} GiB, differ: {rates}")
"""


def write(path: Path, kind: str, episodes: int) -> None:
    """Two runs that differ as a kind says."""
    from agenteval.contract import load_contract
    from agenteval.digest import canonical_json

    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE agenteval_schema (number INTEGER PRIMARY KEY)")
        for migration in MIGRATIONS:
            connection.execute(migration.sql)
            connection.execute("INSERT INTO agenteval_schema VALUES (?)", [migration.number])
        other = "CASE WHEN e.run = 'b' AND e.n % 3 = 0 AND t.turn >= 2 THEN 1 ELSE 0 END"
        shape = {
            "tokens": TOKENS,
            "prompt": PROMPT,
            "shift": KINDS[kind],
            "other": other if kind.startswith("a third") else "0",
        }
        sizes = {"episodes": episodes, "turns": TURNS}
        contract = canonical_json(load_contract("strict").contract.fields())
        connection.execute(RUN, {"contract": contract, "episodes": episodes})
        connection.execute(EPISODES, sizes)
        connection.execute(TURN_ROWS.format(**shape), sizes)
        connection.execute(CALL_ROWS.format(**shape), sizes)


def main(episodes: int) -> None:
    """Print one line a kind."""
    print(f"{episodes:,} episodes of {TURNS} turns against as many, {TOKENS} tokens a turn")
    with tempfile.TemporaryDirectory() as folder:
        for place, kind in enumerate(KINDS):
            path = Path(folder) / f"{place}.duckdb"
            started = time.perf_counter()
            write(path, kind, episodes)
            print(
                f"{kind} ({path.stat().st_size / 1e6:.0f} MB, written in {time.perf_counter() - started:.0f} s): ",
                end="",
            )
            sys.stdout.flush()
            subprocess.run([sys.executable, "-c", COMPARE, str(path)], check=True)
            path.unlink()
    print(f"peak of the writer: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
