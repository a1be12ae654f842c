"""Suites and tasks, and the variants that a task unfolds into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from agenteval.digest import digest_json
from agenteval.loading import Frozen, Many
from agenteval.spec.checks import Check
from agenteval.spec.faults import Fault
from agenteval.spec.file_patterns import file_pattern_problem
from agenteval.spec.functions import SuiteFunction
from agenteval.spec.templates import MAX_NAME_CHARACTERS, NAME_PATTERN, VarJson, VarText
from agenteval.spec.tools import ToolMock

FINISH_ARGUMENT = "answer"
"""The one argument of the finish tool."""
VARIANT_NAME_PATTERN = rf"^[a-zA-Z0-9][a-zA-Z0-9_-]{{0,{MAX_NAME_CHARACTERS - 1}}}$"
"""Names of variants, and the values of a matrix that name one."""
MAX_TURNS = 200
"""Most turns that an episode may be given."""
Turns = Annotated[int, Field(ge=1, le=MAX_TURNS)]


class AgentSettings(Frozen):
    """How the agent of a suite is set up."""

    system_prompt: str
    """First message of every episode."""
    tool_choice: Literal["auto", "required"]
    """`required`: every turn calls a tool (guided decoding), which small models need; `auto`: the model
    decides."""
    max_turns: Turns
    """Model calls before the episode ends without an answer; a task may set its own."""
    max_tokens: int = Field(ge=1)
    """Output tokens of one turn; a task may set its own."""
    parallel_tool_calls: bool
    """Whether one turn may call several tools; a task may set its own."""
    finish_tool: str | None = Field(pattern=NAME_PATTERN)
    """Name of the tool that ends the episode with its `answer`; null ends it with the first turn without a
    call."""
    graph: str | None = None
    """A LangGraph graph of one's own, as `package.module:factory`; null is the graph that agenteval
    brings."""


class Message(Frozen):
    """One message that an episode starts with."""

    role: Literal["system", "user", "assistant"]
    """Who says it; a system message stands first, and the last one is the user's."""
    content: VarText
    """`${vars.x}` stands for a variant's variable."""


def _tool_form(value: Any) -> str:
    return "name" if isinstance(value, str) else "mock"


ToolReference = Annotated[
    Annotated[str, Tag("name")] | Annotated[ToolMock, Tag("mock")],
    Discriminator(_tool_form),
]
"""A tool of the suite by its name, or one written out for this task alone."""


class Task(Frozen):
    """What the agent is asked, with which tools, in which world, and what must be true at the end."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique in the suite."""
    prompt: VarText | None = None
    """The user's message; `${vars.x}` stands for a variant's variable."""
    messages: Many[Message] = ()
    """In place of `prompt`: the messages that the episode starts with, the last one the user's; a first one with role
    `system` replaces the suite's system prompt."""
    follow_ups: Many[VarText] = ()
    """Messages of the user's, each sent when the agent has answered what came before."""
    tools: Many[ToolReference] = ()
    """Tools in the order in which the model sees them; none: the suite's default tools."""
    world: dict[str, VarJson] = Field(default_factory=dict)
    """The world at the start; `${vars.x}` in its texts."""
    faults: Many[Fault] = ()
    """What goes wrong at which calls."""
    checks: Many[Check] = Field(min_length=1)
    """All must pass; `${vars.x}` in their texts."""
    tags: Many[str] = ()
    """Words by which tasks are chosen; the suite's stand before them."""
    max_turns: Turns | None = None
    """Replaces the suite's own."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Replaces the suite's own."""
    parallel_tool_calls: bool | None = None
    """Replaces the suite's own."""
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Name to variables; each gives an episode of its own. Empty is one variant without variables."""
    matrix: dict[str, list[Any] | dict[str, Any]] = Field(default_factory=dict)
    """Variable to its values, as a list of words and numbers or as name to value; every combination of them and of the
    variants gives an episode of its own."""

    @model_validator(mode="after")
    def _starts_in_one_way(self) -> Task:
        if (self.prompt is None) is (not self.messages):
            raise ValueError("a task has either a prompt or messages")
        if self.messages and self.messages[-1].role != "user":
            raise ValueError("the last of the messages must be the user's")
        if any(message.role == "system" for message in self.messages[1:]):
            raise ValueError("a system message stands first")
        return self


class SuiteHead(Frozen):
    """`suite.yaml`: what holds for all tasks of a folder."""

    name: str = Field(pattern=NAME_PATTERN)
    """What reports call the suite."""
    description: str
    """What it is for, in a sentence; the model does not see it."""
    agent: AgentSettings
    """How the agent of every task is set up."""
    files: Many[str] = ("*.yaml",)
    """Patterns of the files with tools and tasks, below the folder, such as `*.yaml` or `**/*.yaml`; read in order of
    path."""
    tools: Many[str] = ()
    """Names of the tools of tasks that name none of their own."""
    tags: Many[str] = ()
    """Tags of every task, before its own."""

    @field_validator("files")
    @classmethod
    def _stay_below(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            problem = file_pattern_problem(pattern)
            if problem is not None:
                raise ValueError(problem)
        return value


class SuiteFile(Frozen):
    """A file of tools and tasks."""

    tools: Many[ToolMock] = ()
    """Tools that tasks of any file may name."""
    tasks: Many[Task] = ()
    """In the order in which they run, after those of the files before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVariant:
    """A task with one set of variables put in: what an episode attempts."""

    task: str
    variant: str
    vars: dict[str, Any]
    messages: tuple[Message, ...]
    """What the episode starts with, the system prompt first."""
    follow_ups: tuple[str, ...]
    tools: tuple[ToolMock, ...]
    world: dict[str, Any]
    faults: tuple[Fault, ...]
    checks: tuple[Check, ...]
    tags: tuple[str, ...]
    settings: AgentSettings
    """The suite's, with what the task replaces."""
    functions: Mapping[str, SuiteFunction] = field(default_factory=dict)
    """What its tools and checks name, by that name."""

    @property
    def label(self) -> str:
        """What people call it."""
        return f"{self.task}/{self.variant}"

    @property
    def prompt(self) -> str:
        """The user's message that the episode starts with."""
        return self.messages[-1].content

    def fields(self) -> dict[str, Any]:
        """All that decides an episode, as JSON; tools by name and by the hash of what they are."""
        return {
            "task": self.task,
            "variant": self.variant,
            "vars": self.vars,
            "messages": [[message.role, message.content] for message in self.messages],
            "follow_ups": list(self.follow_ups),
            "tools": [[tool.name, tool.digest] for tool in self.tools],
            "world": self.world,
            "faults": [fault.model_dump(mode="json") for fault in self.faults],
            "checks": [check.model_dump(mode="json") for check in self.checks],
            "settings": self.settings.model_dump(mode="json"),
            "functions": {name: function.source_digest for name, function in sorted(self.functions.items())},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A folder of tasks, loaded and checked."""

    path: Path
    name: str
    description: str
    agent: AgentSettings
    tools: tuple[ToolMock, ...]
    variants: tuple[TaskVariant, ...]
    """Every variant of every task, in the order in which they run."""

    def digest(self) -> str:
        """Hash of all that the agent sees and is judged by, in order; file names and layout do not matter."""
        return digest_json(
            {
                "agent": self.agent.model_dump(mode="json"),
                "tools": [tool.digest for tool in self.tools],
                "variants": [variant.fields() for variant in self.variants],
            }
        )
