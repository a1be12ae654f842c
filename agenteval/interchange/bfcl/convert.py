"""A leaderboard's multi-turn files -> a draft of a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

from agenteval.interchange.bfcl.calls import WrittenCall
from agenteval.interchange.bfcl.files import Conversation, read_leaderboard
from agenteval.interchange.bfcl.functions import Function, Functions, note_missing_docs
from agenteval.interchange.bfcl.models import Entry, TurnMessage
from agenteval.interchange.checks import (
    MAX_EXPECTED_CALLS,
    TOO_MANY_CALLS,
    ExpectedCall,
    called_checks,
    without_templates,
)
from agenteval.interchange.draft import Draft, starting_messages
from agenteval.interchange.names import fitting_name
from agenteval.interchange.report import EVERY
from agenteval.spec.suite import MAX_TURNS

MAPPED = (
    ("question[0]", "prompt, or messages where there are several"),
    ("question[1:]", "follow_ups"),
    ("initial_config", "world, by class"),
    ("involved_classes, excluded_function", "tools of the task"),
    (
        "multi_turn_func_doc: name, description, parameters, response",
        "tools: types as JSON Schema; the response's form at the end of the description",
    ),
    ("possible_answer: ground_truth", "called checks with arguments by name, counted; an order check over the turns"),
    ("id", "tags"),
)
"""What of the format goes where."""
TURNS_A_MESSAGE = 20
"""The benchmark ends a conversation when one message of the user's took more model calls."""
_PROMPT = "You help the user by calling tools. When you have done what was asked, say so in a short answer."
_EVERY_TASK = {
    "system prompt": "the benchmark has none for models that call tools natively; here there is a plain one",
    "state check": "states are computed by the benchmark's code after each turn; the expected calls are required "
    "instead, so that another way to the same state fails",
    "path": "lists the expected calls again; read only for classes that no file describes",
    "limits": f"{TURNS_A_MESSAGE} model calls a message are taken together for the whole task; the tokens of a turn "
    "are agenteval's choice",
}
"""Place in the format to what holds for every task."""
_NO_ANSWER = "there are no expected calls for it"
_NO_MESSAGE = "the user says nothing in it"
_EXPECTS_NOTHING = (
    "no call is expected in this turn; checks here cannot tell in which of the user's turns a call was made"
)


def draft_of(path: Path) -> Draft:
    """Read the files and draft their suite.

    Raises:
        InputError: If there is no file of questions.
        FileProblemsError: With every problem of every file.
    """
    found = read_leaderboard(path)
    draft = Draft(
        name=fitting_name(found.name.replace("BFCL", "bfcl"), prefix="bfcl"),
        description=f"Imported from the Berkeley leaderboard's {found.name}; IMPORT.md says what is different.",
        system_prompt=_PROMPT,
        max_turns=TURNS_A_MESSAGE,
        found=len(found.conversations),
    )
    for place, reason in _EVERY_TASK.items():
        draft.lose(EVERY, place, reason)
    for name in found.unanswered_files:
        draft.lose(EVERY, name, "there is no file of this name in possible_answer")
    for name in found.unasked:
        draft.lose(name, "possible_answer", "there is no question with this id")
    note_missing_docs(found, draft)
    functions = Functions(found, draft)
    used: list[Function] = []
    for conversation in found.conversations:
        used += _add_task(conversation, functions, draft)
    functions.add_tools(used)
    return draft


def _add_task(conversation: Conversation, functions: Functions, draft: Draft) -> Sequence[Function]:
    """Draft one task; the functions that it needs, none where it is left out."""
    entry = conversation.entry
    draft.lose_unknown(entry.id, entry)
    if sum(map(len, conversation.turns)) > MAX_EXPECTED_CALLS:
        draft.leave_out(entry.id, TOO_MANY_CALLS)
        return ()
    messages = list(_messages(entry, draft))
    _note_fields(conversation, draft)
    available = functions.of(entry)
    # Of several classes with one name, the first is meant.
    meant = {function.name: function for function in reversed(available)}
    turns = [[_expected(entry, meant[call.function], call, draft) for call in turn] for turn in conversation.turns]
    checks = _checks(turns)
    if not checks or not messages:
        draft.leave_out(entry.id, _NO_MESSAGE if not messages else _NO_ANSWER)
        return ()
    called = {call.tool for turn in turns for call in turn}
    _note_functions(entry, available, called, draft)
    hidden = {function.tool for function in available if function.is_stray or function.name in entry.excluded_function}
    offered = [function for function in available if function.tool not in hidden or function.tool in called]
    name = fitting_name(entry.id, prefix="task", taken=draft.tasks)
    draft.ids[name] = entry.id
    draft.tasks[name] = {
        "name": name,
        **starting_messages(messages[0]),
        **({"follow_ups": [turn[-1][1] for turn in messages[1:]]} if messages[1:] else {}),
        "tools": [function.tool for function in offered],
        "world": without_templates(entry.initial_config),
        "checks": checks,
        "tags": [f"id:{entry.id}"],
        "max_turns": min(MAX_TURNS, TURNS_A_MESSAGE * len(messages)),
    }
    return offered


