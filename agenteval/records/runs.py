"""What happened in a run, and what its comparison and its audit found."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from agenteval.levels import Level as Level


class ClauseVerdict(StrEnum):
    """What the evidence says of one clause."""

    KEPT = "kept"
    BREACHED = "breached"
    UNPROVEN = "unproven"
    NOT_PROMISED = "not promised"


class Verdict(StrEnum):
    """What a whole run comes to; the command's exit status follows from it."""

    KEPT = "kept"
    DIVERGED = "diverged"
    BREACHED = "breached"
    UNPROVEN = "unproven"


class EpisodeStatus(StrEnum):
    """Whether an episode has an end that can be graded."""

    FINISHED = "finished"
    NOT_RUN = "not_run"


class StopReason(StrEnum):
    """Why an episode ended."""

    FINISH_TOOL = "finish_tool"
    ANSWER = "answer"
    MAX_TURNS = "max_turns"
    CONTEXT_FULL = "context_full"
    SERVER = "server"
    AGENT = "agent"
    STOPPED = "stopped"


class CauseKind(StrEnum):
    """What explains a divergence, in the order in which each rules out those after it."""

    LENGTH = "length"
    GRADES = "grades"
    PROMPT = "prompt"
    TOOLS = "tools"
    SETTING = "setting"
    BOOT = "boot"
    CACHE = "cache"
    BATCHING = "batching"
    UNEXPLAINED = "unexplained"


