"""What a server says of itself, read from texts as vLLM writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_vllm import FakeConfig, FakeVllm, HttpAnswer

from agenteval.errors import ServerDiedError, ServerRefusedError
from agenteval.server import read_metrics
from agenteval.server.reading import _LOG_FACTS, _labels, read_facts, without_secrets
from agenteval.server.server_log import ServerLog


@pytest.mark.parametrize(
    ("line", "backend"),
    [
        ("INFO [cuda.py:446] Using AttentionBackendEnum.TRITON_ATTN backend.", "TRITON_ATTN"),
        ("INFO [cuda.py:446] Using TRITON_ATTN backend.", "TRITON_ATTN"),
        ("Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'TRITON_ATTN'].", "FLASH_ATTN"),
        ("Using AttentionBackendEnum.ROCM_ATTN backend (selected via --attention-backend).", "ROCM_ATTN"),
        ("Using default backend AttentionBackendEnum.TORCH_SDPA for vit attention", None),
        ("Using backend AttentionBackendEnum.FLASH_ATTN for vit attention", None),
        ("Using FLASHINFER_CUTLASS Fp8 MoE backend out of potential backends", None),
        ("Using FLASHINFER MLA prefill backend.", None),
        ("Using Transformers modeling backend.", None),
    ],
)
def test_attention_backend_is_read_from_the_log(line: str, backend: str | None) -> None:
    found = _LOG_FACTS["attention_backend"].findall(line)
    assert found[:1] == ([] if backend is None else [backend])


def test_labels_may_hold_braces_and_quotes() -> None:
    text = 'vllm:cache_config_info{engine="0",a="{\\"x\\": 1}",enable_prefix_caching="True"} 1.0\n'
    assert _labels(text, "vllm:cache_config_info")["enable_prefix_caching"] == "True"


def test_secrets_are_taken_out_by_name_and_by_value() -> None:
    told = {"api_key": "x", "list": [{"hf_token": "y"}], "argv": "--key sesame", "max_tokens": 5}
    assert without_secrets(told, "sesame") == {
        "api_key": None,
        "list": [{"hf_token": None}],
        "argv": "--key (key)",
        "max_tokens": 5,
    }


def test_metrics_of_a_server_that_is_gone_are_empty() -> None:
    assert read_metrics("http://127.0.0.1:9") == {}


def test_metrics_are_summed_over_labels_and_finite() -> None:
    with FakeVllm(FakeConfig()) as server:
        metrics = read_metrics(server.base_url)
    assert metrics["vllm:prefix_cache_queries_total"] == 0.0


def test_facts_of_a_server_that_wants_another_key() -> None:
    with FakeVllm(FakeConfig(api_key="right")) as server, pytest.raises(ServerRefusedError, match="401"):
        read_facts(server.base_url, api_key="wrong", log_text="")


def test_facts_of_nobody() -> None:
    with pytest.raises(ServerDiedError):
        read_facts("http://127.0.0.1:9", api_key=None, log_text="")


def test_phase_follows_the_log_as_it_grows(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log", "key")
    assert log.phase() == "import the engine"
    with log.path.open("a") as file:
        for text, phase in (
            ("Starting to load mo", "import the engine"),
            ("del Qwen\n", "load the weights"),
            ("Loading weights took 6.1 seconds\n", "prepare the cache"),
            ("Starting to load model again\n", "prepare the cache"),
        ):
            file.write(text)
            file.flush()
            assert log.phase() == phase


def test_end_of_a_long_log_hides_the_key(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log", "sesame")
    log.path.write_text("sesame open\n" * 20_000)
    assert log.last_lines() == "\n".join(["(key) open"] * 25)


class Telltale(FakeVllm):
    """Names the key that it refuses."""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        return HttpAnswer(401, f"no such key: {headers['Authorization']}".encode())


def test_a_refusal_that_names_the_key_is_told_without_it() -> None:
    with Telltale() as server, pytest.raises(ServerRefusedError, match="no such key") as refused:
        read_facts(server.base_url, api_key="hush-hush", log_text="")
    assert "hush" not in str(refused.value)


def test_a_password_in_an_address_is_taken_out() -> None:
    told = {"env_vars": "OMP_A=1\nHTTPS_PROXY=http://user:hush@proxy:3128\n"}
    assert without_secrets(told, None) == {"env_vars": "OMP_A=1\nHTTPS_PROXY=http://(secret)@proxy:3128\n"}
