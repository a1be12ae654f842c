"""Turns that a stand-in server really answered, so that an experiment can ask for them again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import run_records as made
from fake_vllm import FakeConfig, FakeVllm

from agenteval.client import EpisodeRecorder, Exchange, TurnIdentity
from agenteval.compare import Trajectory
from agenteval.explain import Explanation, Replayer, Subject, explain, subject_of
from agenteval.records import Turn
from agenteval.server import OutsideServer

OTHER = made.plan(1)
SENSITIVE = FakeConfig(near_tie_share=0.5, cache_sensitivity=0.5, batch_sensitivity=0.5, latency_s=0.1)
"""Cache, company and boot each turn many of its answers."""
_MOST_TRIES = 60


def request(number: int, **fields: Any) -> dict[str, Any]:
    """A request whose prompt is a few blocks long."""
    text = f"Tell what is known of item {number} of the list, its place, its price and where it comes from."
    return {
        "model": "fake",
        "messages": [{"role": "user", "content": text}],
        "temperature": 0.0,
        "seed": 1,
        "logprobs": True,
        "top_logprobs": 2,
        "return_token_ids": True,
        "max_completion_tokens": 40,
        **fields,
    }


def ask(server: FakeVllm, body: dict[str, Any], *, company: int = 0) -> Turn:
    """A turn, asked for alone or at the same moment as others."""
    barrier = threading.Barrier(company + 1)

    def send(place: int) -> dict[str, Any]:
        barrier.wait()
        salted = {**body, "cache_salt": f"{body.get('cache_salt', 'alone')}-{place}"}
        found: dict[str, Any] = httpx.post(f"{server.base_url}/v1/chat/completions", json=salted).json()
        return found

    with ThreadPoolExecutor(company + 1) as threads:
        response, *_ = threads.map(send, range(company + 1))
    turns: list[Turn] = []

    def keep(turn: Turn) -> Callable[[], None]:
        turns.append(turn)
        return lambda: None

    recorder = EpisodeRecorder(
        TurnIdentity(run_id=made.RUN, boot_id=made.BOOT, episode_id="episode", kind="episode"), keep
    )
    recorder.add_exchange(
        Exchange(
            request=body,
            response=response,
            started_at=datetime.now(UTC),
            elapsed_s=0.0,
            queued_s=0.0,
            requests_in_flight=company + 1,
        )
    )
    recorder.end_turn()
    return turns[0]


def trajectories(first: Turn, second: Turn) -> tuple[Trajectory, Trajectory]:
    return made.trajectory(first), made.trajectory(replace(second, episode_id=OTHER.episode_id), of=OTHER)


def parting(pair: Callable[[int], tuple[Turn, Turn]]) -> Subject:
    """The first of some numbered pairs of turns that differ in a token."""
    for number in range(_MOST_TRIES):
        first, second = pair(number)
        if first.output_ids != second.output_ids:
            return subject_of(*trajectories(first, second))
    raise AssertionError("no pair differs")


def by_cache(config: FakeConfig) -> Subject:
    """A cold answer, and the one to the same prompt once it is cached."""
    with FakeVllm(config) as server:
        return parting(lambda number: (ask(server, request(number)), ask(server, request(number))))


def by_company(config: FakeConfig, company: int) -> Subject:
    """An answer alone, and the one to the same prompt among others."""
    with FakeVllm(config) as server:
        return parting(
            lambda number: (
                ask(server, request(number, cache_salt="one")),
                ask(server, request(number, cache_salt="two"), company=company),
            )
        )


def by_boot(config: FakeConfig) -> Subject:
    """The answers of two boots to one prompt."""
    with FakeVllm(config) as server, FakeVllm(replace(config, boot=1)) as other:
        return parting(lambda number: (ask(server, request(number)), ask(other, request(number))))


def experiment(
    subject: Subject,
    config: FakeConfig,
    *,
    kind: type[FakeVllm] = FakeVllm,
    boots: tuple[int, ...] = (0,),
    record: Callable[[Exchange], None] = lambda exchange: None,
) -> Explanation:
    """The experiment on stand-in servers, one for each boot."""

    @contextlib.contextmanager
    def open_server(boot: int) -> Iterator[Replayer]:
        with kind(replace(config, boot=boots[boot])) as server:
            outside = OutsideServer(server.base_url, None)
            yield Replayer(subject, outside, model_name="fake", check_over=lambda: None, record=record)

    return explain(subject, open_server, boots=len(boots), changes=(), on_trial=lambda trial: None)
