"""Each clause's verdict by what was measured: a table of facts; what was not measured is never kept."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import run_records as made

from agenteval.audit import RunFacts, audit_run, clause_verdicts
from agenteval.compare import compare
from agenteval.contract import Contract
from agenteval.contract.clauses import CLAUSES
from agenteval.records import ClauseVerdict, Turn

KEPT, BREACHED = ClauseVerdict.KEPT, ClauseVerdict.BREACHED
UNPROVEN, NOT_PROMISED = ClauseVerdict.UNPROVEN, ClauseVerdict.NOT_PROMISED
Recorded = tuple[RunFacts, list[Turn]]
Change = Callable[[RunFacts, list[Turn]], Recorded]


def verdict_of(clause: str, contract: Contract, change: Change | None) -> ClauseVerdict:
    facts, turns = made.kept_run(contract)
    if change is not None:
        facts, turns = change(facts, turns)
    return clause_verdicts(audit_run(facts, turns))[clause]


def every_turn(**fields: Any) -> Change:
    return lambda facts, turns: (facts, made.each(turns, **fields))


def one_turn(place: int, **fields: Any) -> Change:
    """The turn at a place, probes not counted, differs."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        at = next(index for index, turn in enumerate(turns) if turn.kind == "episode") + place
        return recounted(facts, [*turns[:at], replace(turns[at], **fields), *turns[at + 1 :]])

    return change


def later_turns(**fields: Any) -> Change:
    """Every turn after the first of its episode differs."""
    return lambda facts, turns: (facts, [replace(turn, **fields) if turn.turn else turn for turn in turns])


def recounted(facts: RunFacts, turns: list[Turn]) -> Recorded:
    """The engine has counted what the turns report."""
    return made.recounted(facts, turns), turns


def one_probe(name: str, cached_tokens: int | None = 0, **fields: Any) -> Change:
    """A probe's answer differs."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        at = next(index for index, turn in enumerate(turns) if turn.episode_id == f"{made.BOOT}/{name}")
        fields_at = {"cached_tokens": cached_tokens, **fields}
        return recounted(facts, [*turns[:at], replace(turns[at], **fields_at), *turns[at + 1 :]])

    return change


def without_probe(*names: str) -> Change:
    """Probes were not sent."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        left = [turn for turn in turns if turn.episode_id not in {f"{made.BOOT}/{name}" for name in names}]
        return made.recounted(facts, left), left

    return change


def ended(reason: str, *names: str) -> Change:
    """The boot ended for a reason, and these probes were not sent."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        facts, turns = without_probe(*names)(facts, turns)
        boot, end = facts.boots[0]
        assert end is not None
        return replace(facts, boots=((boot, replace(end, reason=reason)),)), turns

    return change


def without_probes(facts: RunFacts, turns: list[Turn]) -> Recorded:
    left = [turn for turn in turns if turn.kind != "probe"]
    return made.recounted(facts, left), left


def server(**changes: Any) -> Change:
    return lambda facts, turns: (made.with_server(facts, **changes), turns)


def end(**metrics: float | None) -> Change:
    return lambda facts, turns: (made.with_end(facts, **metrics), turns)


def answered(more: int) -> Change:
    """The server counts so many answers more than were recorded."""
    return lambda facts, turns: (made.with_end(facts, len(turns) + more), turns)


def kept_server(*, before: int, more: int = 0) -> Change:
    """An earlier run has left the server, which had answered so many requests when this one came."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        metrics = {**facts.boots[0][0].facts["metrics"], "vllm:request_success_total": float(before)}
        facts = made.with_server(facts, served_before=True, metrics=metrics)
        return made.with_end(facts, before + len(turns) + more), turns

    return change


def put_off(*, hits: float, cached: float) -> Change:
    """The scheduler looked some requests up more than once, for want of room."""
    return end(prefix_cache_hits=hits, prefix_cache_queries=500.0, prompt_tokens=100.0, prompt_tokens_cached=cached)


