"""What a line is read as."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.play.lines import Answer, Call, Command, LineError, read_line
from agenteval.spec import ToolMock
from agenteval.tools import finish_mock

PROPERTIES = {"text": {"type": "string"}, "count": {"type": "integer"}, "free": {}}
SET = ToolMock(name="set", description="", parameters={"type": "object", "properties": PROPERTIES})
MOCKS = {"set": SET, "get": ToolMock(name="get", description="", parameters={"type": "object"})}

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)

ONE_CALL = {
    "nothing": ("get", {}),
    "json": ('set {"text": "a ; b", "count": 2}', {"text": "a ; b", "count": 2}),
    "json without a blank in front": ("get  \t {}", {}),
    "number": ("set count=12", {"count": 12}),
    "negative number": ("set count=-1.5", {"count": -1.5}),
    "true": ("set free=true", {"free": True}),
    "null": ("set free=null", {"free": None}),
    "list": ('set free=[1, "a b"] count=1', {"free": [1, "a b"], "count": 1}),
    "object": ('set free={"a": {"b": [2]}}', {"free": {"a": {"b": [2]}}}),
    "text": ("set free=hello", {"free": "hello"}),
    "text in double quotes": ('set free="a b" count=1', {"free": "a b", "count": 1}),
    "text in single quotes": ("set free='a \"b\"' count=1", {"free": 'a "b"', "count": 1}),
    "escapes in double quotes": (r'set free="a\nb"', {"free": "a\nb"}),
    "text that looks like a number, where a text is wanted": ("set text=0042", {"text": "0042"}),
    "number where a text is wanted": ("set text=42", {"text": "42"}),
    "object where a text is wanted": ('set text={"a":1}', {"text": '{"a":1}'}),
    "quoted text where a text is wanted": ('set text="42"', {"text": "42"}),
    "empty": ("set text= count=1", {"text": "", "count": 1}),
    "unclosed list": ("set free=[1,", {"free": "[1,"}),
    "unclosed quote": ("set free='tis", {"free": "'tis"}),
    "equals sign in the value": ("set free=a=b", {"free": "a=b"}),
    "no JSON constant": ("set free=NaN", {"free": "NaN"}),
    "key that no tool knows": ("set other=1", {"other": 1}),
    "semicolon without blanks": ("set free=a;b", {"free": "a;b"}),
}
SEVERAL_CALLS = {
    "two": ("get ; set count=1", ["get", "set"]),
    "three, once without a blank in front": ('set {"text": " ; "}; get ; get', ["set", "get", "get"]),
    "with finish at the end": ("get ; finish done", ["get", "finish"]),
    "with finish in front": ('finish {"answer": "a"} ; get', ["finish", "get"]),
}


def read(line: str, finish_tool: str | None = "finish") -> Command | list[Call | Answer]:
    finish = {} if finish_tool is None else {finish_tool: finish_mock(finish_tool)}
    return read_line(line, {**finish, **MOCKS}, finish_tool)


def arguments(line: str) -> str:
    """The arguments of the only call of a line."""
    (call,) = calls(line)
    return call.arguments


def calls(line: str, finish_tool: str | None = "finish") -> list[Call]:
    found = read(line, finish_tool)
    assert isinstance(found, list)
    assert all(isinstance(step, Call) for step in found)
    return [step for step in found if isinstance(step, Call)]


@pytest.mark.parametrize(("line", "expected"), ONE_CALL.values(), ids=ONE_CALL)
def test_the_arguments_of_a_call(line: str, expected: object) -> None:
    assert json.loads(arguments(line)) == expected


@pytest.mark.parametrize("written", ['{"a": 1', '{"a": 1} x', "[1, 2]", '{"a": NaN}', '{"n": 1e999}', '{"a" 1} ; get'])
def test_what_is_meant_as_json_reaches_the_tool_as_it_is_written(written: str) -> None:
    assert arguments(f"set {written}") == written


def test_json_that_no_parser_reads_to_its_end_is_handed_on() -> None:
    assert arguments("set " + "[" * 100_000) == "[" * 100_000


@pytest.mark.parametrize(("line", "expected"), SEVERAL_CALLS.values(), ids=SEVERAL_CALLS)
def test_several_calls_of_one_turn(line: str, expected: list[str]) -> None:
    assert [call.tool for call in calls(line)] == expected


@pytest.mark.parametrize("finish_tool", ["finish", "done"])
@pytest.mark.parametrize(
    ("rest", "answer"),
    [
        ("It is 5; that's all ; really", "It is 5; that's all ; really"),
        ("42", "42"),
        ('{"total": 5}', '{"total": 5}'),
        ("[answer]", "[answer]"),
        ("answer=5 of them", "5 of them"),
        ('answer="5 of\\tthem"', "5 of\tthem"),
        ("answer=[5]", "[5]"),
        ('{"answer": "5"}', "5"),
        ('{"answer": ""}', ""),
    ],
)
def test_an_answer_is_the_rest_of_the_line_or_the_argument(finish_tool: str, rest: str, answer: str) -> None:
    for word in dict.fromkeys(["finish", "/finish", finish_tool]):
        (call,) = calls(f"{word} {rest}", finish_tool)
        assert (call.tool, json.loads(call.arguments)) == (finish_tool, {"answer": answer})


def test_without_a_finish_tool_an_answer_calls_nothing() -> None:
    assert read("finish It is 5", None) == [Answer(text="It is 5")]


@pytest.mark.parametrize("word", ["world", "checks", "tools", "messages", "undo", "help", "quit"])
def test_a_command_is_a_word_of_its_own_with_or_without_its_mark(word: str) -> None:
    assert read(f"{word} \t x  y ") == read(f"/{word} x  y") == Command(word=word, rest="x  y")


def test_a_tool_goes_before_the_command_of_its_name() -> None:
    mocks = {"undo": MOCKS["get"].model_copy(update={"name": "undo"})}
    assert read_line("undo", mocks, None) == [Call(tool="undo", arguments="{}")]
    assert read_line("/undo", mocks, None) == Command(word="undo", rest="")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gte", "there is no tool 'gte'. Did you mean 'get'?"),
        ("chekcs", "Did you mean 'checks'?"),
        ("set lunch", "'lunch' is no key=value"),
        ("set free=team lunch", "'lunch' is no key=value"),
        ("set free=1 free=2", "'free' stands twice"),
        ("get ;", "a call is missing behind the ;"),
        ("; get", "there is no tool ';'"),
        ("get ; world", "world is no call"),
        ("finish", "what is the answer?"),
        ("x" * 100_000, "there is no tool 'xxx"),
        ("\x1b[2J", r"there is no tool '\x1b[2J'"),
    ],
)
def test_a_line_that_is_neither_calls_nothing_and_says_why(line: str, message: str) -> None:
    with pytest.raises(LineError) as caught:
        read(line)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


def test_an_answer_by_text_stands_alone() -> None:
    with pytest.raises(LineError, match="a turn of its own"):
        read("get ; finish 5", None)


@given(
    st.lists(st.sampled_from(["set", "get", "finish", ";", " ", "=", "'", '"', "{", "}", "[", "a", "\t", "\x00", "é"]))
)
def test_any_line_is_read_or_refused(parts: list[str]) -> None:
    line = "".join(parts)
    if line.strip():
        try:
            found = read(line)
        except LineError:
            return
        assert found


@given(st.dictionaries(st.sampled_from(["count", "free", "other"]), JSON_VALUES))
def test_pairs_written_as_json_are_the_arguments(given_arguments: dict[str, object]) -> None:
    line = " ".join(["set", *(f"{key}={json.dumps(value)}" for key, value in given_arguments.items())])
    assert json.loads(arguments(line)) == given_arguments
