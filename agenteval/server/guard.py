"""The server's parent process: ends the server when the runner is gone, however it went.

Started in a session of its own, so that a Ctrl-C in the terminal reaches the runner alone. Its standard input is a
pipe from the runner that carries nothing: its end means that the runner wants the server to stop, or was killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

TERMINATE_WAIT_S = 10.0
"""Given to the server to end by itself before its whole group is killed."""
_POLL_S = 0.2


def main(command: list[str]) -> None:
    """Run the command until it exits or standard input ends; never returns with a process of the group alive."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, restore_signals=True)
    while server.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], _POLL_S)
        if readable and not os.read(sys.stdin.fileno(), 1):
            _terminate(server)
    # Children of the server (the engine core, its workers) outlive it when it is killed; they share this group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _terminate(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + TERMINATE_WAIT_S
    while server.poll() is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if server.poll() is None:
        server.kill()


if __name__ == "__main__":
    main(sys.argv[1:])
