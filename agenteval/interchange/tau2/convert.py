"""A tau2-bench domain -> a draft of a suite."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval import expressions
from agenteval.interchange.checks import MAX_EXPECTED_CALLS, TOO_MANY_CALLS, without_templates
from agenteval.interchange.draft import FIXED_RESULT_REASON, Draft, mock, observed_mock
from agenteval.interchange.names import fitting_name
from agenteval.interchange.report import EVERY
from agenteval.interchange.schemas import inferred, widened
from agenteval.interchange.tau2.criteria import ToolNames, checks_of, note_untold_texts
from agenteval.interchange.tau2.files import Domain, read_domain
from agenteval.interchange.tau2.models import Action, Description, Tau2Task, ToolCall
from agenteval.interchange.tau2.prompt import messages_of
from agenteval.interchange.tau2.tool_code import ToolCode

MAPPED = (
    ("user_scenario.instructions", "prompt: all that the simulated user was told, in one message"),
    ("initial_state.message_history", "messages: their texts, before the prompt"),
    ("initial_state.initialization_data.agent_data, db.json or db.toml", "world"),
    ("evaluation_criteria.actions of the assistant's", "called checks with the arguments in compare_args"),
    ("evaluation_criteria.communicate_info", "answer checks"),
    ("evaluation_criteria.reward_basis", "which of these become checks"),
    ("policy.md", "system_prompt"),
    ("tools.py", "names, descriptions and parameters of the tools; which of them write"),
    ("arguments of all calls", "parameters of tools without a tools.py"),
    ("id, user_scenario.instructions.domain", "tags"),
)
"""What of the format goes where."""
MAX_TURNS = 100
"""The benchmark ends an episode after 200 messages, the user's and the tools' included."""
MAX_WORLD_CHARACTERS = 300_000
"""A larger world is left out: each task has its own."""
MAX_WORLDS_CHARACTERS = 5_000_000
"""A database that would take more in all tasks together is left out: no mock reads it."""
_PLAIN_PROMPT = "You help the user by calling tools. When the work is done, answer with what the user wants to know."
_NO_CHECK = "nothing of its criteria is left that a check could ask"
_NO_TOOL = "a task here needs a tool, and nothing beside or in the tasks names one"
_ALWAYS_PASSED = "it has no evaluation_criteria: in the benchmark every agent passes it"
_IDLE = "an agent that calls nothing passes, as in the benchmark: only calls that must not be made are checked"
_EVERY_TASK = {
    "user_scenario": "there is no simulated user here: one message says all, also what would be told only when asked",
    "evaluation_criteria.actions[].action_id": "checks have no names",
    "initial_state.message_history[] id, turn_idx, timestamp, requestor, error": "messages here are a role and a text",
    "limits": f"not in the format: {MAX_TURNS} turns a task, and the tokens of a turn, are agenteval's choice",
}
"""Place in the format to what holds for every task."""
_UNUSED_FIELDS = {
    "ticket": "for the benchmark's mode without a user, whose agent has the user's tools too",
    "issues": "notes of the benchmark's authors",
    "required_documents": "documents of a knowledge base that is not imported",
    "user_tools": "tools of the simulated user; there is no such user here",
}
"""Field of a task to why nothing here is made of it."""


def draft_of(path: Path) -> Draft:
    """Read a domain and draft its suite.

    Raises:
        InputError: If there is no tasks file.
        FileProblemsError: With every problem of every file.
    """
    domain = read_domain(path)
    draft = Draft(
        name=fitting_name(f"tau2-{domain.name}", prefix="tau2"),
        description=f"Imported from the tau2-bench domain {domain.name}; IMPORT.md says what is different.",
        system_prompt=domain.policy or _PLAIN_PROMPT,
        max_turns=MAX_TURNS,
        found=len(domain.tasks),
    )
    _note_the_domain(domain, draft)
    names = _add_tools(domain, draft)
    database = _usable_database(domain, draft)
    for task in domain.tasks:
        _add_task(task, names, database, draft)
    return draft


def _note_the_domain(domain: Domain, draft: Draft) -> None:
    for place, reason in _EVERY_TASK.items():
        draft.lose(EVERY, place, reason)
    if not domain.policy:
        draft.lose(EVERY, "policy.md", "there is none beside the tasks: the system prompt is a plain one")
    for name in domain.unread:
        draft.lose(EVERY, name, "a file or folder beside the tasks that is not read")


def _add_tools(domain: Domain, draft: Draft) -> ToolNames:
    """The tools of all tasks: those of the code, and those that only calls show."""
    calls = _observed_calls(domain)
    code = {tool.name: tool for tool in domain.tools if tool.is_offered or tool.name in calls}
    names: dict[str, str] = {}
    for name in (*code, *(name for name in calls if name not in code)):
        fitting = fitting_name(name, prefix="tool", taken=list(names.values()))
        if fitting != name:
            draft.lose(name, "name", f"the tool is named {fitting} here")
        names[name] = fitting
        if name in code:
            added = _documented_tool(code[name], fitting, calls.get(name, []), draft)
        else:
            draft.lose(
                name, "parameters", "inferred from calls: no tools.py describes it, and what no call gives is missing"
            )
            added = observed_mock(fitting, name, calls[name])
        draft.lose(name, "behaviour", FIXED_RESULT_REASON)
        draft.tools.append(added)
    for tool in domain.tools:
        if tool.name not in code:
            draft.lose(tool.name, "(tool)", "the agent would have to discover it first; it is left out")
    draft.default_tools = list(names.values())
    writing = frozenset(tool.name for tool in domain.tools if tool.changes_state) if domain.has_tool_code else None
    return ToolNames(by_source=names, writing=writing)


def _documented_tool(code: ToolCode, name: str, calls: list[dict[str, Any]], draft: Draft) -> dict[str, Any]:
    if not code.is_offered:
        draft.lose(
            code.name, "is_discoverable_tool", "the agent would have to discover it first; here it has it at once"
        )
    parameters = copy.deepcopy(code.parameters)
    for argument in code.untyped:
        values = [call[argument] for call in calls if argument in call]
        parameters["properties"][argument] = {**inferred(values), **parameters["properties"][argument]}
        reason = "its type is a class of the benchmark; " + (
            "inferred from calls" if values else "every value is allowed"
        )
        draft.lose(code.name, f"parameters.{argument}", reason)
    parameters = widened(parameters, calls, lambda place, reason: draft.lose(code.name, place, reason))
    return mock(name, code.description, parameters)


def _observed_calls(domain: Domain) -> dict[str, list[dict[str, Any]]]:
    """Tool of the assistant's to the arguments of every call in the files, in the order of first use."""
    calls: dict[str, list[dict[str, Any]]] = {}
    for task in domain.tasks:
        made: list[Action | ToolCall] = [call for message in task.history for call in message.tool_calls or ()]
        for call in [*task.actions, *made]:
            if call.requestor == "assistant":
                calls.setdefault(call.name, []).append(call.arguments)
    return calls


