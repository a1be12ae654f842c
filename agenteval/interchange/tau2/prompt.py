"""What tau2-bench tells its simulated user -> the messages that an episode starts with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agenteval.interchange.checks import without_templates
from agenteval.interchange.draft import Draft, starting_messages
from agenteval.interchange.tau2.models import HistoryMessage, Instructions, Tau2Task

_OPENING = (
    "I cannot answer questions, so here is all that I was given to say; where it says you, it means me, the user. "
    "Where you need my confirmation for what I ask, take it as given."
)
_HEADINGS = {
    "reason_for_call": "Why I call",
    "known_info": "What I know",
    "unknown_info": "What I do not know",
    "task_instructions": "How I want it done",
}
_ROLES = ("system", "user", "assistant")


def messages_of(task: Tau2Task, source: str, draft: Draft) -> dict[str, Any]:
    """`prompt` or `messages` of a task; what has no place in them is noted in the draft.

    Args:
        task: As read.
        source: Its id.
        draft: Takes the notes.
    """
    scenario = task.user_scenario
    if scenario.persona:
        draft.lose(source, "user_scenario.persona", "how the simulated user behaves; there is no such user here")
    said = list(_history(task.history, source, draft))
    request = _request(scenario.instructions)
    if said and said[-1][0] == "user":
        # Two messages of the user's in a row are an error in some chat templates.
        request = f"{said.pop()[1]}\n\n{request}"
    return starting_messages([(role, without_templates(text)) for role, text in (*said, ("user", request))])


def _request(instructions: str | Instructions) -> str:
    if isinstance(instructions, str):
        parts = [instructions]
    else:
        found = {name: getattr(instructions, name) for name in _HEADINGS}
        parts = [f"{_HEADINGS[name]}:\n{text.strip()}" for name, text in found.items() if text and text.strip()]
    return "\n\n".join([_OPENING, *parts])


def _history(messages: list[HistoryMessage], source: str, draft: Draft) -> Iterator[tuple[str, str]]:
    for number, message in enumerate(messages):
        place = f"initial_state.message_history[{number}]"
        if message.tool_calls:
            draft.lose(
                source, f"{place}.tool_calls", "a message here is a text; calls made before the start are left out"
            )
        if message.role not in _ROLES:
            draft.lose(source, place, "a message here is the system's, the user's or the agent's; others are left out")
        elif message.role == "system" and number > 0:
            draft.lose(source, place, "a system message stands first; later ones are left out")
        elif message.content:
            yield message.role, message.content