def config(section: str, **fields: Any) -> Change:
    """A section of the server's configuration reports something else."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        found = copy.deepcopy(facts.boots[0][0].facts["config"])
        target = found["vllm_env"] if section == "vllm_env" else found["vllm_config"][section]
        target.update(fields)
        return made.with_server(facts, config=found), turns

    return change


def without_config(section: str, field: str) -> Change:
    """A field is missing from what the server reports."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        found = copy.deepcopy(facts.boots[0][0].facts["config"])
        del found["vllm_config"][section][field]
        return made.with_server(facts, config=found), turns

    return change


def folder_after(digest: str | None) -> Change:
    """The model's folder held something else when the server had stopped."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        boot, ended = facts.boots[0]
        assert ended is not None
        return replace(facts, boots=((boot, replace(ended, model_digest=digest)),)), turns

    return change


def a_turn_lost(facts: RunFacts, turns: list[Turn]) -> Recorded:
    return made.with_end(facts, len(turns) - 1), turns[:-1]


def unmanaged(facts: RunFacts, turns: list[Turn]) -> Recorded:
    boot, ended = facts.boots[0]
    return replace(facts, boots=((replace(boot, is_managed=False), ended),)), turns


def without_boot(facts: RunFacts, turns: list[Turn]) -> Recorded:
    return replace(facts, boots=()), turns


def without_end(facts: RunFacts, turns: list[Turn]) -> Recorded:
    return replace(facts, boots=((facts.boots[0][0], None),)), turns


def without_turns(facts: RunFacts, turns: list[Turn]) -> Recorded:
    left = [turn for turn in turns if turn.kind == "probe"]
    return made.with_end(facts, len(left)), left


def without_calls(facts: RunFacts, turns: list[Turn]) -> Recorded:
    return facts, made.each(turns, tool_calls=())


def diverged(facts: RunFacts, turns: list[Turn]) -> Recorded:
    first, second = (
        made.trajectory(made.turn(0, episode.plan), of=episode.plan, passed=True) for episode in facts.episodes
    )
    other = replace(second, turns=(replace(second.turns[0], output_ids=(11, 99, 13)),))
    divergence = compare(first, other)
    assert divergence is not None
    return replace(facts, divergences=(divergence,)), turns


def one_repeat_missing(facts: RunFacts, turns: list[Turn]) -> Recorded:
    return replace(facts, episodes=facts.episodes[:1]), [t for t in turns if not t.episode_id.endswith("00001")]


def second_boot(**canary: Any) -> Change:
    """The last turn came from another process, whose canaries differ in these fields; None sent none."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        other = f"{made.RUN}/boot-1"
        boot, end = facts.boots[0]
        assert end is not None
        probes = [
            replace(turn, boot_id=other, episode_id=turn.episode_id.replace(made.BOOT, other))
            for turn in turns
            if turn.kind == "probe"
        ]
        probes = [replace(turn, **canary) if "canary" in turn.episode_id else turn for turn in probes]
        first, second = [*turns[:-1]], [*probes, replace(turns[-1], boot_id=other)]
        boots = tuple(
            (replace(boot, boot_id=boot_id), replace(end, boot_id=boot_id, metrics=_counted(end.metrics, of_boot)))
            for boot_id, of_boot in ((made.BOOT, first), (other, second))
        )
        return replace(facts, boots=boots), [*first, *second]

    return change


def _counted(metrics: dict[str, float], turns: list[Turn]) -> dict[str, float]:
    counts = {"prefix_cache_hits": made.cached(turns), "request_success": float(len(turns)), **made.computed(turns)}
    return {**metrics, **{f"vllm:{name}_total": count for name, count in counts.items()}}


def model_digest(value: str) -> Change:
    return lambda facts, turns: (replace(facts, run=replace(facts.run, model_digest=value)), turns)


def call_of(**fields: Any) -> Change:
    """The first call of the second episode differs."""
    return one_turn(2, tool_calls=(made.call(0, **fields),))


def varying(facts: RunFacts, turns: list[Turn]) -> Recorded:
    """Requests had company, and the probe in company was computed otherwise."""
    return in_company("canary-crowded", logprobs=OTHER)(facts, turns)


