"""Records of a run made by hand: each builder gives one that keeps every clause, and takes what differs."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agenteval.audit import RunFacts
from agenteval.audit.probes import crowd_size
from agenteval.compare import Trajectory
from agenteval.contract import Contract, load_contract
from agenteval.digest import canonical_json, derive_seed
from agenteval.records import (
    Boot,
    BootEnd,
    Episode,
    EpisodePlan,
    EpisodeStatus,
    Run,
    StopReason,
    TaskRecord,
    ToolCall,
    Turn,
)
from agenteval.spec import AgentSettings, Case, Message, TaskVariant, ToolMock
from agenteval.spec.tools import Effect

RUN = "run-1"
BOOT = f"{RUN}/boot-0"
START = datetime.datetime(2026, 1, 15, 9, tzinfo=datetime.UTC)
MOCKS = (
    ToolMock(
        name="look",
        description="Look at an order.",
        parameters={"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        default=Case(returns="order ${args.id}, call ${call}"),
    ),
    ToolMock(
        name="push",
        description="Push an item.",
        parameters={"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
        default=Case(returns="pushed", effects=(Effect(op="add", path="/stack/-", value="${args.item}"),)),
    ),
)
SETTINGS = AgentSettings(
    system_prompt="You are an agent.",
    tool_choice="auto",
    max_turns=4,
    max_tokens=300,
    parallel_tool_calls=True,
    finish_tool="finish",
)
VARIANT = TaskVariant(
    task="task",
    variant="base",
    vars={},
    messages=(
        Message(role="system", content="You are an agent."),
        Message(role="user", content="Look at order A-7."),
    ),
    follow_ups=(),
    tools=MOCKS,
    world={"stack": []},
    faults=(),
    checks=(),
    tags=(),
    settings=SETTINGS,
)

FOLDER = "/models/fake"
MODEL_DIGEST = "sha256:" + "1" * 64
FINGERPRINT = "vllm-0.32.0-00000000"


def changed(contract: Contract, **fields: Any) -> Contract:
    """A contract with other fields, named as `clause__field`."""
    content = contract.fields()
    for name, value in fields.items():
        clause, _, field = name.partition("__")
        content[clause][field] = value
    return Contract.model_validate_json(canonical_json(content))


def contract(name: str = "strict", **fields: Any) -> Contract:
    return changed(load_contract(name).contract, **fields)


def run(of: Contract, **fields: Any) -> Run:
    made = Run(
        run_id=RUN,
        suite="suite",
        suite_digest="sha256:" + "2" * 64,
        contract=of.name,
        contract_digest=of.digest(),
        contract_fields=of.fields(),
        model="fake",
        model_digest=MODEL_DIGEST,
        agent="agenteval",
        samples=1,
        repeats=of.repeats.count,
        planned_episodes=of.repeats.count,
        started_at=START,
        agenteval_version="0",
        facts={},
    )
    return replace(made, **fields)


def server_config(of: Contract) -> dict[str, Any]:
    """/server_info of a server that does what the contract asks."""
    return {
        "vllm_config": {
            "model_config": {
                "model": FOLDER,
                "tokenizer": FOLDER,
                "seed": of.sampling.seed,
                "dtype": "torch.bfloat16",
                "max_model_len": of.engine.max_model_len,
                "quantization": of.engine.quantization,
                "enforce_eager": False,
                "generation_config": "vllm",
            },
            "cache_config": {"cache_dtype": of.engine.kv_cache_dtype},
            "scheduler_config": {"max_num_seqs": of.batching.concurrency},
        },
        "vllm_env": {"VLLM_BATCH_INVARIANT": of.batching.mode == "invariant"},
    }


def arguments(of: Contract) -> tuple[str, ...]:
    """The command line that leads to such a server."""
    options = {
        "--model": FOLDER,
        "--seed": of.sampling.seed,
        "--max-model-len": of.engine.max_model_len,
        "--dtype": "bfloat16",
        "--kv-cache-dtype": of.engine.kv_cache_dtype,
    }
    named = {} if of.engine.quantization is None else {"--quantization": of.engine.quantization}
    eager = ("--enforce-eager",) if of.engine.compilation == "eager" else ()
    return ("-m", "vllm", *eager, *(str(word) for option in {**options, **named}.items() for word in option))


COUNTERS = (
    "prefix_cache_hits",
    "prefix_cache_queries",
    "prompt_tokens",
    "prompt_tokens_cached",
    "generation_tokens",
    "num_preemptions",
)
"""Counters of the engine that a boot reads at its start."""


def boot(of: Contract, **fields: Any) -> Boot:
    made = Boot(
        boot_id=BOOT,
        run_id=RUN,
        is_managed=True,
        started_at=START,
        ready_s=1.0,
        base_url="http://127.0.0.1:1",
        argv=arguments(of),
        env={},
        facts={
            "version": "0.32.0",
            "served_models": ["fake"],
            "cache_config": {"enable_prefix_caching": str(of.cache.mode != "disabled")},
            "config": server_config(of),
            "log": {"attention_backend": of.engine.attention_backend or "FLASH_ATTN"},
            "metrics": dict.fromkeys(map("vllm:{}_total".format, COUNTERS), 0.0),
        },
    )
    return replace(made, **fields)


def boot_end(answered: int, **metrics: float | None) -> BootEnd:
    """The end of a boot that says it answered so many requests; a metric of None is left out."""
    found = {
        "vllm:prefix_cache_hits_total": 0.0,
        "vllm:num_preemptions_total": 0.0,
        "vllm:request_success_total": float(answered),
        **{f"vllm:{name}_total": value for name, value in metrics.items()},
    }
    kept = {name: value for name, value in found.items() if value is not None}
    return BootEnd(boot_id=BOOT, run_id=RUN, ended_at=START, reason="stopped", metrics=kept, model_digest=MODEL_DIGEST)


def plan(position: int = 0, **fields: Any) -> EpisodePlan:
    made = EpisodePlan(
        run_id=RUN,
        position=position,
        task="task",
        variant="base",
        sample=0,
        repeat=position,
        seed=derive_seed(20260101, "task", "base", 0),
        cache_salt=None,
    )
    return replace(made, **fields)


def task_record(**fields: Any) -> TaskRecord:
    """The task of all plans here; `faults` are as its definition has them."""
    definition = {**VARIANT.fields(), **fields}
    return TaskRecord(run_id=RUN, task="task", variant="base", tags=(), definition=definition)


def episode(of: EpisodePlan, *, turns: int = 2, **fields: Any) -> Episode:
    made = Episode(
        plan=of,
        boot_id=BOOT,
        status=EpisodeStatus.FINISHED,
        stop_reason=StopReason.FINISH_TOOL,
        message=None,
        answer="done",
        world={},
        turns=turns,
        started_at=START,
        elapsed_s=1.0,
    )
    return replace(made, **fields)


def call(turn: int = 0, place: int = 0, **fields: Any) -> ToolCall:
    made = ToolCall(
        call=place,
        call_id=f"call_{turn:03d}_{place:02d}",
        server_call_id=f"chatcmpl-tool-{turn}-{place}",
        tool="look",
        arguments='{"id":1}',
        result='{"found":1}',
        error=None,
        is_broken=False,
        state_digest=f"state-{turn}-{place}",
        world_patch=(),
        is_repeatable=True,
        fault=None,
    )
    return replace(made, **fields)


def turn(number: int = 0, of: EpisodePlan | None = None, **fields: Any) -> Turn:
    """A turn with three tokens and one call, whose prompt extends the turn before."""
    of = of or plan()
    strict = load_contract("strict").contract
    sampling = {**strict.sampling.model_dump(mode="json"), "seed": of.seed}
    made = Turn(
        run_id=RUN,
        boot_id=BOOT,
        episode_id=of.episode_id,
        turn=number,
        kind="episode",
        started_at=START,
        elapsed_s=0.1,
        queued_s=0.0,
        requests_in_flight=1,
        request=sampling if of.cache_salt is None else {**sampling, "cache_salt": of.cache_salt},
        messages_kept=2 * number,
        messages_added=({"role": "user", "content": f"message {number}"},),
        prompt_tokens=10 + 10 * number,
        prompt_kept=0 if number == 0 else 10 * number,
        prompt_added=tuple(range(100 * number, 100 * number + 7)),
        is_continuous=None if number == 0 else True,
        output_ids=(11, 12, 13),
        output_tokens=("a", "b", "c"),
        logprobs=(-0.25, -0.5, -0.125),
        runner_up_tokens=("x", "y", None),
        runner_up_logprobs=(-2.25, -1.0, None),
        cached_tokens=0,
        finish_reason="tool_calls",
        content=None,
        response={"model": "fake", "system_fingerprint": FINGERPRINT},
        tool_calls=(call(number),),
    )
    return replace(made, **fields)


def probe(name: str, **fields: Any) -> Turn:
    """A probe; by default one that missed, and answered as the greedy canary."""
    made = turn(kind="probe", episode_id=f"{BOOT}/{name}", tool_calls=())
    return replace(made, messages_added=({"role": "user", "content": "probe"},), **fields)


def probes(of: Contract) -> list[Turn]:
    """The probes of a boot under a contract that is kept."""
    is_cached = of.cache.mode != "disabled"
    hits = 16 if is_cached else 0
    company = crowd_size(of)
    drawn = {"output_ids": (21, 22, 23)}
    far = [probe("far-alone"), probe("far-crowded", requests_in_flight=company)]
    far = far if of.batching.mode == "invariant" else []
    return [
        probe("cache-cold"),
        probe("cache-warm", cached_tokens=hits),
        probe("cache-other-salt"),
        probe("canary-short"),
        probe("canary-long"),
        probe("sampling-draw", **drawn),
        probe("sampling-draw-again", **drawn),
        probe("sampling-other-seed", output_ids=(31, 32, 33)),
        probe("sampling-top-p"),
        probe("canary-crowded", requests_in_flight=company),
        *far,
        *([probe("cache-after-reset")] if is_cached else []),
        probe("end-canary-short"),
        probe("end-canary-long"),
        probe("end-cache-cold"),
        probe("end-cache-warm", cached_tokens=hits),
    ]


def trajectory(*turns: Turn, of: EpisodePlan | None = None, passed: bool | None = True, **fields: Any) -> Trajectory:
    of = of or plan()
    return Trajectory(episode=episode(of, turns=len(turns), **fields), turns=turns, passed=passed)


def kept_run(of: Contract) -> tuple[RunFacts, list[Turn]]:
    """A run of one task whose every clause is kept, and its turns, probes first."""
    plans = [
        plan(position, cache_salt=f"salt-{position}" if of.cache.mode == "per_episode" else None)
        for position in range(of.repeats.count)
    ]
    turns = [*probes(of), *(turn(number, each) for each in plans for number in range(2))]
    facts = RunFacts(
        run=run(of),
        contract=of,
        boots=((boot(of), boot_end(len(turns), prefix_cache_hits=cached(turns), **computed(turns))),),
        episodes=tuple(episode(each) for each in plans),
        divergences=(),
        tasks=(task_record(),),
    )
    return facts, turns


def cached(turns: Sequence[Turn]) -> float:
    """What the engine's counter of cached tokens shows after these turns."""
    return float(sum(item.cached_tokens or 0 for item in turns))


