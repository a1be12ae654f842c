"""The database: append and read records. The only package that imports duckdb.

A finished turn is made durable in the run's journal (one line, one fsync) and moved into the database in batches, with
the database closed in between, so that other programs can open it while a run writes (DECISIONS 4).
"""

from agenteval.store.database import files_folder, open_for_reading
from agenteval.store.journal import dead_journals, recover
from agenteval.store.look import DatabaseFacts, database_facts
from agenteval.store.pairs import ALL_TURNS, Shared, shared_turns, telling_turns
from agenteval.store.query import QueryResult, run_query
from agenteval.store.reader import RunReader, list_runs, run_ids
from agenteval.store.sweeps import finished_runs, read_sweep, sweep_ids, write_sweep
from agenteval.store.writer import RunWriter

__all__ = [
    "ALL_TURNS",
    "DatabaseFacts",
    "QueryResult",
    "RunReader",
    "RunWriter",
    "Shared",
    "database_facts",
    "dead_journals",
    "files_folder",
    "finished_runs",
    "list_runs",
    "open_for_reading",
    "read_sweep",
    "recover",
    "run_ids",
    "run_query",
    "shared_turns",
    "sweep_ids",
    "telling_turns",
    "write_sweep",
]
