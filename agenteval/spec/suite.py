"""Suites and tasks, and the variants that a task unfolds into."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import Field, field_validator

from agenteval import expressions
from agenteval.digest import canonical_json, digest_json
from agenteval.loading import Frozen
from agenteval.spec.checks import Check
from agenteval.spec.tools import NAME_PATTERN, ToolMock

FINISH_ARGUMENT = "answer"
"""The one argument of the finish tool."""
DEFAULT_VARIANT = "base"
"""Name of the only variant of a task that declares none."""


class AgentSettings(Frozen):
    """How the agent of a suite is set up."""

    system_prompt: str
    """First message of every episode."""
    tool_choice: Literal["auto", "required"]
    """`required`: every turn calls a tool (guided decoding), which small models need; `auto`: the model
    decides."""
    max_turns: int = Field(ge=1, le=200)
    """Model calls before the episode ends without an answer; a task may set its own."""
    max_tokens: int = Field(ge=1)
    """Output tokens of one turn."""
    parallel_tool_calls: bool
    """Whether one turn may call several tools."""
    finish_tool: str | None = Field(pattern=NAME_PATTERN)
    """Name of the tool that ends the episode with its `answer`; null ends it with the first turn without a
    call."""
    graph: str | None = None
    """A LangGraph graph of one's own, as `package.module:factory`; null is the graph that agenteval
    brings."""


class Task(Frozen):
    """What the agent is asked, with which tools, in which world, and what must be true at the end."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique in the suite."""
    prompt: str
    """The user's message; `${vars.x}` stands for a variant's variable."""
    tools: tuple[str, ...] = Field(min_length=1)
    """Names of tools of the suite, in the order in which the model sees them."""
    world: dict[str, Any] = Field(default_factory=dict)
    """The world at the start; `${vars.x}` in its texts."""
    checks: tuple[Check, ...] = Field(min_length=1)
    """All must pass; `${vars.x}` in their texts."""
    tags: tuple[str, ...] = ()
    max_turns: int | None = Field(default=None, ge=1, le=200)
    """Replaces the suite's own."""
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Name to variables; each gives an episode of its own. Empty is one variant without variables."""

    @field_validator("prompt", "world")
    @classmethod
    def _is_template(cls, value: Any) -> Any:
        found = expressions.problems(value)
        if found:
            raise ValueError("; ".join(found))
        return value


class SuiteHead(Frozen):
    """`suite.yaml`: what holds for all tasks of a folder."""

    name: str = Field(pattern=NAME_PATTERN)
    description: str
    agent: AgentSettings
    files: tuple[str, ...] = ("*.yaml",)
    """Patterns of the files with tools and tasks, below the folder; read in order of path."""

    @field_validator("files")
    @classmethod
    def _stay_below(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            parts = PurePosixPath(pattern).parts
            if not parts or parts[0] == "/" or ".." in parts or any("**" in part and part != "**" for part in parts):
                raise ValueError(f"{pattern!r} is no pattern of files below the suite's folder, such as '*.yaml'")
        return value


class SuiteFile(Frozen):
    """A file of tools and tasks."""

    tools: tuple[ToolMock, ...] = ()
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVariant:
    """A task with one set of variables put in: what an episode attempts."""

    task: str
    variant: str
    prompt: str
    tools: tuple[ToolMock, ...]
    world: dict[str, Any]
    checks: tuple[Check, ...]
    tags: tuple[str, ...]
    max_turns: int


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
                "tools": [tool.model_dump(mode="json") for tool in self.tools],
                "variants": [_variant_fields(variant) for variant in self.variants],
            }
        )


def _variant_fields(variant: TaskVariant) -> dict[str, Any]:
    return {
        "task": variant.task,
        "variant": variant.variant,
        "prompt": variant.prompt,
        "tools": [tool.name for tool in variant.tools],
        "world": variant.world,
        "checks": [check.model_dump(mode="json") for check in variant.checks],
        "max_turns": variant.max_turns,
    }


def unfold(task: Task, tools: dict[str, ToolMock], agent: AgentSettings) -> tuple[TaskVariant, ...]:
    """The variants of a task, with their variables put in.

    Raises:
        expressions.ExpressionError: If a template names an unknown variable.
        pydantic.ValidationError: If a check is wrong once its variables are put in.
    """
    return tuple(_with_variables(task, name, tools, agent) for name in (task.variants or {DEFAULT_VARIANT: {}}))


def _with_variables(task: Task, variant: str, tools: dict[str, ToolMock], agent: AgentSettings) -> TaskVariant:
    names = {"vars": task.variants.get(variant, {})}
    checks = [
        type(check).model_validate_json(canonical_json(expressions.render(check.model_dump(mode="json"), names)))
        for check in task.checks
    ]
    return TaskVariant(
        task=task.name,
        variant=variant,
        prompt=expressions.as_text(expressions.render(task.prompt, names)),
        tools=tuple(tools[name] for name in task.tools),
        world=expressions.render(task.world, names),
        checks=tuple(checks),
        tags=task.tags,
        max_turns=task.max_turns or agent.max_turns,
    )
