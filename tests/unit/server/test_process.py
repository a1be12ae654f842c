"""A managed server: started, watched, read and ended with its whole group, whatever happens to it or to us."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from patience import LONG_S, does_not_hang

from agenteval.errors import InputError, ServerStartError, StoreUnwritableError
from agenteval.launch import LaunchPlan
from agenteval.server import ManagedServer, StartOptions

from .conftest import PROGRAM, group_members

Plans = Callable[..., LaunchPlan]


def quiet(_phase: str, _waited_s: float) -> None:
    """Nobody watches."""


def start_failure(plan: LaunchPlan, options: StartOptions) -> ServerStartError:
    """How a start that must fail failed; nothing of it may be left."""
    with pytest.raises(ServerStartError) as failure:
        ManagedServer(plan, options, quiet)
    assert list((options.cache_dir / "boots").iterdir()) == []
    return failure.value


def is_gone_soon(leader: int) -> bool:
    """Whether a group is empty before long."""
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        if not group_members(leader):
            return True
        time.sleep(0.05)
    return False


def commands() -> dict[int, str]:
    """Command lines of all processes, by pid."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found[int(path.parent.name)] = path.read_text(errors="replace").replace("\0", " ")
    return found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ManagedServer, StartOptions, list[str]]]:
    """One healthy server for the tests that only look, started among secrets."""
    folder = tmp_path_factory.mktemp("shared")
    options = StartOptions(
        python=Path(sys.executable), log_path=folder / "boot.log", cache_dir=folder / "cache", timeout_s=30
    )
    plan = LaunchPlan(
        argv=("-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--host", "127.0.0.1"),
        env={"VLLM_SERVER_DEV_MODE": "1", "FAKE_VLLM_START_DELAY_S": "0.6"},
    )
    secrets = {"HF_TOKEN": "hush", "AWS_ACCESS_KEY_ID": "hush", "MY_PASSWD": "hush", "VLLM_PORT": "hush"}
    phases: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**secrets, "PYTHONPATH": str(PROGRAM), "HARMLESS": "kept"}.items():
            patch.setenv(name, value)
        server = ManagedServer(plan, options, lambda phase, _waited_s: phases.append(phase))
    with server:
        yield server, options, phases


Shared = tuple[ManagedServer, StartOptions, list[str]]


def test_healthy_server_has_facts(shared: Shared) -> None:
    facts = shared[0].facts
    assert (facts.version, facts.log["attention_backend"]) == ("0.32.0", "FLASH_ATTN")
    assert facts.cache_config["enable_prefix_caching"] == "True"
    assert "cache_salt" in facts.request_fields


def test_start_reports_its_phases_in_order(shared: Shared) -> None:
    seen = list(dict.fromkeys(shared[2]))
    assert (seen[0], seen[-1]) == ("import the engine", "ready")
    assert "prepare the cache" in seen


def test_key_is_in_no_command_line(shared: Shared) -> None:
    members = group_members(shared[0]._guard.pid)
    assert len(members) >= 3
    assert not any(shared[0].api_key in command for command in members.values())


def test_key_is_in_no_file_and_no_fact(shared: Shared) -> None:
    server, options, _ = shared
    kept = [path.read_text() for path in options.log_path.parent.rglob("*") if path.is_file()]
    assert len(kept) >= 2
    assert not any(server.api_key in text for text in [*kept, json.dumps(server.facts.as_json())])


def test_secrets_of_the_user_are_not_passed_on(shared: Shared) -> None:
    passed = ""
    for pid in group_members(shared[0]._guard.pid):
        passed += Path(f"/proc/{pid}/environ").read_text()
    assert "HARMLESS=kept" in passed
    assert "hush" not in passed


def test_requests_need_the_boots_key(shared: Shared) -> None:
    assert httpx.get(f"{shared[0].base_url}/v1/models", trust_env=False).status_code == 401