def in_company(name: str, **fields: Any) -> Change:
    """Requests had company, and a probe in company was answered so."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        facts, turns = one_probe(name, requests_in_flight=16, **fields)(facts, turns)
        return facts, made.each(turns, requests_in_flight=16)

    return change


def flash_attention_3(facts: RunFacts, turns: list[Turn]) -> Recorded:
    log = {"attention_backend": "TRITON_ATTN", "flash_attention_version": "3"}
    return made.with_server(facts, log=log), made.each(turns, requests_in_flight=16)


def attention(backend: str) -> Change:
    """The server's configuration names a backend."""

    def change(facts: RunFacts, turns: list[Turn]) -> Recorded:
        found = copy.deepcopy(facts.boots[0][0].facts["config"])
        found["vllm_config"]["attention_config"] = {"backend": backend}
        return made.with_server(facts, config=found), made.each(turns, requests_in_flight=16)

    return change


def alike(facts: RunFacts, turns: list[Turn]) -> Recorded:
    """Every logprob of every answer is one number."""
    same = (-1.0, -1.0, -1.0)
    return facts, [replace(turn, logprobs=same, runner_up_logprobs=same) for turn in turns]


def certain(facts: RunFacts, turns: list[Turn]) -> Recorded:
    """The model is sure of the canary's answer, so that every draw is the same."""
    names = ("canary-short", "canary-crowded", "end-canary-short", *SAMPLING_PROBES)
    sure = {"logprobs": (-0.001, -0.001, -0.001), "runner_up_logprobs": (-9.0, -9.0, -9.0), "output_ids": GREEDY}
    found = {f"{made.BOOT}/{name}" for name in names}
    return facts, [replace(turn, **sure) if turn.episode_id in found else turn for turn in turns]


def guided(facts: RunFacts, turns: list[Turn]) -> Recorded:
    """A grammar kept the likeliest token away."""
    facts, turns = one_turn(1, logprobs=(-0.25, -1.5, -0.125))(facts, turns)
    return facts, made.each(turns, request={**turns[-1].request, "tool_choice": "required"})


def one_prompt(facts: RunFacts, turns: list[Turn]) -> Recorded:
    """Whatever is said, the ids are the same."""
    return facts, [replace(turn, prompt_kept=0, prompt_added=(1, 1, 1)) for turn in turns]


def requested(**fields: Any) -> Change:
    """Every request carried these fields too."""
    return lambda facts, turns: (facts, made.each(turns, request={**turns[-1].request, **fields}))


GREEDY, DRAWN = (11, 12, 13), (21, 22, 23)
OTHER = (-0.25, -0.5, -0.126)
"""The logprobs of every turn here, but for the last bits of one."""
RIVALS = (-0.1, -1.0, None)
CROWDED = {"requests_in_flight": 2, "logprobs": OTHER}
LONGER = {
    "output_ids": (11, 12, 13, 14),
    "logprobs": (-0.25, -0.5, -0.125, -0.5),
    "runner_up_logprobs": (-2.25, -1.0, None, None),
}
SAMPLING_PROBES = ("sampling-draw", "sampling-draw-again", "sampling-other-seed", "sampling-top-p")
END_PROBES = ("end-canary-short", "end-canary-long", "end-cache-cold", "end-cache-warm")
SALTED = {"cache_salt": "salt-0"}
MEASURED = {"repeats__agree": "measured"}
EAGER = {"engine__compilation": "eager"}
TRITON = {"engine__attention_backend": "TRITON_ATTN"}
CONTINUOUS = {"prompts__mode": "continuous"}
ONE_REPEAT = {"repeats__count": 1}
PINNED = {"model__digest": made.MODEL_DIGEST}
FP8_CACHE = {"engine__kv_cache_dtype": "fp8"}
BFLOAT = {"engine__dtype": "bfloat16"}

