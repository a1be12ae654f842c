"""Engine: which program computed the answers, and how it was set up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agenteval.audit.answers import is_distribution, says_its_tokens
from agenteval.audit.attention import backend_rows
from agenteval.audit.facts import NOT_PROMISED, ClauseEvidence, RunFacts, argument, place_of, server_section, shown
from agenteval.contract import Engine, is_accepted
from agenteval.records import Boot, Evidence, Turn

_FLAGS = {
    "dtype": "--dtype",
    "max_model_len": "--max-model-len",
    "quantization": "--quantization",
    "seed": "--seed",
    "cache_dtype": "--kv-cache-dtype",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "kv_cache_memory_bytes": "--kv-cache-memory-bytes",
}
"""Field of the server's reported configuration to the option that sets it."""
_ENOUGH = 64
"""Distinct logprobs that are kept; two already tell answers apart."""
_CACHE_FIELDS = ("cache_dtype", "gpu_memory_utilization", "kv_cache_memory_bytes")
"""Fields that are reported with the cache; the others are with the model."""


class EngineAuditor:
    """Rests on what the server reports of itself after its start, never on the arguments it was given.

    And on its answers: one build's fingerprint, logprobs that can be some, and texts that are those of their tokens.
    """

    clause = "engine"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._evidence = facts, ClauseEvidence(facts.run.run_id, self.clause)
        self._fingerprints: set[str] = set()
        self._turns = self._unread = 0
        self._logprobs: set[float] = set()
        self._impossible: list[str] = []
        self._told_otherwise: list[str] = []

    def observe(self, turn: Turn) -> None:
        """Collect fingerprints, and the answers that cannot be."""
        self._fingerprints.add(str(turn.response.get("system_fingerprint")))
        self._turns += 1
        if len(self._logprobs) < _ENOUGH:
            self._logprobs.update(turn.logprobs)
        place = place_of(turn)
        if not is_distribution(turn):
            self._impossible.append(place)
        is_told = says_its_tokens(turn)
        self._unread += is_told is None
        if is_told is False:
            self._told_otherwise.append(place)

    def conclude(self) -> Iterator[Evidence]:
        """Version, effective configuration, fingerprint, answers."""
        for boot, _ in self._facts.boots:
            yield self._version(boot)
            yield from self._configuration(boot)
        known = self._fingerprints - {"None"}
        yield self._evidence.judged(
            "system_fingerprint of every response",
            None if not known or len(known) != len(self._fingerprints) else len(known) == 1,
            expected="one, in every response",
            observed=shown(sorted(self._fingerprints)) or "none",
        )
        # Where all are one number, equal bits say nothing.
        is_telling = len(self._logprobs) > 1 or None
        yield self._evidence.judged(
            "logprobs can be those of a distribution, and tell tokens apart",
            False if self._impossible else is_telling,
            expected="probabilities that add up to at most 1, not all alike",
            observed=f"{len(self._impossible)} of {self._turns} answers cannot be"
            + ("" if is_telling else "; all logprobs are alike"),
            answers=shown(self._impossible),
        )
        yield self._evidence.judged(
            "texts and tool calls are what the tokens of the answer say",
            False if self._told_otherwise else self._turns > self._unread or None,
            expected="in every answer that can be read",
            observed=f"{len(self._told_otherwise)} of {self._turns} differ, {self._unread} cannot be read",
            answers=shown(self._told_otherwise),
        )

    def _version(self, boot: Boot) -> Evidence:
        version, wanted = boot.facts.get("version"), self._facts.contract.engine.version
        return self._evidence.judged(
            "the engine's version",
            None if version is None else is_accepted(version, wanted),
            expected=wanted,
            observed=version or "unknown",
            boot=boot.boot_id,
        )

    def _configuration(self, boot: Boot) -> Iterator[Evidence]:
        wanted = _of_arguments(boot) if boot.is_managed else _of_contract(self._facts.contract.engine)
        found = {name: _reported(boot, name) for name in wanted}
        different = [
            f"{name}: {found[name]}, not {asked}" for name, asked in wanted.items() if found[name] not in (None, asked)
        ]
        unknown = [name for name in wanted if found[name] is None]
        yield self._evidence.judged(
            "the configuration that the server reports",
            False if different else None if unknown else True,
            expected=", ".join(f"{name}={asked}" for name, asked in wanted.items()),
            observed="; ".join(different) or (f"unknown: {', '.join(unknown)}" if unknown else "the same"),
            boot=boot.boot_id,
        )
        engine = self._facts.contract.engine
        if engine.extra_args or engine.env:
            yield self._evidence.row(
                "arguments and variables beyond the clauses",
                NOT_PROMISED,
                expected="passed on as they stand; nothing reads them back",
                observed=" ".join([*engine.extra_args, *(f"{name}={value}" for name, value in engine.env.items())]),
                boot=boot.boot_id,
            )
        if engine.attention_backend is not None:
            yield from backend_rows(self._evidence, boot, engine.attention_backend)


def _of_arguments(boot: Boot) -> dict[str, str]:
    """What a server of ours was told; whether it did so is what its report must show. `auto` is the engine's choice."""
    given = {name: argument(boot, flag) for name, flag in _FLAGS.items()}
    eager = {"enforce_eager": str("--enforce-eager" in boot.argv)}
    return {name: value for name, value in given.items() if value not in (None, "auto")} | eager


def _of_contract(engine: Engine) -> dict[str, str]:
    """What the contract itself fixes; an outside server may have resolved `auto` in its own way."""
    named: dict[str, Any] = {
        "max_model_len": engine.max_model_len,
        "cache_dtype": None if engine.kv_cache_dtype == "auto" else engine.kv_cache_dtype,
        "dtype": None if engine.dtype == "auto" else engine.dtype,
        "quantization": engine.quantization,
        "enforce_eager": None if engine.compilation == "auto" else engine.compilation == "eager",
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def _reported(boot: Boot, name: str) -> str | None:
    """A field of the server's report as text; None where it is not reported, which is not the same as null."""
    section = server_section(boot, "vllm_config", "cache_config" if name in _CACHE_FIELDS else "model_config")
    return str(section[name]).removeprefix("torch.") if name in section else None
