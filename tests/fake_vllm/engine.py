"""The stand-in model and its prefix cache: equal prompts give equal outputs, unless something rounds."""

from __future__ import annotations

import json
import math
import os
import struct
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from .config import FakeConfig, Reply
from .draft import WORDS, Draft, Drawing, Noise, identifiers, unit, write_arguments
from .text import END_ID, content_text, decode, encode, render, render_call, token_bytes

SAMPLING_NEUTRAL: dict[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "min_tokens": 0,
    "ignore_eos": False,
    "bad_words": [],
    "logit_bias": None,
    "allowed_token_ids": None,
}
"""The values at which a sampling field changes nothing, except temperature, whose default is 1."""
_ONE_TOKEN = 0.01
"""A nucleus of this size holds the likeliest token alone."""
_FILLERS = [encode(word)[0] for word in WORDS]


class PrefixCache:
    """Blocks of computed tokens, found by salt and by all tokens up to and including the block's."""

    def __init__(self, *, block_size: int, num_blocks: int) -> None:
        self.block_size, self.num_blocks = block_size, num_blocks
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def match(self, ids: Sequence[int], salt: str) -> int:
        """Tokens of a prompt that are cached; its last token is always computed."""
        hits = 0
        for key in self._keys(ids[:-1], salt):
            if key not in self._blocks:
                break
            self._blocks.move_to_end(key)
            hits += 1
        return hits * self.block_size

    def store(self, ids: Sequence[int], salt: str) -> None:
        """Keep every whole block of some computed tokens."""
        for key in self._keys(ids, salt):
            self._blocks[key] = None
            self._blocks.move_to_end(key)
        while len(self._blocks) > self.num_blocks:
            self._blocks.popitem(last=False)

    def reset(self) -> None:
        """Forget everything."""
        self._blocks.clear()

    def __len__(self) -> int:
        return len(self._blocks)

    def _keys(self, ids: Sequence[int], salt: str) -> Iterator[bytes]:
        key = blake2b(salt.encode(), digest_size=16).digest()
        packed = array("I", ids).tobytes()
        width = 4 * self.block_size
        for start in range(0, len(packed) - width + 1, width):
            key = blake2b(packed[start : start + width], key=key, digest_size=16).digest()
            yield key


@dataclass(slots=True, kw_only=True)
class Generation:
    """What one request computed."""

    prompt: str
    prompt_ids: list[int]
    output_ids: list[int]
    """With the end token, if the model ended by itself."""
    logprobs: list[list[tuple[int, float]]]
    """For each output token: (id, logprob) of it, then of the likeliest others."""
    content: str | None
    calls: list[tuple[str, str]]
    """Name and arguments of each tool call."""
    finish_reason: str
    stop_reason: int | str | None
    cached_tokens: int
    created_cache_tokens: int
    peak_in_flight: int
    """Most requests that ran at once while this one did, itself included."""


@dataclass(slots=True, eq=False)
class _Running:
    peak: int = 0


@dataclass(slots=True)
class Counters:
    """What /metrics counts."""

    prefix_queries: int = 0
    prefix_hits: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    preemptions: int = 0
    """Never raised by the engine; a test may."""