TABLE: list[tuple[str, str, str, dict[str, Any], Change | None, ClauseVerdict]] = [
    ("cache", "disabled, nothing hit", "strict", {}, None, KEPT),
    ("cache", "disabled, null counts, counter still", "strict", {}, every_turn(cached_tokens=None), KEPT),
    ("cache", "disabled, a turn hit", "strict", {}, one_turn(1, cached_tokens=16), BREACHED),
    ("cache", "disabled, counter moved", "strict", {}, end(prefix_cache_hits=16.0), BREACHED),
    ("cache", "disabled, no counter", "strict", {}, end(prefix_cache_hits=None), UNPROVEN),
    ("cache", "disabled, no end", "strict", {}, without_end, UNPROVEN),
    ("cache", "disabled, warm probe hit", "strict", {}, one_probe("cache-warm", 16), BREACHED),
    ("cache", "disabled, no probes", "strict", {}, without_probes, UNPROVEN),
    (
        "cache",
        "disabled, a hit that only the bits show",
        "strict",
        {},
        one_probe("cache-warm", logprobs=OTHER),
        BREACHED,
    ),
    ("cache", "disabled, a hit at the end", "strict", {}, one_probe("end-cache-warm", 16), BREACHED),
    ("cache", "disabled, bits at the end", "strict", {}, one_probe("end-cache-warm", logprobs=OTHER), BREACHED),
    ("cache", "disabled, no probes at the end", "strict", {}, without_probe("end-cache-warm"), UNPROVEN),
    ("cache", "disabled, preempted", "strict", {}, end(num_preemptions=1.0), BREACHED),
    (
        "cache",
        "disabled, config says on",
        "strict",
        {},
        server(cache_config={"enable_prefix_caching": "True"}),
        BREACHED,
    ),
    ("cache", "disabled, no config", "strict", {}, server(cache_config={}), UNPROVEN),
    ("cache", "isolated", "isolated", {}, None, KEPT),
    ("cache", "isolated, own turns hit", "isolated", {}, one_turn(1, cached_tokens=16), KEPT),
    ("cache", "isolated, a first turn hit", "isolated", {}, one_turn(0, cached_tokens=16), BREACHED),
    ("cache", "isolated, turns report less than the engine", "isolated", {}, end(prefix_cache_hits=99.0), BREACHED),
    ("cache", "isolated, put off and looked up again", "isolated", {}, put_off(hits=99.0, cached=32.0), KEPT),
    ("cache", "isolated, looked up again with fewer hits", "isolated", {}, put_off(hits=1.0, cached=32.0), BREACHED),
    ("cache", "isolated, answers report another count", "isolated", {}, put_off(hits=99.0, cached=31.0), BREACHED),
    ("cache", "isolated, control missed", "isolated", {}, one_probe("cache-warm", 0), BREACHED),
    ("cache", "isolated, control unknown", "isolated", {}, one_probe("cache-warm", None), UNPROVEN),
    ("cache", "isolated, other salt hit", "isolated", {}, one_probe("cache-other-salt", 16), BREACHED),
    (
        "cache",
        "isolated, other salt other bits",
        "isolated",
        {},
        one_probe("cache-other-salt", logprobs=OTHER),
        BREACHED,
    ),
    ("cache", "isolated, control missed at the end", "isolated", {}, one_probe("end-cache-warm", 0), BREACHED),
    ("cache", "isolated, reset did nothing", "isolated", {}, one_probe("cache-after-reset", 16), BREACHED),
    ("cache", "isolated, bits after reset", "isolated", {}, one_probe("cache-after-reset", logprobs=OTHER), BREACHED),
    ("cache", "isolated, not reset", "isolated", {}, without_probe("cache-after-reset"), UNPROVEN),
    ("cache", "isolated, a new prompt hit", "isolated", {}, one_probe("cache-cold", 16), BREACHED),
    ("cache", "isolated, one salt for all", "isolated", {}, every_turn(request=SALTED), BREACHED),
    ("cache", "isolated, no salt", "isolated", {}, every_turn(request={}), BREACHED),
    ("cache", "isolated, preempted", "isolated", {}, end(num_preemptions=1.0), BREACHED),
    ("cache", "isolated, preemptions unknown", "isolated", {}, end(num_preemptions=None), UNPROVEN),
    ("cache", "shared", "default", {}, None, KEPT),
    ("cache", "shared, a hit changes bits", "default", {}, one_probe("cache-warm", 16, logprobs=OTHER), KEPT),
    ("cache", "shared, reset did nothing", "default", {}, one_probe("cache-after-reset", 16), BREACHED),
    ("cache", "shared, preempted", "default", {}, end(num_preemptions=1.0), KEPT),
    ("cache", "shared, control missed", "default", {}, one_probe("cache-warm", 0), BREACHED),
    ("cache", "shared, control unknown", "default", {}, one_probe("cache-warm", None), UNPROVEN),
    ("cache", "shared, count never zero", "default", {}, one_probe("cache-other-salt", 16), UNPROVEN),
    ("cache", "shared, no probes", "default", {}, without_probes, UNPROVEN),
    ("batching", "alone", "strict", {}, None, KEPT),
    ("batching", "company", "strict", {}, one_turn(1, requests_in_flight=2), BREACHED),
    ("batching", "other bits in company", "strict", {}, one_probe("canary-crowded", **CROWDED), BREACHED),
    ("batching", "probe not in company", "strict", {}, one_probe("canary-crowded", requests_in_flight=1), UNPROVEN),
    ("batching", "no probe", "strict", {}, without_probe("canary-crowded"), UNPROVEN),
    ("batching", "another's server", "strict", {}, unmanaged, UNPROVEN),
    ("batching", "server's limit higher", "strict", {}, config("scheduler_config", max_num_seqs=256), BREACHED),
    ("batching", "server's limit unknown", "strict", {}, server(config={}), UNPROVEN),
    ("batching", "config as text", "strict", {}, server(config={"vllm_config": "text"}), UNPROVEN),
    ("batching", "invariant", "invariant", {}, every_turn(requests_in_flight=16), KEPT),
    ("batching", "invariant, never in company", "invariant", {}, None, UNPROVEN),
    ("batching", "invariant, too many", "invariant", {}, every_turn(requests_in_flight=17), BREACHED),
    ("batching", "invariant, switched off", "invariant", {}, config("vllm_env", VLLM_BATCH_INVARIANT=False), BREACHED),
    ("batching", "invariant, switch unknown", "invariant", {}, config("vllm_env", VLLM_BATCH_INVARIANT=None), UNPROVEN),
    (
        "batching",
        "invariant, FlashAttention",
        "invariant",
        {},
        server(log={"attention_backend": "FLASH_ATTN"}),
        BREACHED,
    ),
    ("batching", "invariant, other bits in company", "invariant", {}, varying, BREACHED),
    (
        "batching",
        "invariant, a long prompt has other bits in company",
        "invariant",
        {},
        in_company("far-crowded", logprobs=OTHER),
        BREACHED,
    ),
    ("batching", "invariant, no long prompt", "invariant", {}, without_probe("far-crowded"), UNPROVEN),
    ("batching", "invariant, FlashAttention 3", "invariant", {}, flash_attention_3, BREACHED),
    (
        "batching",
        "invariant, configured otherwise",
        "invariant",
        {},
        attention("vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"),
        BREACHED,
    ),
    (
        "batching",
        "invariant, configured so",
        "invariant",
        {},
        attention("vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"),
        KEPT,
    ),
    ("batching", "invariant, backend unknown", "invariant", {}, server(log={}), UNPROVEN),
    ("batching", "free, other bits in company", "default", {}, one_probe("canary-crowded", **CROWDED), NOT_PROMISED),
    ("batching", "free", "default", {}, every_turn(requests_in_flight=9), NOT_PROMISED),
    ("sampling", "the contract's", "strict", {}, None, KEPT),
    ("sampling", "another temperature", "strict", {}, one_turn(1, request={"temperature": 1.0}), BREACHED),
    ("sampling", "fields missing", "strict", {}, every_turn(request={}), BREACHED),
    (
        "sampling",
        "another seed",
        "strict",
        {},
        lambda facts, turns: (facts, made.each(turns, request={**turns[-1].request, "seed": 5})),
        BREACHED,
    ),
    ("sampling", "the model's defaults", "strict", {}, config("model_config", generation_config="auto"), BREACHED),
    ("sampling", "defaults unknown", "strict", {}, server(config={}), UNPROVEN),
    ("sampling", "no probes", "strict", {}, without_probes, UNPROVEN),
    ("sampling", "temperature ignored", "strict", {}, one_probe("sampling-draw", output_ids=GREEDY), BREACHED),
    ("sampling", "seed ignored", "strict", {}, one_probe("sampling-draw-again", output_ids=(7, 8, 9)), BREACHED),
    ("sampling", "seed fixed", "strict", {}, one_probe("sampling-other-seed", output_ids=DRAWN), BREACHED),
    ("sampling", "top_p ignored", "strict", {}, one_probe("sampling-top-p", output_ids=DRAWN), BREACHED),
    ("sampling", "a model that is certain", "strict", {}, certain, UNPROVEN),
    ("sampling", "a rival was likelier", "strict", {}, one_turn(1, logprobs=(-0.25, -1.5, -0.125)), BREACHED),
    ("sampling", "a rival was likelier, guided", "strict", {}, guided, KEPT),
    ("sampling", "top_k without its probe", "strict", {"sampling__top_k": 5}, requested(top_k=5), UNPROVEN),
    ("sampling", "top_k -1 keeps every token", "strict", {"sampling__top_k": -1}, requested(top_k=-1), KEPT),
    (
        "sampling",
        "no probe can show it",
        "strict",
        {"sampling__ignore_eos": True},
        requested(ignore_eos=True),
        UNPROVEN,
    ),
    ("engine", "as asked", "strict", {}, None, KEPT),
    ("engine", "too old", "strict", {}, server(version="0.24.0"), BREACHED),
    ("engine", "no version", "strict", {}, server(version=None), UNPROVEN),
    ("engine", "version is no version", "strict", {}, server(version="main"), UNPROVEN),
    ("engine", "a pre-release in range", "strict", {}, server(version="0.32.1rc1"), KEPT),
    ("engine", "another length", "strict", {}, config("model_config", max_model_len=4096), BREACHED),
    ("engine", "another kv dtype", "strict", FP8_CACHE, config("cache_config", cache_dtype="auto"), BREACHED),
    ("engine", "dtype as asked", "strict", BFLOAT, None, KEPT),
    ("engine", "another dtype", "strict", BFLOAT, config("model_config", dtype="torch.float16"), BREACHED),
    ("engine", "not eager", "strict", EAGER, None, BREACHED),
    (
        "engine",
        "another quantization",
        "strict",
        {"engine__quantization": "fp8"},
        config("model_config", quantization=None),
        BREACHED,
    ),
    ("engine", "auto dtype resolved otherwise", "strict", {}, config("model_config", dtype="torch.float16"), BREACHED),
    ("engine", "a field that is not reported", "strict", {}, without_config("model_config", "dtype"), UNPROVEN),
    ("engine", "another seed", "strict", {}, config("model_config", seed=1), BREACHED),
    ("engine", "no config", "strict", {}, server(config={}), UNPROVEN),
    ("engine", "likelier than certain", "strict", {}, one_turn(1, logprobs=(-0.25, 0.5, -0.125)), BREACHED),
    (
        "engine",
        "rivals as likely as the chosen",
        "strict",
        {},
        one_turn(1, runner_up_logprobs=(-0.1, -1, None)),
        BREACHED,
    ),
    ("engine", "logprobs all alike", "strict", {}, alike, UNPROVEN),
    ("engine", "a text that no token says", "strict", {}, one_turn(1, content="other"), BREACHED),
    ("engine", "the text that the tokens say", "strict", {}, one_turn(1, content="abc"), KEPT),
    ("engine", "kv dtype auto, resolved", "strict", {}, config("cache_config", cache_dtype="fp8_e4m3"), KEPT),
    ("engine", "backend as asked", "strict", TRITON, None, KEPT),
    ("engine", "another backend", "strict", TRITON, server(log={"attention_backend": "FLASH_ATTN"}), BREACHED),
    ("engine", "backend not logged", "strict", TRITON, server(log={}), UNPROVEN),
    ("engine", "two fingerprints", "strict", {}, one_turn(1, response={"system_fingerprint": "other"}), BREACHED),
    ("engine", "a response without fingerprint", "strict", {}, one_turn(1, response={}), UNPROVEN),
    ("model", "any, hashed", "strict", {}, None, KEPT),
    ("model", "the one asked", "strict", PINNED, None, KEPT),
    ("model", "another one", "strict", PINNED, model_digest("sha256:" + "9" * 64), BREACHED),
    ("model", "not hashed", "strict", {}, model_digest("unknown"), UNPROVEN),
    ("model", "another name answered", "strict", {}, one_turn(1, response={"model": "other"}), BREACHED),
    ("model", "another folder loaded", "strict", {}, config("model_config", model="/other"), BREACHED),
    ("model", "another tokenizer loaded", "strict", {}, config("model_config", tokenizer="/other"), BREACHED),
    ("model", "the folder changed meanwhile", "strict", {}, folder_after("sha256:" + "9" * 64), BREACHED),
    ("model", "the folder could not be hashed again", "strict", {}, folder_after(None), UNPROVEN),
    ("boot", "one", "strict", {}, None, KEPT),
    ("boot", "two", "strict", {}, second_boot(), BREACHED),
    ("boot", "two that answer alike, any accepted", "default", {}, second_boot(), KEPT),
    ("boot", "two that round otherwise", "default", {}, second_boot(logprobs=(-0.25, -0.5, -0.126)), BREACHED),
    ("boot", "two that tokenise otherwise", "default", {}, second_boot(prompt_added=(5, 6)), BREACHED),
    ("boot", "two, the second without canaries", "default", {}, second_boot(kind="episode"), UNPROVEN),
    ("boot", "canary otherwise at the end", "strict", {}, one_probe("end-canary-short", logprobs=OTHER), BREACHED),
    ("boot", "canary with a token more at the end", "strict", {}, one_probe("end-canary-long", **LONGER), BREACHED),
    ("boot", "no canary at the end", "strict", {}, without_probe("end-canary-short", "end-canary-long"), UNPROVEN),
    ("boot", "one canary at the end", "strict", {}, without_probe("end-canary-long"), UNPROVEN),
    ("boot", "no canary at all", "strict", {}, without_probes, UNPROVEN),
    ("boot", "died, so no canary at the end", "default", {}, ended("had exited by itself", *END_PROBES), KEPT),
    ("boot", "another's server", "strict", {}, unmanaged, UNPROVEN),
    ("boot", "fewer answered than sent", "strict", {}, answered(-1), BREACHED),
    ("boot", "more answered than recorded", "strict", {}, answered(1), UNPROVEN),
    ("boot", "fewer tokens computed than told", "strict", {}, end(prompt_tokens=1.0), BREACHED),
    ("boot", "fewer tokens written than told", "strict", {}, end(generation_tokens=1.0), BREACHED),
    ("boot", "more tokens written than recorded", "strict", {}, end(generation_tokens=9999.0), UNPROVEN),
    ("boot", "tokens not counted", "strict", {}, end(prompt_tokens=None), UNPROVEN),
    ("boot", "a server that an earlier run left", "strict", {}, kept_server(before=40), KEPT),
    ("boot", "such a server answered fewer", "strict", {}, kept_server(before=40, more=-1), BREACHED),
    ("boot", "such a server answered more", "strict", {}, kept_server(before=40, more=1), UNPROVEN),
    ("boot", "no counter", "strict", {}, end(request_success=None), UNPROVEN),
    ("tools", "equal", "strict", {}, None, KEPT),
    ("tools", "another result", "strict", {}, call_of(result="other"), BREACHED),
    ("tools", "another effect", "strict", {}, call_of(world_patch=({"op": "remove", "path": "/x"},)), BREACHED),
    ("tools", "another state, another result", "strict", {}, call_of(state_digest="s", result="other"), KEPT),
    ("tools", "an id of the server's", "strict", {}, call_of(call_id="chatcmpl-tool-1"), BREACHED),
    ("tools", "out of order", "strict", {}, call_of(call=1), BREACHED),
    ("tools", "no call at all", "strict", {}, without_calls, UNPROVEN),
    ("tools", "one repeat, each call asked twice", "strict", ONE_REPEAT, None, KEPT),
    ("tools", "a mock that gives another answer at once", "strict", {}, call_of(is_repeatable=False), BREACHED),
    ("prompts", "rendered alike", "strict", {}, None, KEPT),
    ("prompts", "rendered otherwise", "strict", {}, one_turn(2, prompt_added=(1, 2)), BREACHED),
    ("prompts", "one prompt for all", "strict", {}, one_prompt, BREACHED),
    ("prompts", "not continuous, not promised", "strict", {}, later_turns(prompt_kept=9), KEPT),
    ("prompts", "continuous", "strict", CONTINUOUS, None, KEPT),
    ("prompts", "not continuous", "strict", CONTINUOUS, later_turns(prompt_kept=9), BREACHED),
    ("prompts", "no later turn", "strict", CONTINUOUS, every_turn(turn=0), UNPROVEN),
    ("prompts", "a stored turn is missing", "strict", {}, a_turn_lost, UNPROVEN),
    ("repeats", "agree", "strict", {}, None, KEPT),
    ("repeats", "differ", "strict", {}, diverged, BREACHED),
    ("repeats", "differ below the level", "strict", {"repeats__level": "calls"}, diverged, KEPT),
    ("repeats", "one is missing", "strict", {}, one_repeat_missing, UNPROVEN),
    ("repeats", "only one", "strict", ONE_REPEAT, None, UNPROVEN),
    ("repeats", "differ, only measured", "strict", MEASURED, diverged, NOT_PROMISED),
]


