"""Python that depends on its arguments alone: what a suite's functions may say, import and compute with.

The rules keep honest code honest; they are no sandbox. A suite's Python is the user's own program. What can be made
harmless is: sets have an order, modules are views that a call cannot change, and the machine's clock and zone are not
there. What cannot be is refused before anything runs.
"""

from agenteval.spec.pure.modules import COMPUTING_MODULES, ToolError
from agenteval.spec.pure.rewriting import compile_pure, pure_builtins
from agenteval.spec.pure.rules import impurities

__all__ = ["COMPUTING_MODULES", "ToolError", "compile_pure", "impurities", "pure_builtins"]
