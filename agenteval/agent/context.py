"""What a graph gets of its episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx

from agenteval.agent.toolbox import Toolbox
from agenteval.spec import AgentSettings, Message

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from openai import OpenAI


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeContext:
    """The recorded client and the tools, bound to one episode; a graph of one's own is made from it."""

    base_url: str
    """Of the server, with `/v1`."""
    api_key: str
    model_name: str
    """The served name; requests must use it."""
    http_client: httpx.Client
    """Records every request; give it to whatever talks to the model (`ChatOpenAI(http_client=…)`)."""
    http_async_client: httpx.AsyncClient
    """The same for code that awaits."""
    toolbox: Toolbox
    settings: AgentSettings
    """The suite's, with what the task replaces."""
    start_messages: tuple[Message, ...]
    """What the episode starts with: the system prompt first, the user's message last."""
    follow_ups: tuple[str, ...] = ()
    """What the user says next, each after an answer; `run_agent` sends them, a graph need not know of them."""

    @property
    def prompt(self) -> str:
        """The user's message."""
        return self.start_messages[-1].content

    @property
    def max_turns(self) -> int:
        """Model calls before the episode ends without an answer."""
        return self.settings.max_turns

    def openai(self) -> OpenAI:
        """An `openai` client that is recorded; it does not retry, since a retry is another turn."""
        from openai import OpenAI

        # openai 3 names httpx2 in its types and takes an httpx client as before; langchain-openai gives it one.
        http_client = cast(Any, self.http_client)
        return OpenAI(base_url=self.base_url, api_key=self.api_key, http_client=http_client, max_retries=0)

    def langchain_tools(self) -> list[BaseTool]:
        """The episode's tools for LangChain and LangGraph's prebuilt nodes."""
        from agenteval.agent.langchain import as_tools

        return as_tools(self.toolbox)

    def messages(self) -> list[dict[str, Any]]:
        """The messages that every episode of the task starts with."""
        return [message.model_dump() for message in self.start_messages]
