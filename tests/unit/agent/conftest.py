"""An episode's context on a stand-in server that says what a script says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import run_records as made
from fake_vllm import FakeConfig, FakeVllm, Reply, Script

from agenteval.agent import EpisodeContext, Toolbox
from agenteval.client import (
    AsyncRecordingTransport,
    EpisodeOverError,
    EpisodeRecorder,
    Gate,
    RecordingTransport,
    RequestRules,
    TurnIdentity,
    open_connection,
)
from agenteval.records import StopReason, Turn
from agenteval.spec import TaskVariant

IDENTITY = TurnIdentity(run_id=made.RUN, boot_id=made.BOOT, episode_id=f"{made.RUN}/00000", kind="episode")


@dataclass
class Stage:
    """One episode: its server, context and record."""

    server: FakeVllm
    context: EpisodeContext
    recorder: EpisodeRecorder
    toolbox: Toolbox
    stored: list[Turn]

    def turns(self) -> list[Turn]:
        """All turns, the last included."""
        self.recorder.end_turn()
        return self.stored

    def calls(self) -> list[tuple[str, str, str]]:
        """Tool, arguments and id of every call, in the order in which they ran."""
        return [(call.tool, call.arguments, call.call_id) for _, call in self.recorder.calls]

    def sent(self) -> list[list[dict[str, Any]]]:
        """The messages of every request."""
        return [request["messages"] for request in self.server.requests]


@dataclass
class StageBuilder:
    """Makes stages, and closes what they opened."""

    opened: list[Any] = field(default_factory=list)

    def __call__(
        self,
        replies: Sequence[Reply],
        *,
        config: FakeConfig | None = None,
        variant: TaskVariant = made.VARIANT,
        **settings: Any,
    ) -> Stage:
        script = (Script("", tuple(replies)),) if replies else ()
        server = FakeVllm(config or FakeConfig(script=script))
        connection = open_connection(1)
        chosen = made.SETTINGS.model_copy(update=settings)
        stored: list[Turn] = []

        def hand_over(turn: Turn) -> Callable[[], None]:
            stored.append(turn)
            return lambda: None

        recorder = EpisodeRecorder(IDENTITY, hand_over)
        toolbox = Toolbox(variant, clock="2026-01-15T09:00:00Z", finish_tool=chosen.finish_tool, recorder=recorder)

        def check_over() -> None:
            if toolbox.is_finished:
                raise EpisodeOverError(StopReason.FINISH_TOOL, "the finish tool was called")
            if recorder.turns >= chosen.max_turns:
                raise EpisodeOverError(StopReason.MAX_TURNS, "enough")

        transport = RecordingTransport(
            connection=connection,
            gate=Gate(1),
            rules=RequestRules.of(made.contract(), made.plan(), model_name="fake", max_tokens=300),
            recorder=recorder,
            base_url=server.base_url,
            check_over=check_over,
        )
        http_client = httpx.Client(transport=transport)
        context = EpisodeContext(
            base_url=f"{server.base_url}/v1",
            api_key="none",
            model_name="fake",
            http_client=http_client,
            http_async_client=httpx.AsyncClient(transport=AsyncRecordingTransport(transport)),
            toolbox=toolbox,
            settings=chosen,
            start_messages=variant.messages,
            follow_ups=variant.follow_ups,
        )
        self.opened += [http_client, connection, server]
        return Stage(server, context, recorder, toolbox, stored)


@pytest.fixture
def stage() -> Iterator[StageBuilder]:
    builder = StageBuilder()
    yield builder
    for thing in builder.opened:
        thing.close()
