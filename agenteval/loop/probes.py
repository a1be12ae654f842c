"""Short requests at the start of a boot that make the cache clause's evidence real.

A prompt longer than a cache block is sent twice under a salt of its own, then once under another salt: the second
must hit where a cache is promised (the positive control) and miss where none is; the third must always miss. Probe
turns are stored like episodes' turns, under their own kind, and share no block with them.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx

from agenteval.client import (
    EpisodeOverError,
    EpisodeRecorder,
    HandOver,
    RecordingTransport,
    RequestRules,
    TurnIdentity,
)
from agenteval.contract import Contract
from agenteval.digest import digest_json
from agenteval.errors import InputError
from agenteval.loop.episode import BootSession
from agenteval.records import EpisodePlan

PROBES = ("cache-cold", "cache-warm", "cache-other-salt")
"""Names of the probes, in the order in which they are sent."""
_DEFAULT_BLOCK = 1024
"""Tokens, where the server does not say: larger than any engine's block, so that a shared cache must hit."""


def run_probes(
    run_id: str, contract: Contract, boot: BootSession, hand_over: HandOver, check_over: Callable[[], None]
) -> None:
    """Send the probes of a boot, one after another, and store them.

    Args:
        run_id: Whose probes.
        contract: Whose sampling fields they carry.
        boot: Whose server.
        hand_over: Stores a turn.
        check_over: Raises when no other request may be made.

    Raises:
        ServerError: If the server fails at one.
        StoreError: If one cannot be stored.
        InputError: If one does not fit the model.
    """
    salt = digest_json([run_id, boot.boot_id]).removeprefix("sha256:")[:32]
    prompt = _prompt(salt, _block_size(boot))
    for name, suffix in zip(PROBES, ("a", "a", "b"), strict=True):
        plan = EpisodePlan(
            run_id=run_id,
            position=0,
            task="probe",
            variant=name,
            sample=0,
            repeat=0,
            seed=contract.sampling.seed,
            cache_salt=f"agenteval-probe-{salt}-{suffix}",
        )
        identity = TurnIdentity(run_id=run_id, boot_id=boot.boot_id, episode_id=f"{boot.boot_id}/{name}", kind="probe")
        # One token is enough, unless the contract forbids so few.
        rules = RequestRules.of(
            contract, plan, model_name=boot.model_name, max_tokens=max(1, contract.sampling.min_tokens)
        )
        recorder = EpisodeRecorder(identity, hand_over)
        transport = RecordingTransport(
            connection=boot.connection,
            gate=boot.gate,
            rules=rules,
            recorder=recorder,
            base_url=boot.server.base_url,
            check_over=check_over,
        )
        _send(prompt, boot, transport, recorder)


def _send(prompt: str, boot: BootSession, transport: RecordingTransport, recorder: EpisodeRecorder) -> None:
    with httpx.Client(transport=transport, base_url=f"{boot.server.base_url}/v1") as http:
        headers = {"Authorization": f"Bearer {boot.server.api_key}"}
        body = {"messages": [{"role": "user", "content": prompt}]}
        try:
            http.post("/chat/completions", json=body, headers=headers)
        except EpisodeOverError as error:
            raise InputError(
                f"A probe of the cache does not fit the model: {error}. Raise engine.max_model_len in the contract."
            ) from error
    recorder.end_turn()
    recorder.wait_durable()


def _block_size(boot: BootSession) -> int:
    found = boot.server.facts.cache_config.get("block_size", "")
    return int(found) if found.isdigit() else _DEFAULT_BLOCK


def _prompt(salt: str, block_size: int) -> str:
    """A text of more than one cache block that no episode and no other boot has; each word is at least a token."""
    return f"Probe {salt}." + " go" * block_size