def test_stop_ends_the_whole_group_soon(plan: Plans, options: StartOptions) -> None:
    server = ManagedServer(plan(), replace(options, terminate_wait_s=LONG_S), quiet)
    leader = server._guard.pid
    assert any("sleep" in command for command in group_members(leader).values())
    began = time.monotonic()
    assert server.stop() == "stopped"
    assert group_members(leader) == {}
    assert time.monotonic() - began < LONG_S
    assert list((options.cache_dir / "boots").iterdir()) == []
    assert server.stop() == "stopped", "a second stop says the same"


def test_server_that_ignores_terminate_is_killed(plan: Plans, options: StartOptions) -> None:
    server = ManagedServer(plan(IGNORE_SIGTERM="1"), replace(options, terminate_wait_s=1.0), quiet)
    began = time.monotonic()
    server.stop()
    assert group_members(server._guard.pid) == {}
    assert time.monotonic() - began > 1.0


def test_kill_ends_the_whole_group_at_once(plan: Plans, options: StartOptions) -> None:
    server = ManagedServer(plan(IGNORE_SIGTERM="1"), replace(options, terminate_wait_s=LONG_S), quiet)
    began = time.monotonic()
    server.kill()
    server.stop()
    assert group_members(server._guard.pid) == {}
    assert time.monotonic() - began < LONG_S


def test_server_whose_guard_is_killed_ends_too(plan: Plans, options: StartOptions) -> None:
    with ManagedServer(plan(), options, quiet) as server:
        os.kill(server._guard.pid, signal.SIGKILL)
        assert is_gone_soon(server._guard.pid)
        assert not server.is_alive()


def test_server_that_dies_is_noticed(plan: Plans, options: StartOptions) -> None:
    with ManagedServer(plan(), options, quiet) as server:
        [pid] = [
            pid for pid, line in group_members(server._guard.pid).items() if "guard.py" not in line and "-m" in line
        ]
        os.kill(pid, signal.SIGKILL)
        assert is_gone_soon(server._guard.pid)
        assert server.stop() == "had exited by itself"
        assert "exited with status -9" in server.last_log_lines()


def test_terminate_reaches_a_server_that_still_loads(plan: Plans, options: StartOptions) -> None:
    # The guard ignores terminate, and must not hand that down: before vLLM sets its own handler, nobody else would.
    script = (
        "import signal as s; ignored = [n for n in (s.SIGTERM, s.SIGINT) if s.getsignal(n) == s.SIG_IGN];"
        "print('ignored:', ignored); raise SystemExit(3)"
    )
    error = start_failure(LaunchPlan(argv=("-c", script), env={}), options)
    assert "ignored: []" in error.last_lines


def test_runner_that_is_killed_takes_its_server_along(plan: Plans, options: StartOptions) -> None:
    code = f"""
        import os, signal, sys, time
        from pathlib import Path
        from agenteval.launch import LaunchPlan
        from agenteval.server import ManagedServer, StartOptions
        plan = LaunchPlan(argv={plan().argv!r}, env={{}})
        options = StartOptions(python=Path(sys.executable), log_path=Path({str(options.log_path)!r}),
                               cache_dir=Path({str(options.cache_dir)!r}), timeout_s=30)
        server = ManagedServer(plan, options, lambda phase, waited_s: None)
        print(server._guard.pid, flush=True)
        time.sleep(600)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROGRAM), *sys.path])}
    runner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, env=environment
    )
    with runner:
        assert runner.stdout is not None
        leader = int(runner.stdout.readline())
        assert group_members(leader)
        runner.kill()
    assert is_gone_soon(leader)


def test_taken_port_is_refused_before_anything_starts(plan: Plans, options: StartOptions) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(InputError, match=rf"Port {port} is taken"):
            ManagedServer(plan(), replace(options, port=port), quiet)
    assert not options.log_path.exists()


STRANGER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
"""Another program on a port, which answers every path with 200 and asks for no key."""
FORESTALLED = """
import os, pathlib, runpy, socket, subprocess, sys, time

