"""Where the leaderboard's files lie, and what stands in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from agenteval.errors import InputError
from agenteval.interchange.bfcl.calls import CallError, WrittenCall, read_call
from agenteval.interchange.bfcl.models import Answer, Entry, FunctionDoc
from agenteval.interchange.source import JsonDocument, Known, read_json_values
from agenteval.loading import raise_if_any, validate

ANSWERS, DOCS = "possible_answer", "multi_turn_func_doc"
"""Folders beside the questions."""
_DOC_FILES = {
    "TwitterAPI": "posting_api",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
    "MemoryAPI_kv": "memory_kv",
    "MemoryAPI_vector": "memory_vector",
    "MemoryAPI_rec_sum": "memory_rec_sum",
}
"""Classes whose file is not named after them; the rest are, as TicketAPI in ticket_api.

Source: bfcl_eval/constants/executable_backend_config.py.
"""
_CLASS_NAME = re.compile(r"\w{1,100}\Z")
"""What can name a class, and so a file of its functions."""
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
KnownT = TypeVar("KnownT", bound=Known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One entry of the questions with its expected calls."""

    entry: Entry
    answer: Answer | None
    turns: Sequence[Sequence[WrittenCall]]
    """The expected calls of each turn."""


@dataclass(slots=True)
class Leaderboard:
    """What was found."""

    name: str
    conversations: list[Conversation] = field(default_factory=list)
    docs: dict[str, list[FunctionDoc]] = field(default_factory=dict)
    """Class to its functions, in the order of its file; classes without a file are absent."""
    unanswered_files: list[str] = field(default_factory=list)
    """Files of questions without a file of answers."""
    unasked: list[str] = field(default_factory=list)
    """Ids of answers without a question."""

    @property
    def classes(self) -> list[str]:
        """Every class that a conversation names, once."""
        return list(dict.fromkeys(name for item in self.conversations for name in item.entry.classes))


def read_leaderboard(path: Path) -> Leaderboard:
    """Read a file of questions, or all multi-turn ones of a folder, with what lies beside them.

    Raises:
        InputError: If there is no file of questions.
        FileProblemsError: With every problem of every file.
    """
    files = _question_files(path)
    found = Leaderboard(name=files[0].stem if len(files) == 1 else "BFCL_multi_turn")
    documents: list[JsonDocument] = []
    seen: dict[str, str] = {}
    for file in files:
        questions = read_json_values(file)
        entries = _models(questions, Entry)
        _refuse_twice(questions, entries, seen)
        answers = _read_answers(file, documents, found)
        for entry in entries.values():
            answer, turns = answers.pop(entry.id, (None, []))
            found.conversations.append(Conversation(entry=entry, answer=answer, turns=turns))
        found.unasked += answers
        documents.append(questions)
    for name in found.classes:
        _read_docs(files[0].parent, name, documents, found)
    raise_if_any(documents)
    return found


def _question_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = [file for file in sorted(path.glob("*multi_turn*.json*")) if file.is_file()] if path.is_dir() else []
    if not files:
        raise InputError(
            f"{path} is no file of questions, nor a folder with one. Name a file such as BFCL_v4_multi_turn_base.json, "
            f"with the folders {ANSWERS} and {DOCS} beside it."
        )
    return files


def _models(document: JsonDocument, model: type[KnownT]) -> dict[int, KnownT]:
    """Place in the file to the model, of all that are right."""
    found = {place: validate(document, model, value, (place,)) for place, value in document.values()}
    return {place: item for place, item in found.items() if item is not None}


def _refuse_twice(document: JsonDocument, items: Mapping[int, Entry | Answer], seen: dict[str, str]) -> None:
    """Report ids that stand twice; `seen` maps those of the files before to their places, and gets these."""
    for place, item in items.items():
        here = f"{document.path.name}[{place}]"
        first = seen.setdefault(item.id, here)
        if first != here:
            message = f"the id {item.id!r} stands twice; first in {first}"
            document.problems.append(document.problem((place, "id"), message))


def _read_answers(
    file: Path, documents: list[JsonDocument], found: Leaderboard
) -> dict[str, tuple[Answer | None, list[list[WrittenCall]]]]:
    """Id to answer and calls, for the questions of one file."""
    path = file.parent / ANSWERS / file.name
    if not path.is_file():
        found.unanswered_files.append(file.name)
        return {}
    document = read_json_values(path)
    documents.append(document)
    answers = _models(document, Answer)
    _refuse_twice(document, answers, {})
    return {answer.id: (answer, _calls(document, place, answer)) for place, answer in answers.items()}


def _calls(document: JsonDocument, place: int, answer: Answer) -> list[list[WrittenCall]]:
    turns: list[list[WrittenCall]] = []
    for number, lines in enumerate(answer.ground_truth):
        turns.append([])
        for index, line in enumerate(lines):
            try:
                turns[-1].append(read_call(line))
            except CallError as error:
                key = (place, "ground_truth", number, index)
                document.problems.append(document.problem(key, str(error)))
    return turns


def _read_docs(folder: Path, name: str, documents: list[JsonDocument], found: Leaderboard) -> None:
    path = folder / DOCS / f"{doc_file(name)}.json"
    if not _CLASS_NAME.match(name) or not path.is_file():
        return
    document = read_json_values(path)
    documents.append(document)
    functions = _models(document, FunctionDoc)
    seen: dict[str, int] = {}
    for place, function in functions.items():
        if seen.setdefault(function.name, place) != place:
            document.problems.append(document.problem((place, "name"), f"the function {function.name!r} stands twice"))
    found.docs[name] = list(functions.values())


def doc_file(class_name: str) -> str:
    """Name of the file that describes a class, without its ending: `math_api` for MathAPI."""
    return _DOC_FILES.get(class_name) or _WORD_STARTS.sub("_", class_name).lower()