def _messages(entry: Entry, draft: Draft) -> Iterator[list[tuple[str, str]]]:
    """(role, text) of each turn's messages, the user's last; turns in which the user says nothing are left out."""
    has_begun = False
    for number, turn in enumerate(entry.question):
        kept: list[tuple[str, str]] = []
        for place, message in enumerate(turn):
            if not _has_place(message, turn[place:], kept, has_begun=has_begun):
                where = f"question[{number}][{place}]"
                draft.lose(entry.id, where, f"a message of the role {message.role!r} has no place there")
            elif kept and kept[-1][0] == message.role:
                kept[-1] = (message.role, f"{kept[-1][1]}\n\n{without_templates(message.content)}")
            else:
                kept.append((message.role, without_templates(message.content)))
        if kept:
            has_begun = True
            yield kept


def _has_place(
    message: TurnMessage, rest: Sequence[TurnMessage], kept: Sequence[tuple[str, str]], *, has_begun: bool
) -> bool:
    """Whether a message can be one that a task starts with, or a follow-up."""
    if message.role == "user":
        return True
    is_answered = any(later.role == "user" for later in rest)
    return not has_begun and is_answered and (message.role == "assistant" or (message.role == "system" and not kept))


def _note_fields(conversation: Conversation, draft: Draft) -> None:
    entry, answer = conversation.entry, conversation.answer
    for turn in sorted(entry.missed_function):
        reason = "functions that the benchmark gives only in this turn; here the model has them from the start"
        draft.lose(entry.id, f"missed_function[{turn}]", reason)
    for number, said in enumerate(entry.question):
        if not said:
            draft.lose(
                entry.id, f"question[{number}]", "a turn without a message, in which functions are added; left out"
            )
    if "long_context" in entry.id or "composite" in entry.id:
        draft.lose(
            entry.id, "initial_config", "the benchmark's code adds long contents to it; the world is without them"
        )
    if answer is None:
        return
    draft.lose_unknown(entry.id, answer, below="possible_answer.")
    for number, calls in enumerate(conversation.turns):
        if not calls:
            draft.lose(entry.id, f"ground_truth[{number}]", _EXPECTS_NOTHING)
    if len(conversation.turns) != len(entry.question):
        reason = f"{len(conversation.turns)} turns, but {len(entry.question)} in the question"
        draft.lose(entry.id, "ground_truth", reason)


def _note_functions(entry: Entry, available: Sequence[Function], called: Container[str], draft: Draft) -> None:
    names = Counter(function.name for function in available)
    for function in available:
        if function.tool in called and function.name in entry.excluded_function:
            draft.lose(entry.id, "excluded_function", f"{function.name} is excluded and expected; the task has it")
        if function.tool in called and names[function.name] > 1:
            reason = f"several classes have a function {function.name}; the call of {function.owner}'s is required"
            draft.lose(entry.id, "ground_truth", reason)


def _expected(entry: Entry, function: Function, call: WrittenCall, draft: Draft) -> ExpectedCall:
    arguments = function.arguments(call)
    if len(arguments) < len(call.positional) + len(call.named):
        reason = f"a call of {call.function} has arguments by place that no description names; they are not checked"
        draft.lose(entry.id, "ground_truth", reason)
    function.calls.append(arguments)
    return ExpectedCall(tool=function.tool, arguments=arguments)


def _checks(turns: Sequence[Sequence[ExpectedCall]]) -> list[dict[str, Any]]:
    checks = called_checks([call for turn in turns for call in turn], is_counted=True)
    order = _order(turns)
    # One tool again and again is in order whatever happens.
    return [*checks, {"kind": "order", "tools": order}] if len(set(order)) > 1 else checks


def _order(turns: Sequence[Sequence[ExpectedCall]]) -> list[str]:
    """One tool of each turn: within a turn the benchmark promises no order, from turn to turn it does.

    Of a turn's tools, the one that the fewest other turns call says most about the order.
    """
    uses = [{call.tool for call in turn} for turn in turns if turn]
    return [
        min(dict.fromkeys(call.tool for call in turn), key=lambda tool: sum(tool in others for others in uses))
        for turn in turns
        if turn
    ]
