"""argv -> one call -> exit code. Data goes to stdout, talk to stderr."""

from agenteval.cli.main import main

__all__ = ["main"]
