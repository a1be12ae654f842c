"""A task played by hand: lines of text in, texts out, with the same mocks, world and checks as in a run.

Pure: reads no terminal and prints nothing. Must not know models, servers or the database.
"""

from agenteval.play.session import PlaySession

__all__ = ["PlaySession"]