@pytest.mark.parametrize(
    ("clause", "name", "fields", "change", "verdict"),
    [(clause, name, fields, change, verdict) for clause, _, name, fields, change, verdict in TABLE],
    ids=[f"{clause}: {words}" for clause, words, *_ in TABLE],
)
def test_a_clause_is_judged_by_what_was_measured(
    clause: str, name: str, fields: dict[str, Any], change: Change | None, verdict: ClauseVerdict
) -> None:
    assert verdict_of(clause, made.contract(name, **fields), change) is verdict


@pytest.mark.parametrize("name", ["strict", "isolated", "invariant", "default"])
@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("change", [without_turns, without_boot], ids=["no turn", "no boot"])
def test_without_records_no_clause_is_kept(name: str, clause: str, change: Change) -> None:
    assert verdict_of(clause, made.contract(name), change) in (UNPROVEN, BREACHED)


@pytest.mark.parametrize("clause", CLAUSES)
def test_an_episode_that_went_past_the_recorder_leaves_every_clause_open(clause: str) -> None:
    def silent(facts: RunFacts, turns: list[Turn]) -> Recorded:
        extra = made.episode(made.plan(7, task="other"), turns=0)
        return replace(facts, episodes=(*facts.episodes, extra)), turns

    assert verdict_of(clause, made.contract(), silent) is UNPROVEN


@pytest.mark.parametrize("name", ["strict", "isolated", "invariant", "default"])
def test_every_clause_has_evidence_in_the_contracts_order(name: str) -> None:
    facts, turns = made.kept_run(made.contract(name))
    rows = audit_run(facts, turns)
    assert list(dict.fromkeys(row.clause for row in rows)) == list(CLAUSES)
    assert all(row.run_id == made.RUN and row.fact and row.expected and row.observed for row in rows)


def test_evidence_names_the_turns_that_broke_a_clause() -> None:
    facts, turns = one_turn(1, cached_tokens=16)(*made.kept_run(made.contract()))
    breached = [row for row in audit_run(facts, turns) if row.verdict is BREACHED]
    assert breached[0].detail["turns"] == "run-1/00000 turn 1: 16"
