"""What the contract writes into every request, and what it refuses to find there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agenteval.contract import Contract
from agenteval.errors import RequestContradictsContractError, UnsupportedClauseError
from agenteval.records import EpisodePlan

CANDIDATES = 2
"""Logprobs asked for at each position: the chosen token's and its best rival's."""
UNCOVERED = {
    "use_beam_search": False,
    "length_penalty": 1.0,
    "prompt_logprobs": None,
    "logprob_token_ids": None,
    "truncate_prompt_tokens": None,
    "thinking_token_budget": None,
    "repetition_detection": None,
    "watermarking": None,
    "kv_transfer_params": None,
    "vllm_xargs": None,
    "chat_template": None,
    "logits_processors": None,
    "return_tokens_as_token_ids": False,
    "echo": False,
    "stream": False,
    "n": 1,
    "best_of": 1,
}
"""Fields that change what is generated or recorded and that no clause covers; only these values are let through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRules:
    """The fields of one episode's requests that are not the agent's to choose."""

    fixed: dict[str, Any]
    """Written into every request; another value there is a contradiction."""
    max_tokens: int
    """Used where the agent sets no limit of its own."""

    @classmethod
    def of(cls, contract: Contract, plan: EpisodePlan, *, model_name: str, max_tokens: int) -> RequestRules:
        """The rules of one episode under a contract."""
        fixed = {
            **contract.sampling.model_dump(mode="json"),
            "seed": plan.seed,
            "model": model_name,
            "logprobs": True,
            "top_logprobs": CANDIDATES,
            "return_token_ids": True,
        }
        if plan.cache_salt is not None:
            fixed["cache_salt"] = plan.cache_salt
        return cls(fixed=fixed, max_tokens=max_tokens)

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request that is sent in place of the agent's.

        Raises:
            RequestContradictsContractError: If the agent asks for something that the contract fixes otherwise.
        """
        for field, allowed in UNCOVERED.items():
            if body.get(field, allowed) not in (allowed, None):
                raise RequestContradictsContractError(field=field, requested=body[field], fixed=allowed)
        for field, value in self.fixed.items():
            if body.get(field) is not None and body[field] != value:
                raise RequestContradictsContractError(field=field, requested=body[field], fixed=value)
        if "cache_salt" not in self.fixed and body.get("cache_salt") is not None:
            raise RequestContradictsContractError(field="cache_salt", requested=body["cache_salt"], fixed=None)
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or self.max_tokens
        sent = {key: value for key, value in body.items() if key not in ("max_tokens", "max_completion_tokens")}
        return {**sent, **self.fixed, "max_completion_tokens": limit}


def check_accepted(rules: RequestRules, accepted: frozenset[str], contract_name: str) -> None:
    """Make sure that the server knows every field that the contract writes; vLLM ignores unknown ones silently.

    Args:
        rules: Of any episode of the run.
        accepted: Fields that the server publishes; empty where it publishes none, which proves nothing.
        contract_name: For the message.

    Raises:
        UnsupportedClauseError: If it lacks one.
    """
    missing = sorted(set(rules.fixed) - accepted)
    if accepted and missing:
        raise UnsupportedClauseError(
            contract=contract_name,
            reasons=[f"sampling: this server's chat completions have no field {name!r}" for name in missing],
            advice="Use an engine version that has them (agenteval reads vLLM 0.25 to 0.33).",
        )
