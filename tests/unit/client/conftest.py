"""A recorded seam to a stand-in server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import run_records as made
from fake_vllm import FakeConfig, FakeVllm

from agenteval.client import EpisodeRecorder, Gate, RecordingTransport, RequestRules, TurnIdentity, open_connection
from agenteval.records import Turn

IDENTITY = TurnIdentity(run_id=made.RUN, boot_id=made.BOOT, episode_id=f"{made.RUN}/00000", kind="episode")


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS = [tool("look", id={"type": "integer"}), tool("finish", answer={"type": "string"})]


def user(text: str = "Look at order A-7.") -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


@dataclass
class Seam:
    """One episode's transport, what it handed over, and what it waited for."""

    server: FakeVllm
    transport: RecordingTransport
    recorder: EpisodeRecorder
    stored: list[Turn]
    waits: list[int]
    http: httpx.Client

    def ask(self, messages: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
        body = {"messages": messages or user(), **fields}
        answer: dict[str, Any] = self.http.post("/chat/completions", json=body).json()
        return answer

    def turns(self) -> list[Turn]:
        """All turns, the last included."""
        self.recorder.end_turn()
        return self.stored


@dataclass
class Opener:
    """Makes seams, and closes what they opened."""

    opened: list[Any] = field(default_factory=list)

    def __call__(
        self,
        config: FakeConfig | None = None,
        *,
        server: FakeVllm | None = None,
        rules: RequestRules | None = None,
        concurrency: int = 1,
        check_over: Callable[[], None] = lambda: None,
    ) -> Seam:
        server = server or FakeVllm(config)
        connection = open_connection(concurrency)
        stored: list[Turn] = []
        waits: list[int] = []

        def hand_over(turn: Turn) -> Callable[[], None]:
            stored.append(turn)
            return lambda: waits.append(turn.turn)

        recorder = EpisodeRecorder(IDENTITY, hand_over)
        transport = RecordingTransport(
            connection=connection,
            gate=Gate(concurrency),
            rules=rules or RequestRules.of(made.contract(), made.plan(), model_name="fake", max_tokens=200),
            recorder=recorder,
            base_url=server.base_url,
            check_over=check_over,
        )
        http = httpx.Client(transport=transport, base_url=f"{server.base_url}/v1")
        self.opened += [http, connection, server]
        return Seam(server, transport, recorder, stored, waits, http)


@pytest.fixture
def seam() -> Iterator[Opener]:
    opener = Opener()
    yield opener
    for thing in opener.opened:
        thing.close()
    left = [thread for thread in threading.enumerate() if thread.name == "fake-vllm"]
    assert not left
