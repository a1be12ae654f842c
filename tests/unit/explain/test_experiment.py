"""Each cause is found where it is one, on a stand-in server whose cache, company and boots change its answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fake_vllm import FakeConfig, FakeVllm, Generation
from fake_vllm.protocol import RefusedError
from lies.servers import CountsNothing, IgnoresSalts

from agenteval.client import Exchange
from agenteval.explain import Explanation, Outcome, Replayer
from agenteval.explain.model import Condition
from agenteval.loop import StoppedError
from agenteval.report.explanation import explanation_exit_code, explanation_text
from agenteval.server import OutsideServer

from .conftest import SENSITIVE, ask, by_boot, by_cache, by_company, experiment, parting, request

CACHE_ALONE = replace(SENSITIVE, batch_sensitivity=0.0)
COMPANY_ALONE = replace(SENSITIVE, cache_sensitivity=0.0)


class WritesAnotherPrompt(FakeVllm):
    """Its template has changed since the run."""

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        body["prompt_token_ids"] = [*generation.prompt_ids, generation.prompt_ids[-1]]


class RefusesLongerPrompts(FakeVllm):
    """Has room for the recorded request, and for nothing longer."""

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        if "keep it company" in request["messages"][-1]["content"]:
            raise RefusedError("This model's maximum context length is 1 token.")
        return super().chat(request)


def warm(found: Explanation) -> Outcome:
    return next(outcome for name, outcome in found.outcomes.items() if name.startswith("warm, "))


def crowded(found: Explanation) -> Outcome:
    return next(outcome for name, outcome in found.outcomes.items() if name.startswith("with "))


def test_the_cache_is_found() -> None:
    found = experiment(by_cache(CACHE_ALONE), CACHE_ALONE, boots=(0, 0))
    assert (found.flips, explanation_exit_code(found)) == (("cache",), 0)
    assert (found.outcomes["cold"], warm(found)) == (Outcome.A, Outcome.B)
    assert (crowded(found), found.outcomes["other boot"]) == (Outcome.A, Outcome.A)
    assert all(trial.is_exact for trial in found.trials)
    assert "what the cache holds alone turns the one answer into the other" in found.conclusion


def test_company_is_found_with_as_many_others_as_were_recorded() -> None:
    found = experiment(by_company(COMPANY_ALONE, 3), COMPANY_ALONE, boots=(0, 0))
    assert (found.flips, explanation_exit_code(found)) == (("batching",), 0)
    assert found.outcomes["with 3 others"] is Outcome.B
    assert {trial.requests_in_flight for trial in found.trials if trial.condition.company} == {4}


def test_another_boot_is_found() -> None:
    config = replace(SENSITIVE, batch_sensitivity=0.0)
    found = experiment(by_boot(config), config, boots=(0, 1))
    assert (found.flips, explanation_exit_code(found)) == (("boot",), 0)
    assert (found.outcomes["cold"], found.outcomes["other boot"]) == (Outcome.A, Outcome.B)


def test_where_a_change_was_not_tried_none_is_found() -> None:
    config = replace(SENSITIVE, batch_sensitivity=0.0)
    found = experiment(by_boot(config), config, boots=(0,))
    assert (found.flips, explanation_exit_code(found)) == ((), 1)
    assert "no single change tried here turns the one answer into the other" in found.conclusion


def test_where_nothing_changes_the_answer_of_another_engine_nothing_can_be_told() -> None:
    found = experiment(by_cache(CACHE_ALONE), replace(CACHE_ALONE, weights="other", cache_sensitivity=0.0))
    assert (found.flips, explanation_exit_code(found)) == ((), 2)
    assert "neither recorded answer came again" in found.conclusion
    assert all(trial.departs_at is not None for trial in found.trials)


def test_another_prompt_makes_it_void() -> None:
    found = experiment(by_cache(CACHE_ALONE), CACHE_ALONE, kind=WritesAnotherPrompt)
    assert set(found.outcomes.values()) == {Outcome.VOID}
    assert (found.flips, explanation_exit_code(found)) == ((), 2)
    assert "the experiment is void" in found.conclusion
    assert "void: another prompt" in explanation_text(found)


def test_a_server_that_ignores_salts_has_no_cold_cache() -> None:
    found = experiment(by_cache(CACHE_ALONE), CACHE_ALONE, kind=IgnoresSalts)
    assert (found.outcomes["cold"], explanation_exit_code(found)) == (Outcome.UNREACHED, 2)
    assert "could not be shown" in found.conclusion


def test_a_hit_of_fewer_tokens_than_asked_is_not_reached() -> None:
    found = experiment(by_cache(CACHE_ALONE), replace(CACHE_ALONE, block_size=20))
    assert (warm(found), found.outcomes["cold"]) == (Outcome.UNREACHED, Outcome.A)
    assert (found.flips, explanation_exit_code(found)) == ((), 1)
    assert "tokens (not reached)" in explanation_text(found)


def test_a_server_that_counts_nothing_shows_no_cold_cache() -> None:
    found = experiment(by_cache(CACHE_ALONE), CACHE_ALONE, kind=CountsNothing)
    assert set(found.outcomes.values()) == {Outcome.UNREACHED}
    assert (found.flips, explanation_exit_code(found)) == ((), 2)


@pytest.mark.parametrize(("nulls", "cold"), [("at_zero", Outcome.A), ("always", Outcome.UNREACHED)])
def test_a_null_is_zero_only_where_hits_are_counted(nulls: Any, cold: Outcome) -> None:
    config = replace(CACHE_ALONE, null_cached_tokens=nulls)
    found = experiment(by_cache(CACHE_ALONE), config)
    assert found.outcomes["cold"] is cold


def test_company_that_the_server_refuses_is_not_reached() -> None:
    found = experiment(by_company(COMPANY_ALONE, 3), COMPANY_ALONE, kind=RefusesLongerPrompts)
    assert (crowded(found), found.outcomes["cold"]) == (Outcome.UNREACHED, Outcome.A)


def test_every_exchange_is_recorded_whole() -> None:
    kept: list[Exchange] = []
    found = experiment(by_cache(CACHE_ALONE), CACHE_ALONE, record=kept.append)
    ids = {exchange.response.get("id") for exchange in kept}
    assert {trial.request_id for trial in found.trials} <= ids
    # Two cold, two warm with what warms them, and two among seven others.
    assert len(kept) == 2 + 2 * 2 + 2 * 8
    assert len({trial.cache_salt for trial in found.trials}) == len(found.trials)


def test_a_wish_to_stop_ends_it_in_company_too() -> None:
    subject = by_cache(CACHE_ALONE)
    asked: list[None] = []

    def check_over() -> None:
        asked.append(None)
        if len(asked) > 3:
            raise StoppedError("enough")

    with FakeVllm(CACHE_ALONE) as server:
        outside = OutsideServer(server.base_url, None)
        replayer = Replayer(subject, outside, model_name="fake", check_over=check_over, record=lambda exchange: None)
        with pytest.raises(StoppedError):
            replayer.try_once(Condition(name="with 7 others", kind="batching", company=7), 1)


def test_requests_that_ask_for_something_else_are_a_change_of_their_own() -> None:
    config = FakeConfig()
    with FakeVllm(config) as server:
        subject = parting(
            lambda number: (ask(server, request(number)), ask(server, request(number, temperature=2.0, seed=number)))
        )
    found = experiment(subject, replace(config, batch_sensitivity=0.0, cache_sensitivity=0.0, latency_s=0.1))
    assert found.outcomes["b's request"] is Outcome.B
    assert found.flips == ("request",)