def computed(turns: Sequence[Turn]) -> dict[str, float | None]:
    """What the engine's counters of tokens show after these turns."""
    prompt, generated = sum(item.prompt_tokens for item in turns), sum(len(item.output_ids) for item in turns)
    return {"prompt_tokens": float(prompt), "generation_tokens": float(generated)}


def recounted(facts: RunFacts, turns: Sequence[Turn]) -> RunFacts:
    """The same run whose server has counted just these turns."""
    return with_end(facts, len(turns), prefix_cache_hits=cached(turns), **computed(turns))


def with_server(facts: RunFacts, **changes: Any) -> RunFacts:
    """The same run whose server said something else of itself."""
    made, end = facts.boots[0]
    return replace(facts, boots=((replace(made, facts={**made.facts, **changes}), end),))


def with_end(facts: RunFacts, answered: int | None = None, **metrics: float | None) -> RunFacts:
    """The same run whose server's counters stood otherwise at the end."""
    made, end = facts.boots[0]
    assert end is not None
    changes = {f"vllm:{name}_total": value for name, value in metrics.items()}
    if answered is not None:
        changes["vllm:request_success_total"] = float(answered)
    left = {name: value for name, value in {**end.metrics, **changes}.items() if value is not None}
    return replace(facts, boots=((made, replace(end, metrics=left)),))


def each(turns: Sequence[Turn], **fields: Any) -> list[Turn]:
    """The same turns with other fields; probes stay."""
    return [item if item.kind == "probe" else replace(item, **fields) for item in turns]
