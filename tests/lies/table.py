"""Each lie, the contract it is told under, and what must come of it; the documentation's table is made of this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fake_vllm import FakeVllm

from lies import servers

Outcome = Literal["stopped", "breached", "unproven"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """One row."""

    lie: str
    """What the server does, in words."""
    ways: type[FakeVllm] = servers.Honest
    config: Mapping[str, Any] = field(default_factory=dict)
    """Of the stand-in server, over what its arguments say."""
    contract: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Clauses of a contract that extends the named one."""
    is_free: bool = False
    """Whether the agent's model may answer without a call, so that no grammar stands between it and its tokens."""
    clause: str
    """Which must not be kept; empty where no episode can be judged."""
    outcome: Outcome
    """`stopped`: before the first episode; otherwise the clause's verdict."""
    shown_by: str
    """Begins the fact that shows it."""

    @property
    def name(self) -> str:
        """Of the test."""
        return self.lie.replace(" ", "-").replace(",", "")


CONTINUOUS = {"prompts": {"mode": "continuous"}}
DRAWN = {"sampling": {"temperature": 0.7, "stop": ["zzz"]}}
SLOW = {"latency_s": 0.05}
COUNTED = "cached tokens of all requests against the engine's own counter"

LIES = (
    Lie(
        lie="caches although disabled",
        ways=servers.CachesAlthoughDisabled,
        contract="strict",
        clause="cache",
        outcome="stopped",
        shown_by="probe: the same prompt again must miss",
    ),
    Lie(
        lie="caches although disabled, and counts nothing",
        ways=servers.CachesInSecret,
        contract="strict",
        clause="cache",
        outcome="stopped",
        shown_by="probe: the same prompt again gives the same logprobs",
    ),
    Lie(
        lie="reports null for every count",
        ways=servers.CountsNothing,
        contract="isolated",
        clause="cache",
        outcome="breached",
        shown_by=COUNTED,
    ),
    Lie(
        lie="reports zero but hits",
        ways=servers.CountsZeroInEpisodes,
        contract="isolated",
        clause="cache",
        outcome="breached",
        shown_by=COUNTED,
    ),
    Lie(
        lie="ignores salts",
        ways=servers.IgnoresSalts,
        contract="isolated",
        clause="cache",
        outcome="stopped",
        shown_by="probe: a new prompt, and the same prompt under another salt, must miss",
    ),
    Lie(
        lie="reset does nothing",
        ways=servers.ResetsNothing,
        contract="isolated",
        clause="cache",
        outcome="stopped",
        shown_by="probe: the same prompt and salt must miss when the cache was emptied",
    ),
    Lie(
        lie="preempts",
        ways=servers.Preempts,
        contract="isolated",
        clause="cache",
        outcome="breached",
        shown_by="requests that were preempted and computed again",
    ),
    Lie(
        lie="batches although serial",
        ways=servers.BatchesAlthoughSerial,
        config=SLOW,
        contract="strict",
        clause="batching",
        outcome="stopped",
        shown_by="probe: the same prompt alone and among others gives the same logprobs",
    ),
    Lie(
        lie="another attention backend than asked",
        config={"attention_backend": "FLASH_ATTN"},
        contract="invariant",
        clause="batching",
        outcome="stopped",
        shown_by="the attention backend that the server's log names",
    ),
    Lie(
        lie="another attention backend, in its configuration alone",
        ways=servers.OtherKernelsInTheConfiguration,
        contract="invariant",
        clause="batching",
        outcome="stopped",
        shown_by="the attention backend in the server's configuration",
    ),
    Lie(
        lie="another attention backend, in secret",
        ways=servers.OtherKernels,
        config=SLOW,
        contract="invariant",
        clause="batching",
        outcome="stopped",
        shown_by="probe: the same prompt alone and among others gives the same logprobs",
    ),
    Lie(
        lie="another attention backend for long prompts, in secret",
        ways=servers.OtherKernelsForLongPrompts,
        config=SLOW,
        contract="invariant",
        clause="batching",
        outcome="stopped",
        shown_by="probe: a long prompt alone and among others gives the same logprobs",
    ),
    Lie(
        lie="ignores seed",
        ways=servers.IgnoresSeed,
        contract="strict",
        clause="sampling",
        outcome="stopped",
        shown_by="probe: the same seed gives the same draw",
    ),
    Lie(
        lie="ignores top_p",
        ways=servers.IgnoresTopP,
        contract="strict",
        clause="sampling",
        outcome="stopped",
        shown_by="probe: at top_p 0.001 a draw is the greedy answer",
    ),
    Lie(
        lie="ignores temperature",
        ways=servers.IgnoresTemperature,
        contract="strict",
        clause="sampling",
        outcome="stopped",
        shown_by="probe: temperature 2 gives another answer than temperature 0",
    ),
    Lie(
        lie="ignores stop texts",
        ways=servers.IgnoresStop,
        contract="strict",
        fields=DRAWN,
        clause="sampling",
        outcome="stopped",
        shown_by="probe: the answer ends before the stop text",
    ),
    Lie(
        lie="is greedy in probes alone",
        ways=servers.TakesTheSecondBest,
        contract="strict",
        is_free=True,
        clause="sampling",
        outcome="breached",
        shown_by="answers that do what their request's fields forbid",
    ),
    Lie(
        lie="fills in the model's own sampling defaults",
        ways=servers.FillsInDefaults,
        contract="strict",
        clause="sampling",
        outcome="stopped",
        shown_by="where the engine takes sampling defaults from",
    ),
    Lie(
        lie="drops logprobs",
        ways=servers.DropsLogprobs,
        contract="strict",
        clause="",
        outcome="unproven",
        shown_by="the episode is not run: logprobs are missing",
    ),
    Lie(
        lie="another version than asked",
        config={"version": "0.24.0"},
        contract="strict",
        clause="engine",
        outcome="stopped",
        shown_by="the engine's version",
    ),
    Lie(
        lie="answers from another build now and then",
        ways=servers.MixesVersions,
        contract="strict",
        clause="engine",
        outcome="breached",
        shown_by="system_fingerprint of every response",
    ),
    Lie(
        lie="alters the text of answers",
        ways=servers.AltersText,
        contract="strict",
        clause="engine",
        outcome="breached",
        shown_by="texts and tool calls are what the tokens of the answer say",
    ),
    Lie(
        lie="alters the arguments of tool calls",
        ways=servers.AltersCalls,
        contract="strict",
        clause="engine",
        outcome="breached",
        shown_by="texts and tool calls are what the tokens of the answer say",
    ),
    Lie(
        lie="tells one logprob for every token",
        ways=servers.TellsOneLogprob,
        contract="strict",
        clause="engine",
        outcome="unproven",
        shown_by="logprobs can be those of a distribution, and tell tokens apart",
    ),
    Lie(
        lie="loads another folder",
        config={"model": "/models/other"},
        contract="strict",
        clause="model",
        outcome="stopped",
        shown_by="the folder that the server says it loaded weights and tokenizer from",
    ),
    Lie(
        lie="answers from another model now and then",
        ways=servers.AnswersForAnother,
        contract="strict",
        clause="model",
        outcome="breached",
        shown_by="the model's name in every response",
    ),
    Lie(
        lie="restarts between turns",
        ways=servers.RestartsBetweenTurns,
        contract="strict",
        clause="boot",
        outcome="breached",
        shown_by="requests that the process says it answered",
    ),
    Lie(
        lie="gives remembered answers in place of computed ones",
        ways=servers.Remembers,
        contract="strict",
        clause="boot",
        outcome="breached",
        shown_by="requests that the process says it answered",
    ),
    Lie(
        lie="rounds otherwise from some request on",
        ways=servers.RoundsOtherwiseLater,
        contract="strict",
        clause="boot",
        outcome="breached",
        shown_by="probe: canaries at the boot's end as at its start",
    ),
    Lie(
        lie="changes the chat template",
        ways=servers.ChangesTheTemplate,
        contract="strict",
        clause="prompts",
        outcome="breached",
        shown_by="equal messages gave equal prompt ids",
    ),
    Lie(
        lie="tells one prompt for all conversations",
        ways=servers.RendersOnePrompt,
        contract="strict",
        clause="prompts",
        outcome="stopped",
        shown_by="different messages gave different prompt ids",
    ),
    Lie(
        lie="re-tokenises history",
        ways=servers.RetokenisesHistory,
        config={"guided_format": "hermes"},
        contract="strict",
        fields=CONTINUOUS,
        clause="prompts",
        outcome="breached",
        shown_by="prompts extend the previous prompt and output",
    ),
    Lie(
        lie="renames tool-call ids",
        ways=servers.RenamesToolCalls,
        contract="strict",
        clause="prompts",
        outcome="breached",
        shown_by="equal messages gave equal prompt ids",
    ),
)


def markdown() -> str:
    """The table for people."""
    lines = ["| the server | under | clause | verdict | shown by |", "|---|---|---|---|---|"]
    for lie in LIES:
        changed = "".join(f", {clause}.{key} {value}" for clause, of in lie.fields.items() for key, value in of.items())
        verdict = "breached: stops before the first episode" if lie.outcome == "stopped" else lie.outcome
        lines.append(f"| {lie.lie} | `{lie.contract}`{changed} | {lie.clause or 'all'} | {verdict} | {lie.shown_by} |")
    return "\n".join(lines)
