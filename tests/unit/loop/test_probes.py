"""What is asked of a server before and after the episodes, and that it reaches none of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import run_records as made
from fake_vllm import FakeConfig, FakeVllm

from agenteval.client import Gate, open_connection
from agenteval.errors import InputError
from agenteval.loop.episode import BootSession
from agenteval.loop.probes import BootProber
from agenteval.records import Turn
from agenteval.server import OutsideServer

CACHE = ["cache-cold", "cache-warm", "cache-other-salt"]
CANARIES = ["canary-short", "canary-long"]
SAMPLING = ["sampling-draw", "sampling-draw-again", "sampling-other-seed", "sampling-top-p"]
END = ["end-canary-short", "end-canary-long", "end-cache-cold", "end-cache-warm"]


def probed(name: str = "strict", config: FakeConfig | None = None, **fields: Any) -> tuple[dict[str, Turn], FakeVllm]:
    """Both ends of a boot on a stand-in server of its own: name to turn, and the server."""
    connection = open_connection(1)
    handed: list[Turn] = []

    def hand_over(turn: Turn) -> Callable[[], None]:
        handed.append(turn)
        return lambda: None

    with FakeVllm(config) as server:
        outside = OutsideServer(server.base_url, None)
        boot = BootSession(
            boot_id=made.BOOT, server=outside, model_name=outside.model_name, gate=Gate(1), connection=connection
        )
        prober = BootProber(made.contract(name, **fields), boot, hand_over=hand_over, check_over=lambda: None)
        try:
            prober.probe_start()
            prober.probe_end()
        finally:
            connection.close()
    assert all(turn.kind == "probe" and turn.boot_id == made.BOOT for turn in handed)
    return {turn.episode_id.removeprefix(f"{made.BOOT}/"): turn for turn in handed}, server


@pytest.mark.parametrize(
    ("name", "company"),
    [("strict", 1), ("isolated", 1), ("default", 3), ("invariant", 15)],
)
def test_a_contract_is_probed_at_both_ends_of_a_boot(name: str, company: int) -> None:
    turns, _ = probed(name)
    crowd = [f"crowd-{place:02d}" for place in range(1, company + 1)]
    far = ["far-alone", "far-crowded", *(f"far-{place:02d}" for place in range(1, company + 1))]
    far = far if name == "invariant" else []
    assert sorted(turns) == sorted([*CACHE, *CANARIES, *SAMPLING, *crowd, "canary-crowded", *far, *END])


def test_only_the_crowd_is_in_company() -> None:
    turns, _ = probed("invariant")
    in_flight = {name: turn.requests_in_flight for name, turn in turns.items()}
    crowd = {name: count for name, count in in_flight.items() if "crowd" in name or re.match(r"far-\d", name)}
    assert len(crowd) == 32
    assert set(crowd.values()) == {16}
    assert {count for name, count in in_flight.items() if name not in crowd} == {1}


def test_probes_show_what_a_cache_shares() -> None:
    turns, _ = probed("isolated")
    assert [turns[name].cached_tokens for name in ("cache-cold", "cache-other-salt")] == [0, 0]
    assert turns["cache-warm"].cached_tokens
    assert turns["end-cache-warm"].cached_tokens


def test_probes_show_that_a_cache_is_off() -> None:
    turns, _ = probed("strict", FakeConfig(prefix_caching=False))
    assert {turn.cached_tokens for turn in turns.values()} == {0}


@pytest.mark.parametrize("block_size", [16, 64, 128])
def test_probes_fill_a_block_of_any_size(block_size: int) -> None:
    turns, _ = probed("isolated", FakeConfig(block_size=block_size))
    assert turns["cache-warm"].cached_tokens


def test_only_the_pair_of_the_cache_shares_a_salt() -> None:
    """Whatever else a probe leaves behind, no other request can find it."""
    _, server = probed("isolated")
    salts = [request["cache_salt"] for request in server.requests]
    shared = {salt for salt in salts if salts.count(salt) > 1}
    assert {salt.rpartition("-")[2] for salt in shared} == {"cache"}
    assert all(salt.startswith("agenteval-probe-") for salt in salts)


@pytest.mark.parametrize(
    ("field", "value", "name", "sent"),
    [
        pytest.param("top_k", 5, "sampling-top-k", {"temperature": 2.0, "top_k": 1}, id="top_k"),
        pytest.param("min_p", 0.1, "sampling-min-p", {"temperature": 2.0, "min_p": 1.0}, id="min_p"),
        pytest.param("presence_penalty", 0.5, "sampling-presence-penalty", {"presence_penalty": 2.0}, id="presence"),
        pytest.param("frequency_penalty", 1, "sampling-frequency-penalty", {"frequency_penalty": 2.0}, id="frequency"),
        pytest.param(
            "repetition_penalty", 1.1, "sampling-repetition-penalty", {"repetition_penalty": 2.0}, id="repetition"
        ),
        pytest.param("min_tokens", 3, "sampling-min-tokens", {"min_tokens": 2}, id="min_tokens"),
        pytest.param("stop", ["x"], "sampling-stop", {"temperature": 0.0}, id="stop"),
        pytest.param("stop_token_ids", [5], "sampling-stop-token-ids", {"min_tokens": 0}, id="stop_token_ids"),
        pytest.param("bad_words", ["x"], "sampling-bad-words", {"temperature": 0.0}, id="bad_words"),
        pytest.param("logit_bias", {"5": 1.0}, "sampling-logit-bias", {"temperature": 0.0}, id="logit_bias"),
        pytest.param(
            "allowed_token_ids", [5], "sampling-allowed-token-ids", {"temperature": 0.0}, id="allowed_token_ids"
        ),
    ],
)
def test_a_field_at_work_is_probed(field: str, value: Any, name: str, sent: dict[str, Any]) -> None:
    turns, _ = probed(**{f"sampling__{field}": value})
    assert turns[name].request.items() >= sent.items()
    assert turns[name].request[field]


def test_the_contracts_own_sampling_reaches_no_canary() -> None:
    """They must be the same on every boot, whatever the contract."""
    plain, _ = probed()
    hot, _ = probed(sampling__temperature=1.5, sampling__top_k=3)
    assert [hot[name].output_ids for name in CANARIES] == [plain[name].output_ids for name in CANARIES]


def test_canaries_are_answered_alike_on_another_boot_of_the_same_engine() -> None:
    first, _ = probed()
    second, _ = probed()
    other, _ = probed(config=FakeConfig(boot=1))
    assert first["canary-long"].logprobs == second["canary-long"].logprobs != other["canary-long"].logprobs


def test_a_probe_that_does_not_fit_says_what_to_change() -> None:
    with pytest.raises(InputError, match=r"Raise engine\.max_model_len in the contract\.$"):
        probed(config=FakeConfig(max_model_len=32))
