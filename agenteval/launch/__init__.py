"""Contract + model + engine facts -> the server's argv and environment; the same for the same three.

Spells vLLM and never imports it. What the engine or the machine cannot honour is refused here, before anything starts.
"""

from agenteval.launch.environment import influential_environment, inherited_environment
from agenteval.launch.facts import EngineFacts, Gpu, capability_text
from agenteval.launch.plan import LaunchPlan, advice, plan_launch, unsupported

__all__ = [
    "EngineFacts",
    "Gpu",
    "LaunchPlan",
    "advice",
    "capability_text",
    "influential_environment",
    "inherited_environment",
    "plan_launch",
    "unsupported",
]
