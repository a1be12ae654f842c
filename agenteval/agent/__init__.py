"""The default LangGraph agent, and how a graph of one's own is plugged in.

A graph gets an `EpisodeContext`: the recorded client and the tools of its episode. Must not know contracts, servers or
the database.
"""

from agenteval.agent.context import EpisodeContext
from agenteval.agent.graph import build_graph
from agenteval.agent.plug import AgentResult, GraphFactory, load_factory, run_agent
from agenteval.agent.toolbox import Toolbox

__all__ = [
    "AgentResult",
    "EpisodeContext",
    "GraphFactory",
    "Toolbox",
    "build_graph",
    "load_factory",
    "run_agent",
]
