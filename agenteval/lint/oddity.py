"""What is odd, and where below a task or tool it stands."""

from __future__ import annotations

from agenteval.loading import KeyPath

Oddity = tuple[KeyPath, str]
"""Key path from the task or tool on, and what is odd there."""
