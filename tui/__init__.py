"""The browser: runs, pairs of trajectories, and where they part. Reads the store; never reaches the run side."""

if __name__ != "agenteval.tui":
    raise ImportError("Import this package as agenteval.tui.")
