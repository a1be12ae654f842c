"""One class a lie: a stand-in server that does what it was told except for one thing, and says that it did.

The probes of a boot's start are told from episodes by their salt, since some servers are honest only while they are
watched.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fake_vllm import Engine, FakeConfig, FakeVllm, Generation, HttpAnswer, json_answer
from fake_vllm.engine import Counters, PrefixCache

LONG_PROMPT = 4_000
"""Characters of a request's messages from which on attention would split its context."""
HONEST_REQUESTS = 20
"""Some servers change their ways after so many requests: in the first episodes."""


def is_probe(request: Mapping[str, Any]) -> bool:
    """Whether a request is one of a boot's probes."""
    return str(request.get("cache_salt")).startswith("agenteval-probe-")


class Honest(FakeVllm):
    """Says what it does: the control of every lie."""


class SecretCacheEngine(Engine):
    """Caches, whatever it was told."""

    def _enter(self, ids: Sequence[int], salt: str) -> int:
        cached = self.cache.match(ids, salt)
        self.cache.store(ids, salt)
        with self._lock:
            self.counters.prompt_tokens += len(ids)
        return cached


class CachesAlthoughDisabled(FakeVllm):
    """Its answers tell of the hits."""

    engine_class: ClassVar[type[Engine]] = SecretCacheEngine


class CachesInSecret(CachesAlthoughDisabled):
    """Neither answers nor counters tell of the hits."""

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        body["usage"]["prompt_tokens_details"]["cached_tokens"] = 0


class CountsNothing(FakeVllm):
    """Never tells how much was cached."""

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        body["usage"]["prompt_tokens_details"]["cached_tokens"] = None


class CountsZeroInEpisodes(FakeVllm):
    """Tells the truth to probes and zero to everyone else."""

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        body = super().chat(request)
        if not is_probe(request):
            body["usage"]["prompt_tokens_details"]["cached_tokens"] = 0
        return body


class SaltlessEngine(Engine):
    """Shares blocks whatever the salt."""

    def _enter(self, ids: Sequence[int], salt: str) -> int:
        return super()._enter(ids, "")

    def _leave(self, ids: list[int], output: list[int], salt: str, cached: int) -> int:
        return super()._leave(ids, output, "", cached)


class IgnoresSalts(FakeVllm):
    """Every request shares with every other."""

    engine_class: ClassVar[type[Engine]] = SaltlessEngine


class ResetsNothing(FakeVllm):
    """/reset_prefix_cache says that it did."""

    def reset_prefix_cache(self) -> HttpAnswer:
        return json_answer({"success": True})


class _Forgets(FakeVllm):
    """Takes a sampling field and does not use it."""

    field: ClassVar[str]
    instead: ClassVar[Any] = None

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        return super().chat({**request, self.field: self.instead})


class IgnoresSeed(_Forgets):
    """Draws anew at each request."""

    field = "seed"


class IgnoresTopP(_Forgets):
    """Draws from all tokens."""

    field = "top_p"


class IgnoresTemperature(_Forgets):
    """Is greedy at any temperature."""

    field, instead = "temperature", 0.0


class IgnoresStop(_Forgets):
    """Writes on past every stop text."""

    field = "stop"


class DropsLogprobs(FakeVllm):
    """Leaves them out once the episodes have begun."""

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        body = super().chat(request)
        if not is_probe(request):
            body["choices"][0]["logprobs"] = None
        return body


class CrowdingEngine(Engine):
    """Runs as many requests at once as come."""

    def __init__(self, config: FakeConfig) -> None:
        super().__init__(dataclasses.replace(config, max_num_seqs=256))


class BatchesAlthoughSerial(FakeVllm):
    """Says that it runs one request at a time."""

    engine_class: ClassVar[type[Engine]] = CrowdingEngine


class OtherKernels(FakeVllm):
    """Computes with FlashAttention 3, whose sums depend on the batch; log and configuration name what was asked for."""

    def __init__(self, config: FakeConfig | None = None) -> None:
        super().__init__(config)
        self.engine.config = dataclasses.replace(self.config, attention_backend="FLASH_ATTN", flash_attn_version=3)


class OtherKernelsForLongPrompts(FakeVllm):
    """Computes with FlashAttention 3, which splits long contexts alone by how many requests there are."""

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        is_long = len(json.dumps(request["messages"])) > LONG_PROMPT
        self.engine.config = (
            dataclasses.replace(self.config, attention_backend="FLASH_ATTN", flash_attn_version=3)
            if is_long
            else self.config
        )
        return super().chat(request)


class OtherKernelsInTheConfiguration(FakeVllm):
    """Its configuration names another backend than its log."""

    def server_info(self, query: Mapping[str, list[str]]) -> HttpAnswer:
        info = json.loads(super().server_info(query).body)
        info["vllm_config"]["attention_config"]["backend"] = (
            "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"
        )
        return json_answer(info)


class _ChangesItsWays(FakeVllm):
    """Does something else from a request on."""

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        if len(self.requests) == HONEST_REQUESTS:
            self.change()
        return super().chat(request)

    def change(self) -> None:
        """What happens then."""
        raise NotImplementedError


