"""Short requests at the start of a boot that make the cache clause's evidence real.

A prompt longer than a cache block is sent twice under a salt of its own, then once under another salt: the second
must hit where a cache is promised (the positive control) and miss where none is; the third must always miss. Probe
turns are stored like episodes' turns, under their own kind, and share no block with them.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx

from agenteval.client import EpisodeRecorder, RecordingTransport, RequestRules, TurnIdentity
from agenteval.contract import Contract
from agenteval.digest import digest_json
from agenteval.errors import AgentevalError
from agenteval.loop.episode import BootSession
from agenteval.records import EpisodePlan
from agenteval.store import RunWriter

PROBES = ("cache-cold", "cache-warm", "cache-other-salt")
"""Names of the probes, in the order in which they are sent."""
_DEFAULT_BLOCK = 16


def run_probes(run_id: str, contract: Contract, boot: BootSession, writer: RunWriter) -> None:
    """Send the probes of a boot, one after another, and store them.

    Raises:
        ServerError: If the server fails at one.
        StoreError: If one cannot be stored.
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
        _send(plan, prompt, contract, boot, writer.append)


def _send(
    plan: EpisodePlan,
    prompt: str,
    contract: Contract,
    boot: BootSession,
    hand_over: Callable[..., Callable[[], None]],
) -> None:
    identity = TurnIdentity(
        run_id=plan.run_id, boot_id=boot.boot_id, episode_id=f"{boot.boot_id}/{plan.variant}", kind="probe"
    )
    recorder = EpisodeRecorder(identity, hand_over)
    transport = RecordingTransport(
        connection=boot.connection,
        gate=boot.gate,
        rules=RequestRules.of(contract, plan, model_name=boot.model_name, max_tokens=1),
        recorder=recorder,
        check_over=lambda: None,
    )
    with httpx.Client(transport=transport, base_url=f"{boot.server.base_url}/v1") as http:
        headers = {"Authorization": f"Bearer {boot.server.api_key}"}
        body = {"messages": [{"role": "user", "content": prompt}], "max_completion_tokens": 1}
        try:
            http.post("/chat/completions", json=body, headers=headers)
        except AgentevalError:
            assert recorder.failure is not None
            raise recorder.failure from None
    recorder.end_turn()
    recorder.wait_durable()


def _block_size(boot: BootSession) -> int:
    found = boot.server.facts.cache_config.get("block_size", "")
    return int(found) if found.isdigit() else _DEFAULT_BLOCK


def _prompt(salt: str, block_size: int) -> str:
    """A text of more than one cache block that no episode and no other boot has; each word is at least a token."""
    return f"Probe {salt}." + " go" * block_size
