"""The server's parent process: ends the server when the runner is gone, however it went.

Started in a session of its own, so that a Ctrl-C in the terminal reaches the runner alone. Its standard input is a
pipe from the runner that carries nothing: its end means that the runner wants the server to stop, or was killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

TERMINATE_WAIT_S = 10.0
"""Given to the server to end by itself before its whole group is killed."""
_POLL_S = 0.2
_SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def main(command: list[str], terminate_wait_s: float) -> None:
    """Run the command until it exits or standard input ends; never returns with a process of the group alive."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # A handler and not SIG_IGN, which the server would inherit: it could then not be terminated while it loads.
        signal.signal(number, lambda _number, _frame: None)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent)
    while server.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], _POLL_S)
        if readable and not os.read(sys.stdin.fileno(), 1):
            _terminate(server, terminate_wait_s)
    print(f"agenteval: the server exited with status {server.returncode}", flush=True)
    # Children of the server (the engine core, its workers) outlive it when it is killed; they share this group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _end_with_parent() -> None:
    """In the server, before it starts: have the kernel terminate it when this guard is killed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)


def _terminate(server: subprocess.Popen[bytes], wait_s: float) -> None:
    server.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + wait_s
    while server.poll() is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if server.poll() is None:
        server.kill()


if __name__ == "__main__":
    main(sys.argv[2:], float(sys.argv[1]))
