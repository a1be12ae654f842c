"""What lies on this machine: processors and memory, the model, disks, the database, the port, servers left over."""

from __future__ import annotations

import os
import shlex
import socket
from pathlib import Path

from agenteval import models, store
from agenteval.doctor.check import Check, State, gigabytes
from agenteval.errors import SchemaVersionError, StoreLockedError, StoreUnreadableError
from agenteval.launch.plan import CPU_KV_CACHE_BYTES
from agenteval.models.errors import ModelNotFoundError
from agenteval.schema import VERSION
from agenteval.server import find_orphans

BYTES_A_TOKEN = 200
"""What a stored token takes in the database, roughly: ids, logprobs, runners-up and texts."""
_NAME = 30
"""Characters of a processor's name that are shown; what follows is its clock rate."""
_FEW_BYTES = 10**9
"""Free space below which a long run may fill the disk."""
_DATABASE_WAIT_S = 1.0
"""Longer than a run that writes holds the database."""


def cpu_check(*, name: str, processors: int, total_bytes: int, free_bytes: int, weights_bytes: int | None) -> Check:
    """Processors and memory.

    Args:
        name: The processor's.
        processors: Logical ones that the server may use.
        total_bytes: Memory.
        free_bytes: Memory that a program can still have.
        weights_bytes: Size of the model's files where the engine runs on the CPU, else None.
    """
    memory = f"{free_bytes / 1e9:.1f} of {gigabytes(total_bytes)} free"
    found = f"{name[:_NAME].strip()}, {processors} processor{'' if processors == 1 else 's'}, {memory}"
    # On a CPU the weights, stored in 16 bits, are computed with in 32.
    needed_bytes = 0 if weights_bytes is None else 2 * weights_bytes + CPU_KV_CACHE_BYTES
    if free_bytes >= needed_bytes:
        return Check(name="cpu", found=found)
    return Check(
        name="cpu",
        state=State.WARNING,
        found=f"{found}; the model takes about {gigabytes(needed_bytes)}",
        to_do="End other programs, or name a smaller model with --model.",
    )


def model_check(seen: models.SeenModel | ModelNotFoundError) -> Check:
    """Whether the model is here and whole, as far as that shows without hashing it."""
    if isinstance(seen, ModelNotFoundError):
        found = f"{seen.name!r} was not found: {seen.reason}"
        to_do = "Name a folder, org/name, or one of the catalogue."
        return Check(name="model", state=State.MISSING, found=found, to_do=to_do, command="agenteval models list")
    pull = f"agenteval models pull {shlex.quote(seen.name)}"
    size = "" if seen.size_bytes is None else f", {gigabytes(seen.size_bytes)}"
    if seen.folder is None:
        return Check(
            name="model",
            state=State.MISSING,
            found=f"{seen.name}{size}, is not here",
            to_do="Fetch it.",
            command=pull,
        )
    if seen.lack is None:
        return Check(name="model", found=f"{seen.name}{size}, is here")
    to_do, command = _how_to_mend(seen.origin, pull, seen.folder)
    found = f"{seen.folder} cannot be served: {seen.lack}"
    return Check(name="model", state=State.MISSING, found=found, to_do=to_do, command=command)


def _how_to_mend(origin: str, pull: str, folder: Path) -> tuple[str, str | None]:
    """What to do about a model that is not whole, and the command that does it."""
    if origin == "hub":
        return "Fetch the rest.", pull
    if origin == "catalogue":
        return "Remove that folder and fetch it again.", f"rm -r {shlex.quote(str(folder))} && {pull}"
    return "Put the whole model there, or name another with --model.", None


def disk_check(*, runs_free_bytes: int, cache_free_bytes: int, fetch_bytes: int) -> Check:
    """Whether there is room for the model and for runs.

    Args:
        runs_free_bytes: Free where the database is.
        cache_free_bytes: Free where models are kept.
        fetch_bytes: What fetching the model takes at most; 0 where it is here.
    """
    tokens = f"{runs_free_bytes // BYTES_A_TOKEN / 1e6:,.0f} million tokens"
    found = f"{gigabytes(runs_free_bytes)} free for runs ({tokens}), {gigabytes(cache_free_bytes)} for models"
    if cache_free_bytes < fetch_bytes:
        return Check(
            name="disk",
            state=State.MISSING,
            found=f"{found}; fetching the model takes {gigabytes(fetch_bytes)}",
            to_do="Free some room, or point AGENTEVAL_CACHE at a larger disk.",
        )
    if runs_free_bytes < _FEW_BYTES:
        to_do = "Free some room, or name a database on a larger disk with --db."
        return Check(name="disk", state=State.WARNING, found=found, to_do=to_do)
    return Check(name="disk", found=found)


