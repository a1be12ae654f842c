"""Engine: which program computed the answers, and how it was set up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from agenteval.audit.facts import Finding, RunFacts, attention_backend, server_section, shown
from agenteval.records import Boot, Evidence, Turn


class EngineAuditor:
    """Rests on what the server reports of itself after its start, never on the arguments it was given."""

    clause = "engine"

    def __init__(self, facts: RunFacts) -> None:
        self._facts, self._finding = facts, Finding(facts.run.run_id, self.clause)
        self._fingerprints: set[str] = set()

    def observe(self, turn: Turn) -> None:
        """Collect the fingerprint that each response carries."""
        self._fingerprints.add(str(turn.response.get("system_fingerprint")))

    def conclude(self) -> Iterator[Evidence]:
        """Version, effective configuration, fingerprint."""
        for boot, _ in self._facts.boots:
            yield self._version(boot)
            yield from self._configuration(boot)
        known = self._fingerprints - {"None"}
        yield self._finding.judged(
            "system_fingerprint of every response",
            None if not known or len(known) != len(self._fingerprints) else len(known) == 1,
            expected="one, in every response",
            observed=shown(sorted(self._fingerprints)) or "none",
        )

    def _version(self, boot: Boot) -> Evidence:
        version, wanted = boot.facts.get("version"), self._facts.contract.engine.version
        try:
            holds = None if version is None else SpecifierSet(wanted).contains(Version(version), prereleases=True)
        except InvalidVersion:
            holds = None
        return self._finding.judged(
            "the engine's version", holds, expected=wanted, observed=version or "unknown", boot=boot.boot_id
        )

    def _configuration(self, boot: Boot) -> Iterator[Evidence]:
        engine = self._facts.contract.engine
        model = server_section(boot, "vllm_config", "model_config")
        cache = server_section(boot, "vllm_config", "cache_config")
        wanted: dict[str, tuple[Any, Any]] = {
            "max_model_len": (engine.max_model_len, model.get("max_model_len")),
            "cache_dtype": (engine.kv_cache_dtype, cache.get("cache_dtype")),
        }
        if engine.dtype != "auto":
            wanted["dtype"] = (engine.dtype, str(model.get("dtype")).removeprefix("torch."))
        if engine.quantization is not None:
            wanted["quantization"] = (engine.quantization, model.get("quantization"))
        if engine.compilation != "auto":
            wanted["enforce_eager"] = (engine.compilation == "eager", model.get("enforce_eager"))
        different = [f"{name}: {found!r}, not {asked!r}" for name, (asked, found) in wanted.items() if asked != found]
        yield self._finding.judged(
            "the configuration that the server reports",
            None if not model else not different,
            expected=", ".join(f"{name}={asked}" for name, (asked, _) in wanted.items()),
            observed="unknown" if not model else "; ".join(different) or "the same",
            boot=boot.boot_id,
            dtype=model.get("dtype"),
            quantization=model.get("quantization"),
        )
        if engine.attention_backend is not None:
            backend = attention_backend(boot)
            yield self._finding.judged(
                "the attention backend that the server says it uses",
                None if backend is None else backend == engine.attention_backend,
                expected=engine.attention_backend,
                observed=backend or "unknown",
                boot=boot.boot_id,
            )