port, taken = sys.argv[-1], pathlib.Path(os.environ["FAKE_VLLM_TAKEN"])
if not taken.exists():
    taken.write_text(port)
    subprocess.Popen([sys.executable, "-c", os.environ["FAKE_VLLM_STRANGER"], port])
    with socket.socket() as asking:
        while asking.connect_ex(("127.0.0.1", int(port))):
            time.sleep(0.02)
runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__", alter_sys=True)
"""
"""A server whose port is taken by the stranger between the choice of the port and the bind, the first time."""


def test_stranger_on_the_port_is_not_taken_for_the_server(plan: Plans, options: StartOptions, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    usual = plan(START_DELAY_S="0.5", STRANGER=STRANGER, TAKEN=str(taken))
    with ManagedServer(replace(usual, argv=("-c", FORESTALLED, *usual.argv[2:])), options, quiet) as server:
        assert not server.base_url.endswith(f":{taken.read_text()}"), "the second try, on a port that was free"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        pytest.param(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "The GPU is full",
            id="GPU full",
        ),
        pytest.param(
            "ValueError: Free memory on device cuda:0 (1.0/139.7 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 125.7 GiB). Decrease GPU memory utilization or reduce GPU memory used.",
            "set engine.gpu_memory_utilization below the free share",
            id="GPU in use",
        ),
        pytest.param(
            "ValueError: To serve at least one request with the model's max seq len (8192), (9 GiB KV cache is needed, "
            "which is larger than the available KV cache memory (1 GiB).",
            "Lower engine.max_model_len",
            id="cache too small",
        ),
        pytest.param(
            "ValueError: Available memory on node 0 (1/14 GiB) on kv cache allocation is less than requested memory "
            "for kv (2 GiB).",
            "set engine.kv_cache_memory_bytes lower",
            id="CPU memory",
        ),
        pytest.param(
            "ValueError: bad config\nRuntimeError: Engine core initialization failed. See root cause above.",
            "names this cause: ValueError: bad config",
            id="cause far above",
        ),
        pytest.param("goodbye", "names no cause", id="no cause"),
    ],
)
def test_exit_at_the_start_shows_the_log_and_advice(plan: Plans, options: StartOptions, text: str, advice: str) -> None:
    error = start_failure(plan(EXIT_CODE="1", EXIT_TEXT=text), options)
    assert error.log_path == options.log_path
    assert text.splitlines()[-1] in error.last_lines
    assert advice in str(error)
    assert str(options.log_path) in str(error)


def test_missing_interpreter_is_a_start_error(plan: Plans, options: StartOptions) -> None:
    error = start_failure(plan(), replace(options, python=Path("/no/python")))
    assert "No such file or directory: '/no/python'" in str(error)


@does_not_hang
@pytest.mark.parametrize("kind", ["1", "503"], ids=["never listens", "listens and says 503"])
def test_server_that_is_never_healthy_is_given_up(plan: Plans, options: StartOptions, kind: str) -> None:
    error = start_failure(plan(NEVER_HEALTHY=kind), replace(options, timeout_s=1.5))
    assert error.waited_s == 1.5
    assert "Raise engine.start_timeout_s" in str(error)


def test_log_that_cannot_be_written_is_named(plan: Plans, options: StartOptions, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritableError, match=r"boot\.log"):
        ManagedServer(plan(), replace(options, log_path=tmp_path / "file/boot.log"), quiet)


def test_cache_that_cannot_be_written_leaves_no_server(plan: Plans, options: StartOptions, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    usual = plan()
    with pytest.raises(InputError, match="AGENTEVAL_CACHE"):
        ManagedServer(usual, replace(options, cache_dir=tmp_path / "file"), quiet)
    assert options.log_path.exists(), "it had been started"
    folder = usual.argv[usual.argv.index("--model") + 1]
    assert not any(folder in command for command in commands().values())
