"""The functions of all classes -> the suite's tools, and who is meant by a function's name in one conversation."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from agenteval.interchange.bfcl.calls import WrittenCall
from agenteval.interchange.bfcl.files import DOCS, Conversation, Leaderboard, doc_file
from agenteval.interchange.bfcl.models import Entry, FunctionDoc
from agenteval.interchange.draft import FIXED_RESULT_REASON, Draft, mock, observed_mock
from agenteval.interchange.names import fitting_name
from agenteval.interchange.report import EVERY
from agenteval.interchange.schemas import converted, widened

_RESPONSE = " The response field has the following schema: "
"""How the benchmark itself tells a model what a function gives."""


@dataclass(slots=True)
class Function:
    """A function of a class, and the calls that are expected of it."""

    owner: str
    """Its class."""
    name: str
    doc: FunctionDoc | None
    is_stray: bool = False
    """Whether only a call names it: no other conversation is offered it."""
    tool: str = ""
    """Its name in the suite."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """Arguments of each expected call."""

    def arguments(self, call: WrittenCall) -> dict[str, Any]:
        """A call's arguments by name; fewer than the call has where one has a place but no name of its own."""
        properties = {} if self.doc is None else self.doc.parameters.get("properties")
        names = list(properties) if isinstance(properties, dict) else []
        return {**dict(zip(names, call.positional, strict=False)), **call.named}


class Functions:
    """All functions of a leaderboard, by class and name."""

    def __init__(self, found: Leaderboard, draft: Draft) -> None:
        self._draft = draft
        self._all: dict[tuple[str, str], Function] = {}
        for owner, docs in found.docs.items():
            for doc in docs:
                self._all[owner, doc.name] = Function(owner=owner, name=doc.name, doc=doc)
        for conversation in found.conversations:
            self._add_undocumented(conversation, documented=found.docs)
        self._name_tools()

    def of(self, entry: Entry) -> list[Function]:
        """The functions that an entry's classes have, class by class."""
        return [function for owner in entry.classes for function in self._all.values() if function.owner == owner]

    def add_tools(self, used: Iterable[Function]) -> None:
        """Put the functions that tasks use into the draft, each with its losses."""
        wanted = {function.tool for function in used}
        for function in self._all.values():
            if function.tool in wanted:
                self._draft.tools.append(self._tool(function))

    def _add_undocumented(self, conversation: Conversation, *, documented: Container[str]) -> None:
        """Functions that no file describes: those of the entry's path, and those that only a call names.

        The path of a documented class adds none: it also lists functions that the class does not have.
        """
        entry = conversation.entry
        for place in entry.path:
            owner, _, name = place.rpartition(".")
            if owner in entry.classes and owner not in documented and name:
                self._all.setdefault((owner, name), Function(owner=owner, name=name, doc=None))
        owner, known = entry.classes[0], {function.name for function in self.of(entry)}
        for call in (call for turn in conversation.turns for call in turn):
            if call.function not in known:
                function = Function(owner=owner, name=call.function, doc=None, is_stray=True)
                self._all.setdefault((owner, call.function), function)

    def _name_tools(self) -> None:
        taken: set[str] = set()
        owners: dict[str, list[str]] = {}
        for owner, name in self._all:
            owners.setdefault(name, []).append(owner)
        for (owner, name), function in self._all.items():
            wanted = name if owners[name][0] == owner else f"{owner}_{name}"
            function.tool = fitting_name(wanted, prefix="tool", taken=taken)
            taken.add(function.tool)

    def _tool(self, function: Function) -> dict[str, Any]:
        source = f"{function.owner}.{function.name}"

        def lose(place: str, reason: str) -> None:
            self._draft.lose(source, place, reason)

        if function.tool != function.name:
            lose("name", f"the tool is named {function.tool} here")
        lose("behaviour", FIXED_RESULT_REASON)
        if function.doc is None:
            lose("parameters", f"inferred from calls: nothing in {DOCS}/{doc_file(function.owner)}.json describes it")
            return observed_mock(function.tool, function.name, function.calls)
        self._draft.lose_unknown(source, function.doc)
        description = function.doc.description
        if function.doc.response is not None:
            description += _RESPONSE + json.dumps(function.doc.response, ensure_ascii=False)
            lose(
                "response", "part of the description, as in the benchmark; the mock's fixed result is not of this form"
            )
        parameters = converted(function.doc.parameters, "parameters", lose)
        return mock(function.tool, description, widened(parameters, function.calls, lose))


def note_missing_docs(found: Leaderboard, draft: Draft) -> None:
    """Note the classes that no file describes."""
    for name in found.classes:
        if name not in found.docs:
            reason = f"there is no {DOCS}/{doc_file(name)}.json: of this class only what calls show is known"
            draft.lose(EVERY, f"involved_classes: {name}", reason)
