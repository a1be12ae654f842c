"""A server's log, read as it grows: the phase of its start, its end, and why it failed. Never shows the boot's key."""

from __future__ import annotations

import re
from pathlib import Path

_LAST_LINES = 25
_TAIL_BYTES = 64 * 1024
_OVERLAP = 64
"""Bytes read again, since a text may have been half written at the last look."""
_PHASES = (
    ("Application startup complete", "ready"),
    ("Starting vLLM API server", "open the port"),
    ("Starting vLLM server", "open the port"),
    ("Capturing CUDA graph", "capture graphs"),
    ("Dynamo bytecode transform", "compile"),
    ("Warming up", "warm up"),
    ("Loading weights took", "prepare the cache"),
    ("Starting to load model", "load the weights"),
    ("Initializing a V1 LLM engine", "start the engine"),
)
"""Latest first. Source: log calls of vLLM 0.25 to 0.32."""
_LESS_MEMORY = "end other programs, or take a smaller model."
_ADVICE = (
    ("CUDA out of memory", "The GPU is full: end what else uses it, or set engine.kv_cache_memory_bytes lower."),
    ("desired GPU memory utilization", "The GPU is in use: set engine.gpu_memory_utilization below the free share."),
    ("No available memory for the cache blocks", "Raise engine.gpu_memory_utilization, or lower engine.max_model_len."),
    ("larger than the available KV cache memory", "Lower engine.max_model_len, or give the KV cache more memory."),
    (
        "requested memory for kv",
        "The machine has too little free memory: set engine.kv_cache_memory_bytes lower, or end other programs.",
    ),
    ("MemoryError", f"The machine has too little free memory: {_LESS_MEMORY}"),
    ("Cannot allocate memory", f"The machine has too little free memory: {_LESS_MEMORY}"),
    ("can't allocate memory", f"The machine has too little free memory: {_LESS_MEMORY}"),
    ("exited with status -9", f"Something killed it, most likely the system for want of memory: {_LESS_MEMORY}"),
    # Last: vLLM also warns so of ports of its own, for which it takes others.
    ("Address already in use", "Another program took the port; run again, or leave out --port."),
)
_CAUSE = re.compile(r"((?:\w+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)
_NO_CAUSE = "Engine core initialization failed"
"""The server's last error where its engine failed; the cause stands far above it."""


class ServerLog:
    """One boot's log file."""

    def __init__(self, path: Path, api_key: str) -> None:
        self.path, self._key = path, api_key
        self._read_to = 0
        self._reached = len(_PHASES)

    def phase(self) -> str:
        """How far the start has come, by what the log has gained since the last look."""
        start = max(0, self._read_to - _OVERLAP)
        gained = self._bytes(start)
        self._read_to = start + len(gained)
        text = gained.decode("utf-8", errors="replace")
        found = (place for place, (words, _) in enumerate(_PHASES) if words in text)
        self._reached = min(self._reached, next(found, len(_PHASES)))
        return _PHASES[self._reached][1] if self._reached < len(_PHASES) else "import the engine"

    def text(self) -> str:
        """All of it."""
        return self._shown(self._bytes(0))

    def last_lines(self) -> str:
        """Its end."""
        size = self.path.stat().st_size if self.path.is_file() else 0
        return "\n".join(self._shown(self._bytes(max(0, size - _TAIL_BYTES))).splitlines()[-_LAST_LINES:])

    def advice(self, *, is_alive: bool) -> str:
        """What to do about a server that exited, or that was not healthy in time."""
        text = self.text()
        known = next((advice for words, advice in _ADVICE if words in text), None)
        if known is not None:
            return known
        if is_alive:
            return "Slow machine? Raise engine.start_timeout_s in a contract that extends this one."
        causes = [cause for cause in _CAUSE.findall(text) if _NO_CAUSE not in cause]
        if causes:
            return f"Its log names this cause: {causes[-1][:300].rstrip('.')}. Mend that, then run again."
        return "Its log names no cause; read the whole log, mend what it complains of, then run again."

    def _bytes(self, start: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                return file.read()
        except OSError:
            return b""

    def _shown(self, content: bytes) -> str:
        return content.decode("utf-8", errors="replace").replace(self._key, "(key)")