def disk_here_check(database: Path, cache_dir: Path, *, fetch_bytes: int) -> Check:
    """The same of the places that this command was given, which must be writable too."""
    if (obstacle := _obstacle(cache_dir)) is not None:
        return Check(
            name="disk",
            state=State.MISSING,
            found=f"the cache {cache_dir} cannot be used: {obstacle}",
            to_do="Point AGENTEVAL_CACHE at a folder that you may write.",
        )
    return disk_check(
        runs_free_bytes=models.free_bytes(database.parent),
        cache_free_bytes=models.free_bytes(cache_dir),
        fetch_bytes=fetch_bytes,
    )


def _obstacle(folder: Path) -> str | None:
    """What keeps us from making files in a folder that need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        return f"{folder} is no folder"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} may not be written"


def database_check(path: Path) -> Check:
    """Whether the database opens, what it holds, and who holds it."""
    other = "or name another file with --db."
    try:
        return _database_check(path)
    except StoreLockedError as error:
        to_do = f"Close the program that holds it, {other}"
        return Check(name="database", state=State.WARNING, found=f"{path} is held {error.holder}", to_do=to_do)
    except SchemaVersionError as error:
        found = f"{path} has schema {error.found}, this agenteval knows up to {error.known}"
        return Check(name="database", state=State.MISSING, found=found, to_do=f"Upgrade agenteval, {other}")
    except StoreUnreadableError as error:
        found, to_do = f"{error.path} cannot be read: {error.reason}", f"Restore it from a copy, {other}"
        return Check(name="database", state=State.MISSING, found=found, to_do=to_do)


def _database_check(path: Path) -> Check:
    if (obstacle := _obstacle(path.absolute().parent)) is not None:
        to_do = "Name a place that you may write with --db."
        return Check(name="database", state=State.MISSING, found=f"{path} cannot be made: {obstacle}", to_do=to_do)
    if path.is_file() and not os.access(path, os.W_OK):
        to_do = "Make the file writable, or name another with --db."
        return Check(name="database", state=State.MISSING, found=f"{path} may not be written", to_do=to_do)
    found = f"{path}, to be made by the first run"
    if path.exists():
        facts = store.database_facts(path, wait_s=_DATABASE_WAIT_S)
        newer = "" if facts.schema == VERSION else f"; the next run brings it to {VERSION}"
        found = f"{path}, schema {facts.schema}{newer}, {facts.runs} run{'' if facts.runs == 1 else 's'}"
    left = len(store.dead_journals(path))
    if not left:
        return Check(name="database", found=found)
    return Check(
        name="database",
        state=State.WARNING,
        found=f"{found}; killed runs left {left} journal{'' if left == 1 else 's'} beside it",
        to_do="Have them loaded: agenteval runs does it.",
    )


def port_check(host: str = "127.0.0.1") -> Check:
    """Whether a server could listen; nothing is started, and the port is free again at once."""
    try:
        with socket.socket() as listener:
            listener.bind((host, 0))
            listener.listen()
    except OSError as error:
        return Check(
            name="port",
            state=State.MISSING,
            found=f"nothing can listen on {host}: {error.strerror}",
            to_do="Allow this user or container to listen there, or run with --base-url and a server elsewhere.",
        )
    return Check(name="port", found=f"a server can listen on {host}")


def servers_check(cache_dir: Path) -> Check:
    """Servers that outlived their runner; they are told, not ended."""
    pids = find_orphans(cache_dir)
    if not pids:
        return Check(name="servers", found="none left over from killed runs")
    return Check(
        name="servers",
        state=State.WARNING,
        found=f"left over from killed runs: process {', '.join(map(str, pids))}",
        to_do="Nothing: the next run ends them. They take memory until then.",
    )
