"""The schema of a contract: one model a clause, no default for anything that a result depends on."""

from __future__ import annotations

import datetime
import re
from typing import Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import Field, field_validator, model_validator

from agenteval.digest import canonical_json, digest_json
from agenteval.errors import InputError
from agenteval.levels import Level
from agenteval.loading import Frozen
from agenteval.log import SECRET_NAME, SECRET_VALUE

MAX_REPEATS = 100
_LONGEST_NAME = 100
"""Of a contract: it becomes a part of file names."""
_KEEP_OUT = "a contract is stored with every run, so it must hold no secret"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Cache(Frozen):
    """What a request may reuse of the KV cache of earlier requests."""

    mode: Literal["disabled", "per_episode", "shared"]
    """`disabled`: nothing; `per_episode`: only its own episode's turns; `shared`: anything (the engine's
    default)."""


class Batching(Frozen):
    """Which requests may be computed together."""

    mode: Literal["serial", "invariant", "free"]
    """`serial`: one at a time; `invariant`: batch-invariant kernels, many at once; `free`: nothing is
    promised."""
    concurrency: int = Field(ge=1, le=1024)
    """Most requests that the runner has at one server at once."""

    @model_validator(mode="after")
    def _serial_is_one(self) -> Batching:
        if self.mode == "serial" and self.concurrency != 1:
            raise ValueError(f"serial means concurrency 1, not {self.concurrency}; use mode invariant or free")
        return self


class Sampling(Frozen):
    """How tokens are drawn; every field is sent with every request."""

    temperature: float = Field(ge=0.0, le=2.0)
    """0 is greedy. Above 0, repeats agree only with a seed and a serial or invariant batch."""
    seed: int = Field(ge=0, lt=2**31)
    """Each episode's own seed is derived from it, the task, the variant and the sample."""
    top_p: float = Field(gt=0.0, le=1.0)
    """Nucleus sampling; 1 keeps every token."""
    top_k: int = Field(ge=-1)
    """Tokens considered; 0 or -1 keeps every token."""
    min_p: float = Field(ge=0.0, le=1.0)
    """Smallest probability, as a share of the likeliest token's; 0 keeps every token."""
    presence_penalty: float = Field(ge=-2.0, le=2.0)
    """Subtracted from the logits of tokens that occurred in the output; 0 is off."""
    frequency_penalty: float = Field(ge=-2.0, le=2.0)
    """Subtracted once for each time a token occurred in the output; 0 is off."""
    repetition_penalty: float = Field(gt=0.0, le=2.0)
    """Divides the logits of tokens that occurred in prompt or output; 1 is off."""
    min_tokens: int = Field(ge=0)
    """Output tokens before an end or stop is allowed."""
    ignore_eos: bool
    """Whether to generate past the end token."""
    stop: tuple[str, ...]
    """Texts that end a turn."""
    stop_token_ids: tuple[int, ...]
    """Token ids that end a turn, besides the model's own end token."""
    bad_words: tuple[str, ...]
    """Words that must not be generated."""
    logit_bias: dict[str, float] | None
    """Token id, as text, to what is added to its logit."""
    allowed_token_ids: tuple[int, ...] | None
    """The only tokens that may be generated; null allows all."""


