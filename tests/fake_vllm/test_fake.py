"""What the stand-in server promises: cold passes agree in every bit, hits and company change answers."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from patience import LONG_S

from . import Call, FakeConfig, FakeVllm, Faults, Reply, Script
from .text import decode, encode

EPISODES = 20
PROGRAM = Path(__file__).parent / "program"
HTTP = httpx.Client(trust_env=False)


@pytest.fixture(scope="module", autouse=True)
def _connections() -> Iterator[None]:
    with HTTP:
        yield


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TEXT = {"type": "string"}
TOOLS = [
    tool("lookup", order_id=TEXT, reason=TEXT),
    tool("refund", order_id=TEXT, amount={"type": "integer", "minimum": 1, "maximum": 9}, reason=TEXT),
    tool("ship", speed={"enum": ["slow", "fast"]}, gift={"type": "boolean"}, reason=TEXT),
    tool("finish", answer=TEXT),
]


def ask(url: str, messages: list[dict[str, Any]], **fields: Any) -> httpx.Response:
    body = {
        "model": "fake",
        "messages": messages,
        "temperature": 0,
        "seed": 1,
        "logprobs": True,
        "top_logprobs": 2,
    }
    return HTTP.post(f"{url}/v1/chat/completions", json=body | {"return_token_ids": True} | fields)


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


@dataclasses.dataclass(frozen=True)
class Seen:
    """What one episode showed, at three levels."""

    logprobs: tuple[float, ...] = ()
    tokens: tuple[int, ...] = ()
    calls: tuple[str, ...] = ()

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.logprobs + other.logprobs, self.tokens + other.tokens, self.calls + other.calls)


def episode(url: str, number: int, **fields: Any) -> Seen:
    messages = user(f"Order A-{100 + number} of client {number} arrived broken; please look into it.")
    seen = Seen()
    for _ in range(7):
        choice = ask(url, messages, tools=TOOLS, tool_choice="required", **fields).json()["choices"][0]
        calls = choice["message"]["tool_calls"]
        shown = tuple(call["function"]["name"] + call["function"]["arguments"] for call in calls)
        logprobs = tuple(entry["logprob"] for entry in choice["logprobs"]["content"])
        seen += Seen(logprobs, tuple(choice["token_ids"]), shown)
        if calls[0]["function"]["name"] == "finish":
            break
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": '{"ok": true}'} for call in calls]
    return seen


def passed(url: str, salt: Callable[[int], str] | None = None) -> list[Seen]:
    return [episode(url, number, **({"cache_salt": salt(number)} if salt else {})) for number in range(EPISODES)]


def metric(url: str, name: str) -> float:
    lines = HTTP.get(f"{url}/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(f"vllm:{name}{{")).rsplit(" ", 1)[1])


@pytest.fixture(scope="module")
def cold() -> list[Seen]:
    """One pass with the cache off."""
    with FakeVllm(FakeConfig(prefix_caching=False)) as server:
        return passed(server.base_url)


def test_cold_passes_agree_in_every_bit(cold: list[Seen]) -> None:
    with FakeVllm(FakeConfig(prefix_caching=False)) as server:
        assert passed(server.base_url) == cold
        assert metric(server.base_url, "prefix_cache_hits_total") == 0


def test_a_warm_pass_differs_in_every_episode_and_in_the_calls_of_some(cold: list[Seen]) -> None:
    with FakeVllm() as server:
        first, second = passed(server.base_url), passed(server.base_url)
    assert all(a.logprobs != b.logprobs for a, b in zip(first, second, strict=True))
    assert 2 <= sum(a.calls != b.calls for a, b in zip(first, second, strict=True)) < EPISODES
    assert 2 <= sum(a.tokens != b.tokens for a, b in zip(cold, second, strict=True)) < EPISODES


def test_a_salt_for_each_episode_repeats_in_every_bit() -> None:
    with FakeVllm() as server:
        first = passed(server.base_url, lambda number: f"one-{number}")
        assert metric(server.base_url, "prefix_cache_hits_total") > 0
        assert passed(server.base_url, lambda number: f"two-{number}") == first


def test_a_batch_invariant_engine_ignores_hits(cold: list[Seen]) -> None:
    with FakeVllm(FakeConfig(batch_invariant=True)) as server:
        assert [passed(server.base_url), passed(server.base_url)] == [cold, cold]


def test_reset_makes_the_next_pass_cold() -> None:
    with FakeVllm() as server:
        first = episode(server.base_url, 1)
        assert episode(server.base_url, 1) != first
        assert HTTP.post(f"{server.base_url}/reset_prefix_cache").json() == {"success": True}
        assert episode(server.base_url, 1) == first


@pytest.mark.parametrize(
    ("config", "differs"),
    [
        pytest.param(FakeConfig(), True, id="default"),
        pytest.param(FakeConfig(max_num_seqs=1), False, id="one at a time"),
        pytest.param(FakeConfig(batch_invariant=True), False, id="invariant"),
        pytest.param(FakeConfig(batch_invariant=True, flash_attn_version=3), True, id="invariant, FA3"),
    ],
)
def test_company_changes_logprobs(config: FakeConfig, differs: bool) -> None:
    with FakeVllm(dataclasses.replace(config, prefix_caching=False, latency_s=0.15)) as server:
        alone = ask(server.base_url, user("Hello there")).json()["choices"][0]["logprobs"]
        others = [threading.Thread(target=ask, args=(server.base_url, user(f"Hi {n}"))) for n in range(3)]
        for other in others:
            other.start()
        crowded = ask(server.base_url, user("Hello there")).json()["choices"][0]["logprobs"]
        for other in others:
            other.join()
    assert (crowded != alone) == differs


def test_usage_and_metrics_count_whole_cached_blocks() -> None:
    with FakeVllm() as server:
        usages = [ask(server.base_url, user("Tell me about the sea. " * 5)).json()["usage"] for _ in range(2)]
        prompt = usages[0]["prompt_tokens"]
        whole = (prompt - 1) // 16 * 16
        assert [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages] == [0, whole]
        assert metric(server.base_url, "prefix_cache_hits_total") == whole
        assert metric(server.base_url, "prefix_cache_queries_total") == 2 * prompt
        info = HTTP.get(f"{server.base_url}/metrics").text
        assert 'block_size="16"' in info
        assert 'enable_prefix_caching="True"' in info


def test_a_prompt_too_long_is_refused_in_vllms_words() -> None:
    with FakeVllm(FakeConfig(max_model_len=64)) as server:
        answer = ask(server.base_url, user("word " * 100))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (400, 400, "BadRequestError")
    assert error["message"].startswith("This model's maximum context length is 64 tokens. However, your prompt")


@pytest.mark.parametrize(
    ("fields", "status", "part"),
    [
        pytest.param({"model": "other"}, 404, "The model `other` does not exist", id="model"),
        pytest.param({"cache_salt": "a/b"}, 400, "cache_salt", id="salt"),
        pytest.param({"temperature": 3}, 400, "temperature must be in [0, 2], got 3.", id="range"),
        pytest.param({"temperature": "hot"}, 400, "Input should be a valid number", id="type"),
        pytest.param({"tools": []}, 400, "`tools` must not be an empty array", id="no tools"),
        pytest.param({"tool_choice": "required"}, 400, "`tools` must be set", id="choice"),
        pytest.param({"logprobs": False}, 400, "`logprobs` must be set to true", id="logprobs"),
    ],
)
def test_wrong_requests_are_refused(fields: dict[str, Any], status: int, part: str) -> None:
    with FakeVllm() as server:
        answer = ask(server.base_url, user("Hi"), **fields)
    assert answer.status_code == status
    assert part in answer.json()["error"]["message"]


def test_only_v1_asks_for_the_key() -> None:
    with FakeVllm(FakeConfig(api_key="secret")) as server:
        refused = HTTP.get(f"{server.base_url}/v1/models")
        assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
        headers = {"Authorization": "Bearer secret"}
        assert HTTP.get(f"{server.base_url}/v1/models", headers=headers).json()["data"][0]["id"] == "fake"
        assert HTTP.get(f"{server.base_url}/health").content == b""


def test_a_script_says_what_it_is_told() -> None:
    calls = (Call("lookup", {"order_id": "7"}), Call("no_such_tool", "{broken"))
    replies = (Reply(calls=calls), Reply("Done.", when_warm=Reply("Flipped.")))
    with FakeVllm(FakeConfig(script=[Script("order 7", replies)])) as server:
        messages = user("Where is order 7?")
        message = ask(server.base_url, messages, tools=TOOLS).json()["choices"][0]["message"]
        assert [call["function"]["arguments"] for call in message["tool_calls"]] == [
            '{"order_id": "7"}',
            "{broken",
        ]
        messages += [
            message,
            {"role": "tool", "tool_call_id": "x", "content": "It is on its way to the client."},
        ]
        said = [ask(server.base_url, messages, tools=TOOLS).json()["choices"][0]["message"] for _ in range(2)]
    assert [message["content"] for message in said] == ["Done.", "Flipped."]


def test_seeds_decide_above_temperature_zero() -> None:
    with FakeVllm(FakeConfig(prefix_caching=False)) as server:
        texts = [
            ask(server.base_url, user("Hi"), temperature=1, seed=seed).json()["choices"][0]["message"]["content"]
            for seed in (1, 1, 2, 3)
        ]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_ids_logprobs_and_text_belong_together() -> None:
    with FakeVllm() as server:
        body = ask(server.base_url, user("Tell me a story")).json()
        tokens = HTTP.post(f"{server.base_url}/tokenize", json={"messages": user("Tell me a story")}).json()
    choice = body["choices"][0]
    assert tokens["tokens"] == body["prompt_token_ids"]
    assert decode(choice["token_ids"]) == choice["message"]["content"] + "<|im_end|>"
    assert "".join(entry["token"] for entry in choice["logprobs"]["content"]) == decode(choice["token_ids"])
    assert all(entry["top_logprobs"][0]["token"] == entry["token"] for entry in choice["logprobs"]["content"])


@pytest.mark.parametrize("text", ["", "plain words", "naïve, 漢字 🙂", '<tool_call>\n{"a": 1}\n</tool_call>'])
def test_tokens_read_back(text: str) -> None:
    assert decode([token for token in encode(text) if token]) == text


def test_faults_come_when_ordered() -> None:
    faults = Faults(error_on=frozenset({1}), truncate_on=frozenset({2}), die_after_requests=3)
    with FakeVllm(FakeConfig(faults=dataclasses.replace(faults, omit=frozenset({"logprobs"})))) as server:
        assert ask(server.base_url, user("Hi")).status_code == 500
        with pytest.raises(httpx.RemoteProtocolError):
            ask(server.base_url, user("Hi"))
        assert ask(server.base_url, user("Hi")).json()["choices"][0]["logprobs"] is None
        with pytest.raises(httpx.TransportError):
            ask(server.base_url, user("Hi"))
        with pytest.raises(httpx.ConnectError):
            HTTP.get(f"{server.base_url}/health")


def test_the_openai_sdk_reads_it() -> None:
    openai = pytest.importorskip("openai")
    with FakeVllm() as server, openai.OpenAI(base_url=f"{server.base_url}/v1", api_key="none") as client:
        answer = client.chat.completions.create(
            model="fake", messages=user("Ship A-1"), tools=TOOLS, tool_choice="required", logprobs=True
        )
        assert answer.choices[0].finish_reason == "tool_calls"
        assert json.loads(answer.choices[0].message.tool_calls[0].function.arguments)
        assert answer.usage.prompt_tokens_details.cached_tokens == 0
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="other", messages=user("Hi"))


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the stand-in program in its own session, and end its whole group afterwards."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **env: str) -> subprocess.Popen[str]:
        argv = [
            sys.executable,
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--model",
            str(tmp_path),
            *arguments,
        ]
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(
                argv,
                env=os.environ | {"PYTHONPATH": str(PROGRAM)} | env,
                stdout=pipe,
                stderr=pipe,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def free_port() -> int:
    with FakeVllm() as server:
        return server.port


def until_healthy(port: int) -> str:
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.ConnectError):
            assert HTTP.get(f"{url}/health").status_code == 200
            return url
        time.sleep(0.05)
    raise TimeoutError(url)


def test_the_program_serves_as_told_and_stops_at_a_signal(
    program: Callable[..., subprocess.Popen[str]],
) -> None:
    port = free_port()
    arguments = [
        "--port",
        str(port),
        "--served-model-name",
        "X",
        "--no-enable-prefix-caching",
        "--max-num-seqs",
        "1",
    ]
    process = program(*arguments, VLLM_API_KEY="k", VLLM_SERVER_DEV_MODE="1")
    url = until_healthy(port)
    assert HTTP.get(f"{url}/v1/models").status_code == 401
    config = HTTP.get(f"{url}/server_info", params={"config_format": "json"}).json()["vllm_config"]
    assert config["cache_config"]["enable_prefix_caching"] is False
    assert config["scheduler_config"]["max_num_seqs"] == 1
    process.terminate()
    log, _ = process.communicate(timeout=LONG_S)
    assert process.returncode == 0
    assert "Using FLASH_ATTN attention backend" in log


def test_a_dead_program_leaves_a_child_in_its_group(program: Callable[..., subprocess.Popen[str]]) -> None:
    port = free_port()
    process = program("--port", str(port), FAKE_VLLM_DIE_AFTER_REQUESTS="0")
    url = until_healthy(port)
    assert process.stdout is not None
    engine = next(found for line in process.stdout if (found := re.match(r"\(EngineCore pid=(\d+)\)", line)))
    with pytest.raises(httpx.TransportError):
        HTTP.post(f"{url}/v1/chat/completions", json={"messages": user("Hi")})
    assert process.wait(timeout=LONG_S) == 1
    assert os.getpgid(int(engine[1])) == process.pid


@pytest.mark.parametrize(
    ("arguments", "env", "code", "text"),
    [
        pytest.param(["--swap-space", "4"], {}, 2, "unrecognized arguments: --swap-space", id="unknown flag"),
        pytest.param(
            [], {"FAKE_VLLM_EXIT_CODE": "1", "FAKE_VLLM_EXIT_TEXT": "CUDA out of memory"}, 1, "CUDA", id="oom"
        ),
    ],
)
def test_the_program_fails_as_told(
    program: Callable[..., subprocess.Popen[str]],
    arguments: list[str],
    env: dict[str, str],
    code: int,
    text: str,
) -> None:
    process = program(*arguments, **env)
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == code
    assert text in errors