class Engine:
    """Runs requests against one cache; safe to call from many threads."""

    def __init__(self, config: FakeConfig) -> None:
        self.config = config
        self.cache = PrefixCache(block_size=config.block_size, num_blocks=config.num_gpu_blocks)
        self.counters = Counters()
        self.started_at_s = time.time()
        self.waiting = 0
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(config.max_num_seqs)
        self._running: list[_Running] = []

    @property
    def running(self) -> int:
        """Requests that run now."""
        return len(self._running)

    def prompt_of(self, request: Mapping[str, Any]) -> str:
        """The text that a request's messages and tools become."""
        return render(request["messages"], request.get("tools"), call_ids=self.config.render_call_ids)

    def run(self, request: Mapping[str, Any]) -> Generation:
        """Answer one chat completion request, which is valid and fits."""
        prompt = self.prompt_of(request)
        ids = encode(prompt)
        salt = request.get("cache_salt") or ""
        with self._slot() as mine:
            cached = self._enter(ids, salt)
            if self.config.latency_s:
                time.sleep(self.config.latency_s)
            in_flight = mine.peak
            draft = self._draft(ids, request, noise=self.noise(cached_tokens=cached, in_flight=in_flight))
            warm = cached > 0 and cached == (len(ids) - 1) // self.config.block_size * self.config.block_size
            content, calls = self._write(draft, request, warm=warm)
            output, finish, stop = _cut(draft.text, request, room=self.config.max_model_len - len(ids))
            if finish == "length" or stop is not None:
                said = decode([token for token in output if token != END_ID])
                content = said.partition(stop)[0] if isinstance(stop, str) else said
                content, calls = "" if request.get("tool_choice") == "required" else content, []
            created = self._leave(ids, output, salt, cached)
        with self._lock:
            self.counters.generation_tokens += len(output)
            self.counters.requests[finish] = self.counters.requests.get(finish, 0) + 1
        return Generation(
            prompt=prompt,
            prompt_ids=ids,
            output_ids=output,
            logprobs=_logprobs(draft, output),
            content=content,
            calls=calls,
            finish_reason=finish,
            stop_reason=stop,
            cached_tokens=cached,
            created_cache_tokens=created,
            peak_in_flight=in_flight,
        )

    def prefill(self, ids: list[int], salt: str) -> int:
        """Compute a prompt and keep it, for a completion of one token; gives the tokens that the cache had."""
        with self._slot():
            cached = self._enter(ids, salt)
            self._leave(ids, [END_ID], salt, cached)
        with self._lock:
            self.counters.generation_tokens += 1
            self.counters.requests["length"] = self.counters.requests.get("length", 0) + 1
        return cached

    def noise(self, *, cached_tokens: int, in_flight: int) -> Noise:
        """What rounds otherwise in a request than in one that is cold and alone on boot 0."""
        return Noise(
            (
                ("cache", cached_tokens // self.config.block_size, self.config.cache_shift),
                ("batch", in_flight - 1, self.config.batch_shift),
                ("boot", self.config.boot, self.config.cache_sensitivity),
            )
        )

    def reset_prefix_cache(self) -> bool:
        """Empty the cache unless a request holds blocks; tells whether it did."""
        with self._lock:
            if self._running:
                return False
            self.cache.reset()
            return True

    @contextmanager
    def _slot(self) -> Iterator[_Running]:
        with self._lock:
            self.waiting += 1
        with self._slots:
            mine = _Running()
            with self._lock:
                self.waiting -= 1
                self._running.append(mine)
                for other in self._running:
                    other.peak = max(other.peak, len(self._running))
            try:
                yield mine
            finally:
                with self._lock:
                    self._running.remove(mine)

    def _enter(self, ids: Sequence[int], salt: str) -> int:
        with self._lock:
            self.counters.prompt_tokens += len(ids)
            if not self.config.prefix_caching:
                return 0
            cached = self.cache.match(ids, salt)
            self.cache.store(ids, salt)
            self.counters.prefix_queries += len(ids)
            self.counters.prefix_hits += cached
            return cached

    def _leave(self, ids: list[int], output: list[int], salt: str, cached: int) -> int:
        if not self.config.prefix_caching:
            return 0
        with self._lock:
            self.cache.store((ids + output)[:-1], salt)
        return max(0, len(ids) // self.config.block_size * self.config.block_size - cached)

    def _draft(self, ids: Sequence[int], request: Mapping[str, Any], *, noise: Noise) -> Draft:
        sampling = {name: sampled(request, name, self.config) for name in SAMPLING_NEUTRAL}
        temperature = float(sampling.pop("temperature"))
        only_likeliest = sampling["top_p"] <= _ONE_TOKEN or sampling["top_k"] == 1 or sampling["min_p"] == 1
        if temperature == 0 or only_likeliest:
            sampling |= {name: SAMPLING_NEUTRAL[name] for name in ("top_p", "top_k", "min_p")}
        elif sampling["top_k"] == -1:
            sampling["top_k"] = 0
        differing = {name: value for name, value in sampling.items() if value != SAMPLING_NEUTRAL[name]}
        identity = json.dumps([self.config.weights, self.config.dtype, differing], sort_keys=True).encode()
        key = blake2b(identity + array("I", ids).tobytes(), digest_size=32).digest()
        seed = request.get("seed")
        drawing_key = os.urandom(32) if seed is None else blake2b(f"{seed}/{temperature}".encode()).digest()
        drawing = Drawing(temperature, drawing_key, only_likeliest)
        return Draft(key, noise, drawing, self.config.near_tie_share)

    def _write(
        self, draft: Draft, request: Mapping[str, Any], *, warm: bool
    ) -> tuple[str | None, list[tuple[str, str]]]:
        messages = request["messages"]
        first_user = next((content_text(m.get("content")) for m in messages if m.get("role") == "user"), "")
        turn = sum(message.get("role") == "assistant" for message in messages)
        tool_choice = request.get("tool_choice", "none")
        reply = self.config.reply(first_user, turn)
        if reply is not None:
            return _say(draft, reply.when_warm if warm and reply.when_warm else reply, tool_choice, self.config)
        tools = {} if tool_choice == "none" else {t["function"]["name"]: t["function"] for t in request["tools"]}
        hints = identifiers(first_user)
        if isinstance(tool_choice, Mapping):
            name = tool_choice["function"]["name"]
            return "", [(name, write_arguments(draft, tools[name].get("parameters") or {}, hints))]
        if not tools or (tool_choice == "auto" and _answers(draft, turn, has_finish="finish" in tools)):
            draft.words(least=4, most=10)
            draft.write(".")
            return draft.text, []
        as_list = tool_choice == "required" and self.config.guided_format == "json_list"
        draft.write('[{"name": "' if as_list else '<tool_call>\n{"name": "')
        name = draft.choose(_callable(list(tools), turn))
        draft.write('", "parameters": ' if as_list else '", "arguments": ')
        arguments = write_arguments(draft, tools[name].get("parameters") or {}, hints)
        draft.write("}]" if as_list else "}\n</tool_call>")
        return "" if tool_choice == "required" else None, [(name, arguments)]


def sampled(request: Mapping[str, Any], name: str, config: FakeConfig) -> Any:
    """A sampling field of a request, or the model's default, or vLLM's."""
    value = request.get(name)
    if value is None:
        value = config.default_sampling.get(name)
    return SAMPLING_NEUTRAL.get(name) if value is None else value


def _callable(names: list[str], turn: int) -> list[str]:
    """Tools that are considered at a turn: finish not before the third, nothing else from the sixth."""
    others = [name for name in names if name != "finish"]
    if len(others) == len(names) or not others:
        return names
    if turn >= 5:
        return ["finish"]
    return names if turn >= 2 else others


def _answers(draft: Draft, turn: int, *, has_finish: bool) -> bool:
    """Whether the model answers in text although it could call a tool."""
    if turn >= 5:
        return not has_finish
    return turn >= 1 and unit(draft.key, "answers") < 0.25


def _say(
    draft: Draft, reply: Reply, tool_choice: object, config: FakeConfig
) -> tuple[str | None, list[tuple[str, str]]]:
    calls = [
        (c.name, c.arguments if isinstance(c.arguments, str) else json.dumps(c.arguments, ensure_ascii=False))
        for c in reply.calls
    ]
    if reply.text:
        draft.write(reply.text)
    if calls and tool_choice == "required" and config.guided_format == "json_list":
        bodies = (f'{{"name": {json.dumps(name)}, "parameters": {arguments}}}' for name, arguments in calls)
        draft.write(f"[{', '.join(bodies)}]")
    elif calls:
        texts = [render_call(name, arguments) for name, arguments in calls]
        draft.write(("\n" if reply.text else "") + "\n".join(texts))
    return reply.text or (None if calls and tool_choice == "auto" else ""), calls


def _cut(text: str, request: Mapping[str, Any], *, room: int) -> tuple[list[int], str, int | str | None]:
    """Output ids, finish reason and stop reason after stops and limits."""
    ids = [*encode(text), END_ID]
    allowed = request.get("allowed_token_ids")
    if allowed:
        ids = [allowed[0]] * len(ids)
    stop = request.get("stop") or []
    finish, reason = "stop", None
    for word in [stop] if isinstance(stop, str) else stop:
        if word in decode(ids[:-1]):
            length = len(text[: text.index(word) + len(word)].encode())
            size, kept = 0, 0
            while size < length:
                size, kept = size + len(token_bytes(ids[kept])), kept + 1
            ids, reason = ids[:kept], word
            break
    for place, token in enumerate(ids[:-1]):
        if token in (request.get("stop_token_ids") or ()) and place + 1 >= (request.get("min_tokens") or 0):
            ids, reason = ids[: place + 1], token
            break
    wanted = request.get("max_completion_tokens") or request.get("max_tokens")
    most = min(room, wanted) if wanted else room
    if len(ids) > most:
        ids, finish, reason = ids[:most], "length", None
    return ids, finish, reason


def _logprobs(draft: Draft, ids: Sequence[int]) -> list[list[tuple[int, float]]]:
    """(id, logprob) of each token and of 20 others, the first of which is the runner-up."""
    alternatives = draft.alternatives(ids)
    state, rows = draft.key, []
    for index, token in enumerate(ids):
        state = blake2b(token.to_bytes(4, "big"), key=state, digest_size=32).digest()
        certain = abs(0.5 + 7 * unit(state, "certain") + draft.noise.shift(state))
        margin, other = alternatives.get(index, (certain, -1))
        first = int(unit(state, "filler") * len(_FILLERS))
        fillers = list(dict.fromkeys(_FILLERS[first:] + _FILLERS[:first]))[:23]
        others = [filler for filler in fillers if filler not in (token, other)]
        others = (others if other < 0 else [other, *others])[:20]
        top = -math.log1p(math.exp(-margin)) if margin > -700 else margin
        row = [(token, _float32(top))]
        row += [(one, _float32(top - margin - 1.5 * rank)) for rank, one in enumerate(others)]
        rows.append(row)
    return rows


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])
