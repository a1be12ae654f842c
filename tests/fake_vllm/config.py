"""What a stand-in server is asked to be. Knows no HTTP and computes no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a scripted reply."""

    name: str
    """Tool name; it need not be declared."""
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """An object, or the raw text to send, which need not be JSON."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a script makes the model say in one turn."""

    text: str | None = None
    """Content of the message, before any calls."""
    calls: Sequence[Call] = ()
    """Tool calls of the message, in order."""
    when_warm: Reply | None = None
    """Said instead when every block of the prompt that can hit did hit: a flip to order."""


@dataclass(frozen=True, slots=True)
class Script:
    """The replies of the conversations whose first user message contains a text."""

    when: str
    """Part of the first user message; "" matches every conversation."""
    replies: Sequence[Reply]
    """One a turn, by the number of assistant messages sent; the last repeats."""


ScriptFunction = Callable[[str, int], Reply | None]
"""(first user message, turn from 0) -> reply; None lets the model choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong. Requests are counted from 1 and are chat completions."""

    die_after_requests: int | None = None
    """The next request finds the connection closed, and nothing listens any more."""
    error_on: frozenset[int] = frozenset()
    """These are answered with status 500."""
    truncate_on: frozenset[int] = frozenset()
    """Of these half the body is sent, then the connection ends."""
    hang_on: frozenset[int] = frozenset()
    """These get no answer for `hang_s`, then a closed connection."""
    hang_s: float = 3600.0
    """How long a hanging request hangs, in seconds."""
    omit: frozenset[str] = frozenset()
    """Made null: logprobs, token_ids, prompt_token_ids, cached_tokens, system_fingerprint, usage.
    A metric's name leaves it out of /metrics."""
    unhealthy: bool = False
    """/health answers 503."""
    reset_fails: bool = False
    """/reset_prefix_cache answers 200 and success false, and resets nothing."""
    reset_lies: bool = False
    """/reset_prefix_cache answers 200 and success true, and resets nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeConfig:
    """Everything that a stand-in server's answers depend on."""

    served_model_name: str = "fake"
    """The name that requests must use."""
    model: str = "/models/fake"
    """The folder that the server claims to have loaded."""
    weights: str = ""
    """Another text is another model; quantisation, for instance."""
    version: str = "0.32.0"
    """Of vLLM, in /version, the fingerprint and /openapi.json."""
    boot: int = 0
    """Above 0, another boot whose kernels round otherwise (compile cache, autotuning)."""

    prefix_caching: bool = True
    """Whether blocks are shared between requests of one salt."""
    block_size: int = 16
    """Tokens of one block; only whole blocks hit."""
    num_gpu_blocks: int = 8192
    """Blocks that are kept; beyond, the least recently used is evicted."""
    cache_sensitivity: float = 0.125
    """Largest shift of a logprob or margin by a cache hit, in nats."""

    max_num_seqs: int = 256
    """Requests that run at once; the others wait."""
    batch_sensitivity: float = 0.125
    """Largest shift by other requests in flight, in nats."""
    batch_invariant: bool = False
    """Neither hits nor company shift anything; under FlashAttention 3 company still does, as measured."""
    attention_backend: str = "FLASH_ATTN"
    """vLLM's name of the attention backend."""
    flash_attn_version: int | None = 2
    """2 or 3, meaningful for FLASH_ATTN only."""

    near_tie_share: float = 0.05
    """Share of the model's choices whose two best options are at most 0.125 nats apart."""
    guided_format: Literal["json_list", "hermes"] = "json_list"
    """What `required` generates. json_list is vLLM's; the next prompt renders it otherwise."""
    render_call_ids: bool = False
    """Whether the chat template renders tool-call ids, which are random."""
    script: Sequence[Script] | ScriptFunction = ()
    """What to say; conversations without a script are the model's own."""

    max_model_len: int = 8192
    """Most tokens of prompt and output together."""
    max_logprobs: int = 20
    """Most top_logprobs that a request may ask for."""
    default_sampling: Mapping[str, Any] = field(default_factory=dict)
    """Sampling fields of requests that lack them: the generation_config.json of the model."""
    tool_call_parser: str | None = "hermes"
    """None refuses `required` and named tools."""
    enable_auto_tool_choice: bool = True
    """False, without a parser, refuses `auto`."""
    prompt_tokens_details: bool = True
    """Whether usage tells the cached tokens (vLLM's own default is false)."""
    null_cached_tokens: Literal["never", "at_zero", "always"] = "never"
    """When cached_tokens is null although details are on; `at_zero` is what some versions do."""
    unknown_fields: frozenset[str] = frozenset()
    """Request fields that this server does not know, and so ignores, though vLLM 0.32 knows them."""

    dtype: str = "bfloat16"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    seed: int = 0
    enforce_eager: bool = False
    device_type: str = "cpu"
    env: Mapping[str, str] = field(default_factory=dict)
    """VLLM_* variables, as /server_info tells them."""
    library_env: Mapping[str, str] = field(default_factory=dict)
    """Variables of its libraries, as /server_info tells them."""

    api_key: str | None = None
    """The bearer token that paths under /v1 demand."""
    dev_mode: bool = True
    """Whether /reset_prefix_cache and /server_info exist (VLLM_SERVER_DEV_MODE)."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 lets the system choose."""
    latency_s: float = 0.0
    """How long a request runs, in seconds."""
    faults: Faults = field(default_factory=Faults)

    @property
    def cache_shift(self) -> float:
        """Largest shift by a hit, after batch invariance."""
        return 0.0 if self.batch_invariant else self.cache_sensitivity

    @property
    def batch_shift(self) -> float:
        """Largest shift by company, after batch invariance."""
        violated = self.attention_backend == "FLASH_ATTN" and self.flash_attn_version == 3
        return self.batch_sensitivity if violated or not self.batch_invariant else 0.0

    def reply(self, first_user_message: str, turn: int) -> Reply | None:
        """The scripted reply to a conversation at a turn, or None."""
        if callable(self.script):
            return self.script(first_user_message, turn)
        for script in self.script:
            if script.when in first_user_message and script.replies:
                return script.replies[min(turn, len(script.replies) - 1)]
        return None


def config_from_json(base: FakeConfig, fields: Mapping[str, Any]) -> FakeConfig:
    """A config with fields from JSON on top; `script` and `faults` in the shape of their classes."""
    values: dict[str, Any] = dict(fields)
    if "script" in values:
        values["script"] = tuple(
            Script(script.get("when", ""), tuple(reply_from_json(reply) for reply in script["replies"]))
            for script in values["script"]
        )
    if "faults" in values:
        faults: dict[str, Any] = {
            name: frozenset(value) if isinstance(value, list) else value for name, value in values["faults"].items()
        }
        values["faults"] = Faults(**faults)
    return replace(base, **values)


def reply_from_json(fields: Mapping[str, Any]) -> Reply:
    """A reply from its JSON: {"text", "calls": [{"name", "arguments"}], "when_warm"}."""
    warm = fields.get("when_warm")
    return Reply(
        text=fields.get("text"),
        calls=tuple(Call(call["name"], call.get("arguments", {})) for call in fields.get("calls", ())),
        when_warm=None if warm is None else reply_from_json(warm),
    )
