"""Start a launch plan, wait until it is healthy, read what the server says of itself, stop it, leave no orphan.

Knows processes and HTTP; must not know suites, episodes or the database.
"""

from agenteval.server.engine import read_engine_facts
from agenteval.server.keeper import KEPT, ServerKeeper
from agenteval.server.orphans import end_orphans, find_orphans
from agenteval.server.outside import OutsideServer
from agenteval.server.process import ManagedServer, StartOptions
from agenteval.server.reading import ServerFacts, read_metrics

Server = ManagedServer | OutsideServer

__all__ = [
    "KEPT",
    "ManagedServer",
    "OutsideServer",
    "Server",
    "ServerFacts",
    "ServerKeeper",
    "StartOptions",
    "end_orphans",
    "find_orphans",
    "read_engine_facts",
    "read_metrics",
]