class Engine(Frozen):
    """The program that computes the answers, and how it is set up."""

    version: str
    """vLLM versions that are accepted, as a PEP 440 specifier such as `>=0.25,<0.34`."""
    dtype: Literal["auto", "float32", "float16", "bfloat16"]
    """Of weights and activations; `auto` is bfloat16 on a GPU and float32 on a CPU."""
    quantization: str | None
    """vLLM's name of a quantisation, such as `fp8`; null is the one that the model's own config names, if
    any."""
    kv_cache_dtype: str
    """Of keys and values; `auto` is the same as dtype."""
    attention_backend: str | None
    """vLLM's name of an attention backend, such as `TRITON_ATTN`; null leaves the choice to the engine."""
    max_model_len: int = Field(ge=256)
    """Most tokens of prompt and output together."""
    compilation: Literal["auto", "eager", "compiled"]
    """`auto` is compiled on a GPU and eager on a CPU, where compiling only delays the start."""
    gpu_memory_utilization: float | None = Field(gt=0.0, le=1.0)
    """Share of the GPU's memory; null is the engine's default. Decides how many cache blocks there are."""
    kv_cache_memory_bytes: int | None = Field(gt=0)
    """Size of the KV cache in bytes; null lets the engine measure it."""
    extra_args: tuple[str, ...]
    """Further arguments of the server, after all others; none may repeat a flag that a clause sets."""
    env: dict[str, str]
    """Further environment variables of the server."""
    start_timeout_s: float = Field(gt=0.0)
    """Longest wait for a healthy server; not part of the digest."""

    @field_validator("extra_args")
    @classmethod
    def _can_be_passed(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for argument in value:
            if "\0" in argument:
                raise ValueError(f"{argument!r} holds a NUL and cannot be passed to a program")
            name = argument.partition("=")[0] if argument.startswith("-") else ""
            if SECRET_NAME.search(name.replace("-", "_")):
                raise ValueError(f"{name}: {_KEEP_OUT}")
            if SECRET_VALUE.search(argument):
                raise ValueError(f"an address with a user or a password: {_KEEP_OUT}")
        return value

    @field_validator("env")
    @classmethod
    def _has_no_secret(cls, value: dict[str, str]) -> dict[str, str]:
        broken = [name for name, text in value.items() if not _VARIABLE.fullmatch(name) or "\0" in text]
        if broken:
            raise ValueError(f"{broken[0]!r} is no variable that can be set, or its value holds a NUL")
        named = [name for name, text in value.items() if SECRET_NAME.search(name) or SECRET_VALUE.search(text)]
        if named:
            raise ValueError(f"{', '.join(named)}: {_KEEP_OUT}")
        return value

    @field_validator("version")
    @classmethod
    def _is_specifier(cls, value: str) -> str:
        try:
            SpecifierSet(value)
        except InvalidSpecifier as error:
            raise ValueError(f"{value!r} is no version range; write one such as '>=0.25,<0.34'") from error
        return value


class ModelClause(Frozen):
    """Which weights, tokenizer and chat template answer."""

    digest: str | None = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    """The only content accepted; null accepts any, records it, and holds it for the run."""


class Boot(Frozen):
    """How many server processes may have answered."""

    mode: Literal["single", "any"]
    """`single`: one process from the first turn to the last; `any`: several are accepted."""


class Tools(Frozen):
    """What makes tool mocks repeatable."""

    clock: str
    """The instant that every mock sees at the start of its episode, as ISO 8601 with a zone."""
    call_ids: Literal["deterministic"]
    """Ids of tool calls are rewritten to turn and place, since the server's are random and reach the next
    prompt."""
    call_order: Literal["sequential"]
    """Calls of one turn run one after another, in the order in which they were written."""

    @field_validator("clock")
    @classmethod
    def _is_instant(cls, value: str) -> str:
        try:
            instant = datetime.datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f"{value!r} is no ISO 8601 instant such as 2026-01-15T09:00:00Z") from error
        if instant.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; append Z for UTC")
        try:
            instant.astimezone(datetime.UTC)
        except OverflowError as error:
            raise ValueError(f"{value!r} lies outside of the years 1 to 9999 in UTC") from error
        return value


class Prompts(Frozen):
    """How a turn's prompt follows from the turns before."""

    mode: Literal["continuous", "rerendered"]
    """`continuous`: it extends the previous prompt and output ids; `rerendered`: the chat template renders
    the whole history again, and equal messages must give equal ids."""


class Repeats(Frozen):
    """The same seed again: how often, and what must agree."""

    count: int = Field(ge=1, le=MAX_REPEATS)
    """Attempts at each sample, the first included."""
    level: Level
    """The level at which repeats are compared: logprobs > tokens > calls > tools > outcome."""
    agree: Literal["required", "measured"]
    """`required`: a divergence at the level breaches the contract; `measured`: it is counted, nothing is
    promised."""


class Contract(Frozen):
    """What is held fixed for a run, by name."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+=,-]*$", max_length=_LONGEST_NAME)
    """What people call it; not part of the digest."""
    description: str
    """One sentence for people; not part of the digest."""
    cache: Cache
    batching: Batching
    sampling: Sampling
    engine: Engine
    model: ModelClause
    boot: Boot
    tools: Tools
    prompts: Prompts
    repeats: Repeats

    def fields(self) -> dict[str, Any]:
        """Every effective field, as JSON."""
        return self.model_dump(mode="json")

    def digest(self) -> str:
        """Hash of everything that can change a result; names, descriptions and patience cannot."""
        fields = self.fields()
        del fields["name"], fields["description"], fields["engine"]["start_timeout_s"]
        return digest_json(fields)

    def with_repeats(self, count: int) -> Contract:
        """The same contract with another number of repeats, and a name that says so."""
        if count == self.repeats.count:
            return self
        if not 1 <= count <= MAX_REPEATS:
            raise InputError(
                f"A contract can ask for 1 to {MAX_REPEATS} repeats, not for {count}. Name another number."
            )
        fields = self.fields()
        fields["repeats"]["count"] = count
        fields["name"] = f"{self.name[: _LONGEST_NAME - 20]}+repeats={count}"
        return Contract.model_validate_json(canonical_json(fields))


CLAUSES = tuple(name for name in Contract.model_fields if name not in ("name", "description"))
"""The clauses, in the order of the design's table."""


def differences(a: Contract, b: Contract) -> dict[str, tuple[Any, Any]]:
    """Fields in which two contracts differ, as `clause.field` to both values."""
    left, right = a.fields(), b.fields()
    return {
        f"{clause}.{field}": (left[clause][field], right[clause][field])
        for clause in CLAUSES
        for field in left[clause]
        if left[clause][field] != right[clause][field]
    }


def is_accepted(version: str, accepted: str) -> bool | None:
    """Whether a version lies in a range; None where it is no version, such as `dev`, and cannot be compared.

    Args:
        version: What an engine calls itself; a pre-release counts as the release that it leads to.
        accepted: A PEP 440 specifier.
    """
    try:
        return SpecifierSet(accepted).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return None
