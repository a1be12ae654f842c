"""One line that a person wrote -> a command of the session, or the calls of one turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.spec import ToolMock
from agenteval.spec.suite import FINISH_ARGUMENT
from agenteval.words import nearest

FINISH = "finish"
COMMANDS = {
    FINISH: "finish TEXT       answer; the text is the rest of the line",
    "world": "world             the world and the clock now",
    "checks": "checks            every check as it stands, and why",
    "tools": "tools [NAME]      the tools, or one of them whole",
    "messages": "messages          all that was said, called and answered",
    "undo": "undo              take the last turn back",
    "help": "help              this",
    "quit": "quit              leave without an answer",
}
"""The words that are no calls, each with its line of help."""
_MARK = "/"
"""In front of a command, it is one even where a tool has the same name."""
_KEY = re.compile(r"([^\s=]+)=")
_QUOTED = re.compile(r"'([^']*)'(?=\s|\Z)")
_WORD = re.compile(r"\S*")
_BETWEEN_CALLS = re.compile(r";(?=\s|\Z)")
_END_OF_CALL = re.compile(r"\s*(?:;(?=\s|\Z)|\Z)")
_END_OF_WORD = re.compile(r"\s|\Z")
_SHOWN = 40
"""Characters of a word that a message quotes."""


class LineError(ValueError):
    """A line cannot be read; nothing was called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something that is asked of the session, not of a tool."""

    word: str
    rest: str
    """What stands behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call as a model would have written it."""

    tool: str
    arguments: str
    """Raw JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A turn that calls nothing, by which an agent without a finish tool answers."""

    text: str


def read_line(line: str, mocks: Mapping[str, ToolMock], finish_tool: str | None) -> Command | list[Call | Answer]:
    """Read one line that is not empty.

    Args:
        line: As typed.
        mocks: The tools by name, the finish tool included.
        finish_tool: Name of the tool that takes the answer; None where there is none.

    Raises:
        LineError: If it is neither a command nor calls of known tools.
    """
    word, *rest = line.split(maxsplit=1)
    name = word.removeprefix(_MARK)
    if name in COMMANDS and name != FINISH and word not in mocks:
        return Command(word=name, rest="".join(rest).strip())
    steps = list(_Reader(line, mocks, finish_tool).steps())
    if len(steps) > 1 and any(isinstance(step, Answer) for step in steps):
        raise LineError("without a finish tool, an answer is a turn of its own; write it on a line by itself")
    return steps


class _Reader:
    """Reads the calls of one line from left to right."""

    def __init__(self, line: str, mocks: Mapping[str, ToolMock], finish_tool: str | None) -> None:
        self._line, self._mocks, self._finish_tool = line.strip(), mocks, finish_tool
        self._at = 0

    def steps(self) -> Iterator[Call | Answer]:
        """The calls, which ` ; ` keeps apart."""
        while True:
            yield self._step(self._take(_WORD))
            if not self._ahead():
                return
            # Whatever reads arguments stops at the line's end or at this mark.
            self._take(_BETWEEN_CALLS)
            self._ahead()

    def _step(self, name: str) -> Call | Answer:
        if name == self._finish_tool or (name.removeprefix(_MARK) == FINISH and name not in self._mocks):
            return self._finish()
        if name not in self._mocks:
            raise LineError(self._complaint(name[:_SHOWN]))
        self._ahead()
        if self._line[self._at : self._at + 1] in ("{", "["):
            return Call(tool=name, arguments=self._json(_END_OF_CALL) or self._rest())
        return Call(tool=name, arguments=self._pairs(self._mocks[name]))

    def _complaint(self, name: str) -> str:
        if not name:
            return "a call is missing behind the ;"
        if name.removeprefix(_MARK) in COMMANDS:
            return f"{name} is no call; write it on a line of its own"
        return f"there is no tool {name!r}.{nearest(name, [*self._mocks, *COMMANDS])} Nothing was called."

    def _finish(self) -> Call | Answer:
        """The answer: as the finish tool's argument, or as the rest of the line."""
        self._ahead()
        if self._finish_tool is None:
            return Answer(text=self._answer_text())
        start = self._at
        written = self._json(_END_OF_CALL)
        found = None if written is None else _value_of(written)
        if written is not None and isinstance(found, dict) and FINISH_ARGUMENT in found:
            return Call(tool=self._finish_tool, arguments=written)
        self._at = start
        return Call(tool=self._finish_tool, arguments=_as_json({FINISH_ARGUMENT: self._answer_text()}))

    def _answer_text(self) -> str:
        text = self._rest()
        key, _, value = text.partition("=")
        if key == FINISH_ARGUMENT:
            found = _value_of(value)
            return found if isinstance(found, str) else value
        if not text:
            raise LineError(f"what is the answer? Write it behind {FINISH}")
        return text

    def _json(self, end_pattern: re.Pattern[str]) -> str | None:
        """The JSON value that starts here, as it is written, if what follows it is its end."""
        try:
            _, end = json.JSONDecoder().raw_decode(self._line, self._at)
        except (ValueError, RecursionError):
            return None
        if end_pattern.match(self._line, end) is None:
            return None
        written, self._at = self._line[self._at : end], end
        return written

    def _pairs(self, mock: ToolMock) -> str:
        """`key=value key=value` as one JSON object; a value that is JSON is left as it is written."""
        pairs: dict[str, str] = {}
        while self._ahead() and not _BETWEEN_CALLS.match(self._line, self._at):
            key = _KEY.match(self._line, self._at)
            if key is None:
                word = self._take(_WORD)[:_SHOWN]
                raise LineError(
                    f"{word!r} is no key=value; put a text with blanks in quotes, or write the arguments as JSON"
                )
            self._at = key.end()
            if key[1] in pairs:
                raise LineError(f"{key[1][:_SHOWN]!r} stands twice")
            pairs[key[1]] = self._value(wants_text=_wants_text(mock, key[1]))
        return "{" + ", ".join(f"{_as_json(key)}: {value}" for key, value in pairs.items()) + "}"

    def _value(self, *, wants_text: bool) -> str:
        """One value as JSON text."""
        if self._line[self._at : self._at + 1] in (('"',) if wants_text else ('"', "{", "[")):
            written = self._json(_END_OF_WORD)
            if written is not None:
                return written
        quoted = _QUOTED.match(self._line, self._at)
        if quoted is not None:
            self._at = quoted.end()
            return _as_json(quoted[1])
        word = self._take(_WORD)
        return word if _is_json(word) and not wants_text else _as_json(word)

    def _ahead(self) -> bool:
        """Go to what stands next; whether there is anything."""
        while self._at < len(self._line) and self._line[self._at].isspace():
            self._at += 1
        return self._at < len(self._line)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._line, self._at)
        assert found is not None
        self._at = found.end()
        return found[0]

    def _rest(self) -> str:
        text, self._at = self._line[self._at :].strip(), len(self._line)
        return text


def _wants_text(mock: ToolMock, key: str) -> bool:
    """Whether a tool takes nothing but a text as an argument, so that 42 is meant as one."""
    wanted = mock.parameters.get("properties", {}).get(key)
    return isinstance(wanted, dict) and wanted.get("type") == "string"


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _value_of(text: str) -> Any:
    """The JSON value of a text; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