class RestartsBetweenTurns(_ChangesItsWays):
    """A new process takes over: counters and cache begin anew, and nothing else tells of it."""

    def change(self) -> None:
        self.engine.counters = Counters()
        self.engine.cache = PrefixCache(block_size=self.config.block_size, num_blocks=self.config.num_gpu_blocks)


class RoundsOtherwiseLater(_ChangesItsWays):
    """The kernels are tuned anew while it runs."""

    def change(self) -> None:
        self.engine.config = dataclasses.replace(self.config, boot=1)


class DatedTemplateEngine(Engine):
    """Its template has begun to tell the date."""

    is_dated = False

    def prompt_of(self, request: Mapping[str, Any]) -> str:
        prompt = super().prompt_of(request)
        return f"Today is Thursday.\n{prompt}" if self.is_dated else prompt


class ChangesTheTemplate(_ChangesItsWays):
    """Renders equal messages otherwise from a request on."""

    engine_class: ClassVar[type[Engine]] = DatedTemplateEngine

    def change(self) -> None:
        assert isinstance(self.engine, DatedTemplateEngine)
        self.engine.is_dated = True


class RespellingEngine(Engine):
    """Renders what the model said in other letters than the model wrote."""

    def prompt_of(self, request: Mapping[str, Any]) -> str:
        messages = [
            {**message, "content": (message.get("content") or "") + " "} if message["role"] == "assistant" else message
            for message in request["messages"]
        ]
        return super().prompt_of({**request, "messages": messages})


class RetokenisesHistory(FakeVllm):
    """A turn's prompt does not hold the ids of the turn before."""

    engine_class: ClassVar[type[Engine]] = RespellingEngine


class RenamingEngine(Engine):
    """Gives the tool calls of a history ids of its own, and renders them."""

    def prompt_of(self, request: Mapping[str, Any]) -> str:
        text = json.dumps(request["messages"])
        prompt = super().prompt_of(request)
        return (
            prompt.replace("<tool_response>", f"<tool_response>\n[{os.urandom(4).hex()}]") if "tool" in text else prompt
        )


class RenamesToolCalls(FakeVllm):
    """Ids at random reach the next prompt."""

    engine_class: ClassVar[type[Engine]] = RenamingEngine


class PreemptingEngine(Engine):
    """Puts off an episode's request and computes it again."""

    def run(self, request: Mapping[str, Any]) -> Generation:
        if not is_probe(request):
            self.counters.preemptions += 1
        return super().run(request)


class Preempts(FakeVllm):
    """Only its counter tells."""

    engine_class: ClassVar[type[Engine]] = PreemptingEngine


class AnswersForAnother(FakeVllm):
    """Some answers come from another model."""

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        if len(self.requests) > HONEST_REQUESTS:
            body["model"] = "another"


class MixesVersions(FakeVllm):
    """Some answers come from another build of the engine."""

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        if len(self.requests) > HONEST_REQUESTS:
            body["system_fingerprint"] = "vllm-0.31.0-00000000"


class FillsInDefaults(FakeVllm):
    """Takes what a request leaves out from the model's own file."""

    def server_info(self, query: Mapping[str, list[str]]) -> HttpAnswer:
        info = json.loads(super().server_info(query).body)
        info["vllm_config"]["model_config"]["generation_config"] = "auto"
        return json_answer(info)


class AltersText(FakeVllm):
    """Adds a word to what the model wrote, in episodes."""

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        body = super().chat(request)
        message = body["choices"][0]["message"]
        if not is_probe(request):
            message["content"] = (message["content"] or "") + " gladly"
        return body


class AltersCalls(FakeVllm):
    """Gives other arguments than the model wrote."""

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        for call in body["choices"][0]["message"].get("tool_calls") or ():
            call["function"]["arguments"] = '{"injected": true}'


class TakesTheSecondBest(FakeVllm):
    """Draws in episodes although it was told to be greedy; its logprobs tell."""

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        body = super().chat(request)
        if not is_probe(request):
            for entry in body["choices"][0]["logprobs"]["content"]:
                own, rival = entry["top_logprobs"][:2]
                entry["logprob"], own["logprob"], rival["logprob"] = -3.0, -3.0, -0.06
        return body


class Remembers(FakeVllm):
    """Gives an equal request the answer that an earlier one got, without computing it."""

    def __init__(self, config: FakeConfig | None = None) -> None:
        super().__init__(config)
        self._answers: dict[str, dict[str, Any]] = {}

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        key = json.dumps({name: value for name, value in request.items() if name != "cache_salt"}, sort_keys=True)
        if is_probe(request):
            return super().chat(request)
        if key not in self._answers:
            self._answers[key] = super().chat(request)
        return self._answers[key]


class TellsOneLogprob(FakeVllm):
    """Every token is as likely as every other."""

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        for entry in body["choices"][0]["logprobs"]["content"]:
            for candidate in (entry, *entry["top_logprobs"]):
                candidate["logprob"] = -1.0


class RendersOnePrompt(FakeVllm):
    """Tells the same prompt ids whatever was said."""

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        body["prompt_token_ids"] = [1, 2, 3]
