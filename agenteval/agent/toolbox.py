"""The tools of one episode: its world, its clock, and a record of every call."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from agenteval import tools
from agenteval.client import EpisodeRecorder
from agenteval.digest import canonical_json
from agenteval.spec import TaskVariant, ToolMock

ORDER_WAIT_S = 60.0
"""A call waits this long for the calls before it in its turn; an agent that drops one must not hang."""


class Toolbox:
    """Answers an episode's tool calls one at a time, in the order in which the model wrote them."""

    def __init__(self, variant: TaskVariant, *, clock: str, finish_tool: str | None, recorder: EpisodeRecorder) -> None:
        """Open the tools of a task variant.

        Args:
            variant: Whose tools and world.
            clock: ISO 8601 instant that the mocks see.
            finish_tool: Name of the tool that ends the episode; None for none.
            recorder: Takes every call.
        """
        # The finish tool comes first: small models call a tool that stands last in their prompt far less often.
        finish = () if finish_tool is None else (tools.finish_mock(finish_tool),)
        self._kit = tools.ToolKit.of(variant, *finish)
        self._recorder = recorder
        self._state = tools.State.begin(world=variant.world, clock=clock)
        self._turn_over = threading.Condition()
        self.follow_ups_left = len(variant.follow_ups)
        """Messages that the user still has to send."""
        self.finish_tool = finish_tool
        self.answer: str | None = None
        """What the finish tool was given; None until it has been called with success."""

    @property
    def world(self) -> dict[str, Any]:
        """The world now: a copy, whose keys stand in one order."""
        copied: dict[str, Any] = json.loads(canonical_json(self._state.world))
        return copied

    @property
    def mocks(self) -> Mapping[str, ToolMock]:
        """Copies of the tools, the finish tool first, then in the task's order."""
        return {name: mock.model_copy(deep=True) for name, mock in self._kit.mocks.items()}

    @property
    def is_finished(self) -> bool:
        """Whether the finish tool has been called with success."""
        return self.answer is not None

    def resume(self) -> None:
        """Take the finish back, since the user's next message follows."""
        self.answer, self.follow_ups_left = None, self.follow_ups_left - 1

    def schemas(self) -> list[dict[str, Any]]:
        """The tools as the chat completions API declares them, in the task's order."""
        return [tools.openai_schema(mock) for mock in self.mocks.values()]

    def call(self, name: str, arguments: str, call_id: str) -> str:
        """Answer one call with a text for the model; never raises for what the model wrote.

        Args:
            name: The tool, known or not.
            arguments: Raw JSON text.
            call_id: As the response gave it; its place decides the order among the turn's calls.
        """
        with self._turn_over:
            place = _place(call_id)
            self._turn_over.wait_for(lambda: self._recorder.calls_this_turn() >= place, timeout=ORDER_WAIT_S)
            request = tools.CallRequest(
                call=self._recorder.calls_this_turn(), call_id=call_id, tool=name, arguments=arguments
            )
            made, self._state = tools.record_call(self._kit, request, self._state)
            answer = tools.final_answer(made, self.finish_tool)
            self.answer = self.answer if answer is None else answer
            self._recorder.add_tool_call(made)
            self._turn_over.notify_all()
            return made.result


def _place(call_id: str) -> int:
    """Place of a call in its turn, from its id; an id that is not ours does not wait."""
    suffix = call_id.rpartition("_")[2]
    return int(suffix) if call_id.startswith("call_") and suffix.isdigit() else 0