def _usable_database(domain: Domain, draft: Draft) -> dict[str, Any]:
    if domain.database is None:
        draft.lose(EVERY, "db.json", "there is none beside the tasks: worlds hold what the tasks themselves say")
        return {}
    size = len(json.dumps(domain.database, ensure_ascii=False))
    if size <= MAX_WORLD_CHARACTERS and size * len(domain.tasks) <= MAX_WORLDS_CHARACTERS:
        return domain.database
    reason = f"{size:,} characters for each of {len(domain.tasks):,} worlds are too many; no mock would read them"
    draft.lose(EVERY, domain.database_file or "db.json", reason)
    return {}


def _add_task(task: Tau2Task, names: ToolNames, database: Mapping[str, Any], draft: Draft) -> None:
    source = str(task.id)
    draft.lose_unknown(source, task)
    _note_fields(task, source, draft)
    if len(task.actions) > MAX_EXPECTED_CALLS:
        draft.leave_out(source, TOO_MANY_CALLS)
        return
    checks = checks_of(task, source, names, draft)
    reason = _why_left_out(task, checks, names)
    if reason is not None:
        draft.leave_out(source, reason)
        return
    if all(check["kind"] == "not_called" for check in checks):
        draft.lose(source, "evaluation_criteria.actions", _IDLE)
    name = fitting_name(source, prefix="task", taken=draft.tasks)
    instructions = task.user_scenario.instructions
    domain = None if isinstance(instructions, str) else instructions.domain
    messages = messages_of(task, source, draft)
    note_untold_texts(task, source, "\n".join([draft.system_prompt, *expressions.texts(messages)]), draft)
    draft.ids[name] = source
    draft.tasks[name] = {
        "name": name,
        **messages,
        "world": without_templates(_world(task, source, database, draft)),
        "checks": checks,
        "tags": [f"id:{source}", *([f"domain:{domain}"] if domain else [])],
    }


def _why_left_out(task: Tau2Task, checks: Sequence[Any], names: ToolNames) -> str | None:
    if task.evaluation_criteria is None:
        return _ALWAYS_PASSED
    if not checks:
        return _NO_CHECK
    return None if names.by_source else _NO_TOOL


def _note_fields(task: Tau2Task, source: str, draft: Draft) -> None:
    for name in Description.model_fields:
        if getattr(task.description, name, None):
            draft.lose(source, f"description.{name}", "tasks here have no notes")
    for name, reason in _UNUSED_FIELDS.items():
        if getattr(task, name):
            draft.lose(source, name, reason)
    state = task.initial_state
    if state is None:
        return
    for number, _ in enumerate(state.initialization_actions or ()):
        draft.lose(
            source,
            f"initial_state.initialization_actions[{number}]",
            "a call of the benchmark's code before the start; the world is as it was before",
        )
    if state.initialization_data is not None and state.initialization_data.user_data:
        draft.lose(
            source,
            "initial_state.initialization_data.user_data",
            "the simulated user's own state; there is no such user",
        )


def _world(task: Tau2Task, source: str, database: Mapping[str, Any], draft: Draft) -> dict[str, Any]:
    state = task.initial_state
    changes = None if state is None or state.initialization_data is None else state.initialization_data.agent_data
    world = _merged(database, changes) if changes else dict(database)
    if len(json.dumps(world, ensure_ascii=False)) <= MAX_WORLD_CHARACTERS:
        return world
    reason = f"a world of more than {MAX_WORLD_CHARACTERS:,} characters; it is empty instead"
    draft.lose(source, "initial_state.initialization_data.agent_data", reason)
    return {}


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Objects are merged key by key, as the benchmark does; everything else is replaced."""
    merged = dict(old)
    for key, value in new.items():
        inner = merged.get(key)
        merged[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged
