"""A server of our own: one process group from start to stop."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import httpx

from agenteval.errors import InputError, ServerStartError, StoreUnwritableError, sentence
from agenteval.launch import LaunchPlan, inherited_environment
from agenteval.server import orphans
from agenteval.server.guard import TERMINATE_WAIT_S
from agenteval.server.reading import ServerFacts, read_facts, read_metrics
from agenteval.server.server_log import ServerLog

PhaseReport = Callable[[str, float], None]
"""Told the phase of the start (`load`, `compile`, …) and the seconds since it began."""
_POLL_S = 0.25
_PORT_TRIES = 3
_GUARD_MARGIN_S = 5.0
"""Given to the guard beyond what it gives to the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What a start needs besides its plan."""

    python: Path
    """The engine's interpreter."""
    log_path: Path
    cache_dir: Path
    """Where the note for finding orphans is kept."""
    timeout_s: float
    port: int | None = None
    """A fixed port; None takes a free one."""
    terminate_wait_s: float = TERMINATE_WAIT_S
    """Given to the server to end by itself before its whole group is killed."""


class ManagedServer:
    """A vLLM server that we started and will stop; use it as a context manager."""

    def __init__(self, plan: LaunchPlan, options: StartOptions, on_phase: PhaseReport) -> None:
        """Start the server and wait until it is healthy.

        Raises:
            InputError: If the fixed port is taken, or the cache folder cannot be written.
            StoreUnwritableError: If the log cannot be written.
            ServerStartError: If it exits, or is not healthy in time.
        """
        self.plan, self._options = plan, options
        self.api_key = secrets.token_hex(24)
        self._lifeline: int | None = None
        self._ended: str | None = None
        self._note: Path | None = None
        for attempt in range(1, _PORT_TRIES + 1):
            port = options.port or _free_port()
            if options.port is not None and not _is_free(port):
                raise InputError(f"Port {port} is taken. Name another one, or leave out --port to use a free one.")
            self.base_url = f"http://127.0.0.1:{port}"
            self._log = ServerLog(options.log_path, self.api_key)
            started = time.monotonic()
            self._start(port)
            try:
                self._note = self._remember()
                self._wait_until_healthy(started, on_phase)
                self.ready_s = time.monotonic() - started
                self.facts: ServerFacts = read_facts(self.base_url, api_key=self.api_key, log_text=self._log.text())
                return
            except ServerStartError as error:
                self.stop()
                # Between choosing a free port and the server's bind, another program can take it.
                if options.port is not None or attempt == _PORT_TRIES or "already in use" not in error.last_lines:
                    raise
            except BaseException:
                self.stop()
                raise

    def __enter__(self) -> ManagedServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def is_alive(self) -> bool:
        """Whether the process runs; says nothing about whether it answers."""
        return self._guard.poll() is None

    def metrics(self) -> dict[str, float]:
        """Its counters now; empty where it does not answer."""
        return read_metrics(self.base_url)

    def last_log_lines(self) -> str:
        """The end of its log, without the key."""
        return self._log.last_lines()

    def stop(self) -> str:
        """Terminate, wait, kill the whole group, wait; safe to call twice. Returns how it ended."""
        if self._ended is not None:
            return self._ended
        was_alive = self.is_alive()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(self._options.terminate_wait_s + _GUARD_MARGIN_S)
        orphans.end_group(self._guard.pid, started=self._guard_started)
        self._guard.wait()
        if self._note is not None:
            self._note.unlink(missing_ok=True)
        self._ended = "stopped" if was_alive else "had exited by itself"
        return self._ended

    def kill(self) -> None:
        """End the whole group at once, without waiting for the server to finish anything."""
        if self._ended is None:
            orphans.end_group(self._guard.pid, started=self._guard_started)

    def _start(self, port: int) -> None:
        inherited = inherited_environment(os.environ)
        self._ended = self._note = None
        log_path = self._options.log_path
        try:
            log_path.parent.mkdir(parents=True, exist_ok=True)
            log = log_path.open("wb")
        except OSError as error:
            raise StoreUnwritableError(path=log_path, reason=str(error)) from error
        read_end, self._lifeline = os.pipe()
        try:
            with log:
                self._guard = subprocess.Popen(
                    [
                        sys.executable,
                        str(Path(__file__).with_name("guard.py")),
                        str(self._options.terminate_wait_s),
                        str(self._options.python),
                        *self.plan.argv,
                        "--port",
                        str(port),
                    ],
                    stdin=read_end,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**inherited, **self.plan.env, "VLLM_API_KEY": self.api_key, "PYTHONUNBUFFERED": "1"},
                    start_new_session=True,
                )
        finally:
            os.close(read_end)
        self._guard_started = orphans.start_of(self._guard.pid)

    def _remember(self) -> Path:
        folder = self._options.cache_dir
        try:
            return orphans.remember(folder, pid=self._guard.pid)
        except OSError as error:
            raise InputError(
                f"Cannot write {folder}: {sentence(str(error))} Set AGENTEVAL_CACHE to a writable folder."
            ) from error

    def _wait_until_healthy(self, started: float, on_phase: PhaseReport) -> None:
        with httpx.Client(base_url=self.base_url, timeout=5.0, trust_env=False) as http:
            while (waited_s := time.monotonic() - started) < self._options.timeout_s:
                if not self.is_alive():
                    raise self._start_error(waited_s)
                with contextlib.suppress(httpx.HTTPError):
                    if self._answers(http):
                        on_phase("ready", waited_s)
                        return
                on_phase(self._log.phase(), waited_s)
                time.sleep(_POLL_S)
        raise self._start_error(self._options.timeout_s)

    def _answers(self, http: httpx.Client) -> bool:
        """Whether this very boot is healthy: another program on the port would refuse its key, or need none."""
        if http.get("/health").status_code != 200:
            return False
        with_key = http.get("/v1/models", headers={"Authorization": f"Bearer {self.api_key}"})
        return with_key.status_code == 200 and http.get("/v1/models").status_code == 401

    def _start_error(self, waited_s: float) -> ServerStartError:
        return ServerStartError(
            waited_s=waited_s,
            log_path=self._options.log_path,
            last_lines=self._log.last_lines(),
            advice=self._log.advice(is_alive=self.is_alive()),
        )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        # As a server binds: an address that only waits to be released counts as free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
