"""Short requests at the start of a boot, and again at its end, on which the evidence of several clauses rests.

Cache: a prompt longer than a block, twice under one salt, then under another, then again after the cache was emptied.
Batching: a canary alone and among others, a long prompt too where kernels must be invariant. Sampling: fields that
must change the canary's answer. Boot: the canaries, at the start and the end. Each carries a salt of its own, so that
it shares no block with an episode, and the cache is emptied when the probes at the start are over. What they show is
`audit`'s business.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx

from agenteval.audit import probes
from agenteval.audit.sampling_probes import NEUTRAL, sampling_probes
from agenteval.client import (
    EpisodeOverError,
    EpisodeRecorder,
    Gate,
    HandOver,
    RecordingTransport,
    RequestRules,
    TurnIdentity,
    WaitDurable,
    open_connection,
)
from agenteval.contract import Contract, Sampling
from agenteval.digest import digest_json
from agenteval.errors import InputError
from agenteval.loop.episode import BootSession
from agenteval.records import EpisodePlan, Turn
from agenteval.server import ManagedServer

_DEFAULT_BLOCK = 1024
"""Tokens of a cache block where the server does not tell: more than any engine's."""
_CACHE_TOKENS, _CANARY_TOKENS, _SAMPLING_TOKENS = 4, 8, 4
_COMPANY_TOKENS, _WAITING_TOKENS = 16, 4
"""Output tokens of the probes: few, since on a CPU each takes a fifth of a second."""
_CANARY_PROMPTS = (
    "Name a color, an animal and a city, in that order.",
    "A train leaves at nine with 120 seats. At the first stop 17 people leave and 25 come, at the second 8 leave and "
    "31 come, at the third everybody who came at the first stop leaves again. The conductor counts the seats that are "
    "still free, writes the number on a note, and asks a colleague whether it can be right. Say what the note says, "
    "and why.",
)
_FAR_TOKENS = 2_048
"""Tokens, more or less, of the long prompt: attention kernels split contexts from some hundreds of tokens on."""
_RESET_TIMEOUT_S = 60.0
_TOGETHER_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One probe."""

    name: str
    prompt: str
    max_tokens: int
    sampling: Sampling = NEUTRAL
    salt: str | None = None
    """What its cache salt ends with; None is its name."""


class BootProber:
    """Sends the probes of one boot and keeps their turns."""

    def __init__(
        self, contract: Contract, boot: BootSession, *, hand_over: HandOver, check_over: Callable[[], None]
    ) -> None:
        """Bind the probes to a boot.

        Args:
            contract: Which probes it calls for follows from it.
            boot: Whose server.
            hand_over: Stores a turn.
            check_over: Raises when no other request may be made.
        """
        self._contract, self._boot, self._check_over = contract, boot, check_over
        self._store = hand_over
        self._run_id = boot.boot_id.rpartition("/")[0]
        self._salt = digest_json([boot.boot_id]).removeprefix("sha256:")[:32]
        self._turns: dict[str, Turn] = {}

    @property
    def turns(self) -> Mapping[str, Turn]:
        """Name to turn of the probes so far."""
        return self._turns

    def probe_start(self) -> None:
        """Send all probes of a boot's start.

        Raises:
            ServerError: If the server fails at one.
            StoreError: If one cannot be stored.
            InputError: If one does not fit the model.
            StoppedError: If the user wants no more.
        """
        cold = self._cache_pair("")
        self._send(_Request(name=probes.CACHE_OTHER_SALT, prompt=cold, max_tokens=_CACHE_TOKENS))
        self._canaries("")
        for probe in sampling_probes(self._contract.sampling):
            sampling = NEUTRAL.model_copy(update=probe.fields(self._turns))
            prompt = probe.prompt or _CANARY_PROMPTS[0]
            self._send(_Request(name=probe.name, prompt=prompt, max_tokens=_SAMPLING_TOKENS, sampling=sampling))
        self._crowd()
        if self._contract.batching.mode == "invariant":
            self._crowd_far()
        if self._may_reset and self._reset():
            self._send(_Request(name=probes.CACHE_AFTER_RESET, prompt=cold, max_tokens=_CACHE_TOKENS, salt="cache"))
            self._reset()

    def probe_end(self) -> None:
        """Send again, when the episodes are over, what a server's state could have changed.

        Raises:
            ServerError: If the server fails at one.
            StoreError: If one cannot be stored.
            StoppedError: If the user wants no more.
        """
        self._canaries(probes.END)
        self._cache_pair(probes.END)

    def _cache_pair(self, phase: str) -> str:
        """The same prompt twice under one salt; gives the prompt."""
        prompt = _long_prompt(f"{phase}{self._salt}", self._block_tokens)
        for name in (probes.CACHE_COLD, probes.CACHE_WARM):
            self._send(_Request(name=phase + name, prompt=prompt, max_tokens=_CACHE_TOKENS, salt=f"{phase}cache"))
        return prompt

    def _canaries(self, phase: str) -> None:
        for name, prompt in zip(probes.CANARIES, _CANARY_PROMPTS, strict=True):
            self._send(_Request(name=phase + name, prompt=prompt, max_tokens=_CANARY_TOKENS))

    def _crowd(self) -> None:
        """The short canary among others, of which none has its length."""
        size = probes.crowd_size(self._contract)
        tokens = _WAITING_TOKENS if self._contract.batching.mode == "serial" else _COMPANY_TOKENS
        company = [
            _Request(
                name=f"crowd-{place:02d}",
                prompt=f"Tell a story of {place} friends." + " Go on." * place,
                max_tokens=tokens,
            )
            for place in range(1, size)
        ]
        canary = _Request(name=probes.CROWDED, prompt=_CANARY_PROMPTS[0], max_tokens=_CANARY_TOKENS)
        self._send_at_once([*company, canary])

    def _crowd_far(self) -> None:
        """A long prompt alone, then among others as long."""
        # Half of what the model takes, where that is little.
        prompt = _long_prompt("far", min(_FAR_TOKENS, self._contract.engine.max_model_len // 2))
        self._send(_Request(name=probes.FAR_ALONE, prompt=prompt, max_tokens=_CANARY_TOKENS))
        company = [
            _Request(name=f"far-{place:02d}", prompt=f"{prompt} Friend {place}.", max_tokens=_COMPANY_TOKENS)
            for place in range(1, probes.crowd_size(self._contract))
        ]
        self._send_at_once([*company, _Request(name=probes.FAR_CROWDED, prompt=prompt, max_tokens=_CANARY_TOKENS)])

    def _send(self, request: _Request) -> None:
        self._exchange(request, self._boot.gate, self._boot.connection)

    def _send_at_once(self, requests: Sequence[_Request]) -> None:
        gate, connection = Gate(len(requests)), _Together(len(requests))
        try:
            with ThreadPoolExecutor(len(requests)) as threads:
                sent = [threads.submit(self._exchange, request, gate, connection) for request in requests]
            for each in sent:
                each.result()
        finally:
            connection.close()

    def _exchange(self, request: _Request, gate: Gate, connection: httpx.BaseTransport) -> None:
        recorder = EpisodeRecorder(
            TurnIdentity(
                run_id=self._run_id,
                boot_id=self._boot.boot_id,
                episode_id=f"{self._boot.boot_id}/{request.name}",
                kind="probe",
            ),
            lambda turn: self._keep(request.name, turn),
        )
        transport = RecordingTransport(
            connection=connection,
            gate=gate,
            rules=self._rules(request),
            recorder=recorder,
            base_url=self._boot.server.base_url,
            check_over=self._check_over,
        )
        with httpx.Client(transport=transport, base_url=f"{self._boot.server.base_url}/v1") as http:
            body = {"messages": [{"role": "user", "content": request.prompt}]}
            try:
                http.post("/chat/completions", json=body, headers=self._headers)
            except EpisodeOverError as error:
                raise InputError(
                    f"A probe does not fit the model: {error}. Raise engine.max_model_len in the contract."
                ) from error
        recorder.end_turn()
        recorder.wait_durable()

    def _keep(self, name: str, turn: Turn) -> WaitDurable:
        self._turns[name] = turn
        return self._store(turn)

    def _rules(self, request: _Request) -> RequestRules:
        plan = EpisodePlan(
            run_id=self._run_id,
            position=0,
            task="probe",
            variant=request.name,
            sample=0,
            repeat=0,
            seed=request.sampling.seed,
            cache_salt=f"agenteval-probe-{self._salt}-{request.salt or request.name}",
        )
        contract = self._contract.model_copy(update={"sampling": request.sampling})
        return RequestRules.of(contract, plan, model_name=self._boot.model_name, max_tokens=request.max_tokens)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._boot.server.api_key}"}

    @property
    def _block_tokens(self) -> int:
        """Tokens that a prompt must have to be found in the cache: a block; a drafting model gives up the last one."""
        facts = self._boot.server.facts
        size = facts.cache_config.get("block_size", "")
        is_drafting = any("spec" in argument for argument in self._contract.engine.extra_args)
        blocks = 2 if is_drafting else 1
        return blocks * (int(size) if size.isdigit() else _DEFAULT_BLOCK)

    @property
    def _may_reset(self) -> bool:
        """Whether there is a cache to empty, and it is ours: others' requests may live from someone else's."""
        return self._contract.cache.mode != "disabled" and isinstance(self._boot.server, ManagedServer)

    def _reset(self) -> bool:
        """Ask the server to forget; whether it says that it did proves nothing."""
        url = f"{self._boot.server.base_url}/reset_prefix_cache"
        try:
            answer = httpx.post(url, headers=self._headers, timeout=_RESET_TIMEOUT_S, trust_env=False)
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK


class _Together(httpx.BaseTransport):
    """Connections that hold each request back until as many are there, so that a fast server has them at once."""

    def __init__(self, size: int) -> None:
        self._inner, self._barrier = open_connection(size), threading.Barrier(size)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        # One that never comes, since the user has stopped the run, must not hold up the others.
        with contextlib.suppress(threading.BrokenBarrierError):
            self._barrier.wait(_TOGETHER_TIMEOUT_S)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def _long_prompt(salt: str, tokens: int) -> str:
    """A text of more than so many tokens, as each word is at least one; its salt makes it another from the start."""
    return f"Probe {salt}." + " go" * tokens
