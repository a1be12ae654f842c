"""From a suite, a contract and a model to a finished run: plan, boots, episodes, evidence, verdict.

Nothing here assumes that there is only one server: an episode depends on its plan, the contract, the model and the
boot that it is given.
"""

from agenteval.loop.boots import Engine, ManagedEngine, OutsideEngine
from agenteval.loop.observer import Observer
from agenteval.loop.plan import plan_episodes
from agenteval.loop.run import RunRequest, RunResult, execute_run, lock_of
from agenteval.loop.stop import StoppedError, StopSwitch

__all__ = [
    "Engine",
    "ManagedEngine",
    "Observer",
    "OutsideEngine",
    "RunRequest",
    "RunResult",
    "StopSwitch",
    "StoppedError",
    "execute_run",
    "lock_of",
    "plan_episodes",
]
