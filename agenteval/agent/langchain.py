"""Mocks as LangChain tools, for graphs built on `langchain-openai` and LangGraph's prebuilt agents."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from agenteval.agent.toolbox import Toolbox


class MockTool(BaseTool):
    """One tool of an episode's toolbox; arguments go to the mock unjudged, so that the model sees its own errors."""

    toolbox: Any
    args_schema: Any

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Answer a tool call, given as LangGraph's tool node gives it; plain arguments are answered too.

        `config` and `kwargs` are LangChain's: a mock has nothing to configure.
        """
        if not isinstance(input, dict) or input.get("type") != "tool_call":
            return self._run(**(input if isinstance(input, dict) else json.loads(input)))
        result = self.toolbox.call(self.name, _as_text(input["args"]), str(input["id"]))
        return ToolMessage(content=result, tool_call_id=str(input["id"]), name=self.name)

    def _run(self, **arguments: Any) -> str:
        return str(self.toolbox.call(self.name, _as_text(arguments), ""))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same for graphs that await; a mock never waits."""
        return self.invoke(input, config, **kwargs)


def _as_text(arguments: dict[str, Any]) -> str:
    """Arguments as JSON text; NaN stays, so that the mock refuses it in the model's sight."""
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def as_tools(toolbox: Toolbox) -> list[BaseTool]:
    """Every tool of a toolbox, in the task's order."""
    return [
        MockTool(
            name=mock.name,
            description=mock.description,
            args_schema=mock.parameters,
            toolbox=toolbox,
            # LangGraph's prebuilt agents end there, rather than ask the model again.
            return_direct=mock.name == toolbox.finish_tool,
        )
        for mock in toolbox.mocks.values()
    ]