OWN_AGENT = "agenteval"
"""Name of the agent that comes with agenteval, as runs record it."""
UNKNOWN_DIGEST = "unknown"
"""Digest of a model that only someone else's server has seen."""
RunStatus = Literal["running", "finished", "stopped", "failed"]
TurnKind = Literal["episode", "probe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model on this machine, verified."""

    name: str
    """What the user called it: a folder, a hub id or a catalogue name."""
    folder: Path
    """The local folder that the engine loads."""
    digest: str
    """Content hash of weights, config, tokenizer and chat template."""
    tool_call_parser: str | None = None
    """vLLM's name of the parser for the tool calls that the chat template teaches; None where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A suite executed under one contract with one model."""

    run_id: str
    suite: str
    suite_digest: str
    contract: str
    contract_digest: str
    contract_fields: dict[str, Any]
    """Every effective field of the contract, as JSON."""
    model: str
    model_digest: str
    """Content hash; `UNKNOWN_DIGEST` where someone else runs the server."""
    agent: str
    """`package.module:factory` of the graph, or `OWN_AGENT`."""
    samples: int
    repeats: int
    planned_episodes: int
    started_at: datetime
    agenteval_version: str
    facts: dict[str, Any]
    """Machine, engine and command line, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended; written once, last."""

    run_id: str
    ended_at: datetime
    status: RunStatus
    verdict: Verdict | None
    """None where the run did not come to one."""
    message: str | None
    """Why it stopped or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task variant as it was run, so that a run can be read, and judged again, without its suite's files."""

    run_id: str
    task: str
    variant: str
    tags: tuple[str, ...]
    definition: dict[str, Any]
    """Messages, world, faults, checks and settings with the variables put in, as JSON; tools by name and hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One start of one server process, or one outside server that was used."""

    boot_id: str
    run_id: str
    is_managed: bool
    """False where the server was someone else's (`--base-url`)."""
    started_at: datetime
    ready_s: float
    """From start to healthy; 0 for an outside server."""
    base_url: str
    argv: tuple[str, ...]
    """Command line without the interpreter's own path; empty for an outside server."""
    env: dict[str, str]
    """Engine variables that were set; never a key."""
    facts: dict[str, Any]
    """What the server said of itself: version, server_info, cache config, log lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootEnd:
    """How a boot ended."""

    boot_id: str
    run_id: str
    ended_at: datetime
    reason: str
    """`stopped` by us, `left running` where it is not ours, or how it ended by itself."""
    metrics: dict[str, float]
    """The server's own counters at the end, empty where it no longer answered."""
    model_digest: str | None
    """Content hash of the model's folder after the stop; None where someone else runs the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodePlan:
    """One attempt at one task variant, before it is made."""

    run_id: str
    position: int
    """Place in the run's fixed order, from 0."""
    task: str
    variant: str
    sample: int
    repeat: int
    seed: int
    """Sent with every request; the same for all repeats of a sample."""
    cache_salt: str | None
    """Sent with every request where the contract isolates episodes."""

    @property
    def episode_id(self) -> str:
        """Unique in a database, and readable."""
        return f"{self.run_id}/{self.position:05d}"

    @property
    def label(self) -> str:
        """What people call it."""
        return f"{self.task}/{self.variant} sample {self.sample} repeat {self.repeat}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """How an attempt ended."""

    plan: EpisodePlan
    boot_id: str
    status: EpisodeStatus
    stop_reason: StopReason
    message: str | None
    """What went wrong, for an episode that was not run."""
    answer: str | None
    """The final answer; None where the agent gave none."""
    world: dict[str, Any]
    """The world at the end."""
    turns: int
    started_at: datetime
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of one mock, as it was made and answered."""

    call: int
    """Place among the turn's calls, from 0."""
    call_id: str
    """The deterministic id that the model sees."""
    server_call_id: str
    """The id that the server had chosen."""
    tool: str
    arguments: str
    """JSON text: as generated, or as a graph that parses calls itself wrote it again."""
    result: str
    """Text given back to the model."""
    error: str | None
    """Why the call was refused or failed; None where it succeeded."""
    is_broken: bool | None
    """Whether the mock itself could not answer, which is the suite's fault; None where that was not recorded yet."""
    state_digest: str
    """Hash of world, clock and call counts before the call."""
    world_patch: tuple[dict[str, Any], ...]
    """JSON Patch from the world before to the world after."""
    is_repeatable: bool
    """Whether the mock, asked a second time in the same state, gave the same result and world."""
    fault: str | None
    """The declared fault that fired, as `kind#place` among the task's; None where none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One model call and the tool calls it caused.

    The prompt is stored as what it adds: the full prompt of turn n is the first `prompt_kept` ids of (prompt of
    turn n-1 + output of turn n-1), then `prompt_added`. Messages likewise.
    """

    run_id: str
    boot_id: str
    episode_id: str
    """For a probe, `<boot id>/<probe name>`."""
    turn: int
    kind: TurnKind
    started_at: datetime
    elapsed_s: float
    queued_s: float
    """Waited for a free place under the contract's concurrency, before `started_at`."""
    requests_in_flight: int
    """Most requests at the server during this one, itself included, as far as this runner sent them."""
    request: dict[str, Any]
    """The request as sent, without its messages."""
    messages_kept: int
    messages_added: tuple[dict[str, Any], ...]
    prompt_tokens: int
    prompt_kept: int
    prompt_added: tuple[int, ...]
    is_continuous: bool | None
    """Whether the prompt extends the previous prompt and output; None for a first turn."""
    output_ids: tuple[int, ...]
    output_tokens: tuple[str, ...]
    """Text of each output token, in the same order."""
    logprobs: tuple[float, ...]
    """Natural log of each chosen token's probability."""
    runner_up_tokens: tuple[str | None, ...]
    """Text of the best candidate that was not chosen."""
    runner_up_logprobs: tuple[float | None, ...]
    cached_tokens: int | None
    """Prompt tokens read from the cache; None is unknown, not zero."""
    finish_reason: str | None
    content: str | None
    """The assistant's text; None where the turn is only tool calls."""
    response: dict[str, Any]
    """The response as received, without what the fields above hold."""
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What one check says of one episode."""

    run_id: str
    episode_id: str
    check: int
    """Place in the task's checks, from 0."""
    kind: str
    passed: bool | None
    """None where the check could not be evaluated: the episode is then not graded, never failed."""
    reason: str
    """Why, with the values it saw."""
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultCount:
    """How often one declared fault fired in one episode."""

    episode_id: str
    task: str
    variant: str
    fault: str
    """`kind#place` among the task's."""
    tool: str
    fired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One measured fact about one clause."""

    run_id: str
    clause: str
    fact: str
    """What was measured, in one phrase."""
    verdict: ClauseVerdict
    expected: str
    observed: str
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Two trajectories of the same task, variant and sample, and where they first differ."""

    run_id: str
    episode_a: str
    episode_b: str
    task: str
    variant: str
    sample: int
    repeat_a: int
    repeat_b: int
    level: Level
    """The loosest level at which they differ: `calls` means that calls and everything stricter differ."""
    turn: int
    """First turn whose prompt or tokens differ (at level `logprobs`: whose logprobs do), else whose tool calls or
    results do; the number of turns where only the end differs."""
    token: int | None
    """First output token of that turn that differs; None where no token does: the prompt, a tool's result, the number
    of turns or the grades."""
    text_a: str
    text_b: str
    margin_a: float | None
    """Logprob of the chosen token minus the best other one's, at that token."""
    margin_b: float | None
    cause: str
    cause_kind: CauseKind | None
    """None where a version before schema 4 stored it."""
