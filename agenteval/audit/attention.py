"""Which attention kernels a server really uses: two clauses rest on it."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.audit.facts import ClauseEvidence, log_fact, server_section
from agenteval.records import Boot, Evidence


def backend_rows(evidence: ClauseEvidence, boot: Boot, wanted: str | None) -> Iterator[Evidence]:
    """The backend that the log names, and the one that the configuration names where it names one.

    Args:
        evidence: Makes the rows of the clause.
        boot: Whose server.
        wanted: vLLM's name of the backend that the contract fixes.
    """
    logged = log_fact(boot, "attention_backend")
    yield evidence.judged(
        "the attention backend that the server's log names",
        None if logged is None or wanted is None else logged == wanted,
        expected=wanted or "one named in the contract",
        observed=logged or "unknown",
        boot=boot.boot_id,
    )
    configured = server_section(boot, "vllm_config", "attention_config").get("backend")
    if configured is not None and wanted is not None:
        yield evidence.judged(
            "the attention backend in the server's configuration",
            _folded(str(configured)) == _folded(wanted),
            expected=wanted,
            observed=configured,
            boot=boot.boot_id,
        )


def _folded(name: str) -> str:
    """A backend's name in any spelling: `TRITON_ATTN`, `…triton_attn.TritonAttentionBackend`."""
    last = name.rpartition(".")[2].removesuffix("Backend")
    return last.replace("_", "").lower().replace("attention", "attn")
