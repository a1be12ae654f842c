"""What is allowed in a suite and yet can hardly be meant: unused, unreachable, unfailable, unable to happen.

Works on a loaded suite and on its mocks and checks as they run; must not know of engines, agents or the database.
"""

from agenteval.lint.inspect import Inspection, inspect_suite

__all__ = ["Inspection", "inspect_suite"]
