"""A server of ours that outlives a run, for the next one that wants it started in the same way."""

from __future__ import annotations

from agenteval.launch import LaunchPlan
from agenteval.server.process import ManagedServer

KEPT = "kept for the next run"
"""How a boot ended whose server goes on."""


class ServerKeeper:
    """Holds at most one idle server; used by one thread."""

    def __init__(self) -> None:
        self._server: ManagedServer | None = None

    def take(self, plan: LaunchPlan) -> ManagedServer | None:
        """The idle server, where it runs and was started as a plan says; one that was not is stopped.

        Args:
            plan: How the next server is to be started.
        """
        server, self._server = self._server, None
        if server is None:
            return None
        if server.plan == plan and server.is_alive() and server.metrics():
            return server
        server.stop()
        return None

    def keep(self, server: ManagedServer) -> str:
        """Hold a server that the next run may take; says how its boot ended."""
        self.close()
        self._server = server
        return KEPT

    def close(self) -> None:
        """Stop the idle server, if there is one."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()
