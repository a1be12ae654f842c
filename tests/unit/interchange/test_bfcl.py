"""The leaderboard's multi-turn files: what becomes of each field, and what the checks accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import FileProblemsError, InputError
from agenteval.interchange import import_suite
from agenteval.interchange.bfcl.calls import MAX_CALL_CHARACTERS, CallError, read_call
from agenteval.interchange.bfcl.files import doc_file
from agenteval.spec import load_suite

from .conftest import Imported, failed_checks

FIRST, SECOND = "multi_turn_kitchen_0", "multi_turn_kitchen_1"
HEAT, COOL, OFF = ("heat", {"degrees": 200, "unit": "C"}), ("heat", {"degrees": 0.0, "unit": "C"}), ("off", {})
BAKE, BAKE_LOW = ("bake", {"minutes": 5}), ("bake", {"minutes": 5, "tray": {"level": 1}})


@pytest.mark.parametrize(
    ("calls", "failed"),
    [
        pytest.param([HEAT, BAKE_LOW, BAKE, BAKE, COOL, OFF], [], id="the-ground-truth"),
        pytest.param([HEAT, BAKE, BAKE, BAKE_LOW, OFF, COOL], [], id="any-order-within-a-turn"),
        pytest.param([HEAT, BAKE_LOW, BAKE, COOL, OFF], ["called"], id="once-instead-of-twice"),
        pytest.param([HEAT, BAKE, BAKE, BAKE, COOL, OFF], ["called"], id="one-in-place-of-another"),
        pytest.param([OFF, COOL, BAKE_LOW, BAKE, BAKE, HEAT], ["order"], id="turns-the-other-way-round"),
        pytest.param([], ["called"] * 5 + ["order"], id="nothing"),
    ],
)
def test_what_the_checks_accept(kitchen: Imported, calls: list[Any], failed: list[str]) -> None:
    assert failed_checks(kitchen.task(FIRST), calls) == failed


def test_later_turns_are_follow_ups(kitchen: Imported) -> None:
    task = kitchen.task(FIRST)
    assert task.prompt == "Heat ${the} oven."
    assert task.follow_ups == ("Bake it twice.", "Thanks, turn it off.")
    assert task.settings.max_turns == 60


def test_a_system_message_stays_and_a_turn_of_several_is_one(kitchen: Imported) -> None:
    task = kitchen.task(SECOND)
    assert [(message.role, message.content) for message in task.messages] == [
        ("system", "You cook."),
        ("user", "Set a timer."),
    ]
    assert task.follow_ups == ("And bake.\n\nQuickly.",)


def test_the_configuration_is_the_world(kitchen: Imported) -> None:
    assert kitchen.task(FIRST).world == {"OvenAPI": {"is_on": False, "label": "yes", "since": "2031-05-04"}}


def test_a_task_has_the_functions_of_its_classes(kitchen: Imported) -> None:
    assert [tool.name for tool in kitchen.task(FIRST).tools] == ["heat", "bake", "off", "ClockAPI_off"]
    assert [tool.name for tool in kitchen.task(SECOND).tools] == ["heat", "bake", "off", "clean", "chop", "open_door"]


def test_types_become_json_schema(kitchen: Imported) -> None:
    tools = {tool.name: tool.parameters for tool in kitchen.suite.tools}
    assert tools["heat"] == {
        "type": "object",
        "properties": {
            "degrees": {"type": "number", "description": "How hot."},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        },
        "required": ["degrees"],
        "additionalProperties": False,
    }
    tray = tools["bake"]["properties"]["tray"]["properties"]
    assert tray == {"level": {}, "size": {"type": "array", "items": {"type": "number"}}}


def test_the_response_is_part_of_the_description(kitchen: Imported) -> None:
    heat = next(tool for tool in kitchen.suite.tools if tool.name == "heat")
    assert heat.description.startswith("Heat the oven. The response field has the following schema: {")


@pytest.mark.parametrize(
    ("source", "field"),
    [
        (FIRST, "ground_truth"),
        (SECOND, "difficulty"),
        (SECOND, "missed_function[1]"),
        (SECOND, "question[1]"),
        (SECOND, "question[2][0]"),
        (SECOND, "possible_answer.checked_by"),
        (SECOND, "ground_truth"),
        (SECOND, "ground_truth[1]"),
        ("multi_turn_kitchen_2", "(task)"),
        ("multi_turn_kitchen_3", "(task)"),
        ("multi_turn_kitchen_9", "possible_answer"),
        ("(all)", "involved_classes: FridgeBot"),
        ("OvenAPI.heat", "response"),
        ("OvenAPI.bake", "parameters.minutes"),
        ("OvenAPI.bake", "parameters.tray"),
        ("OvenAPI.bake", "parameters.properties.extra.type"),
        ("OvenAPI.bake", "parameters.properties.extra.hot"),
        ("OvenAPI.off", "cost"),
        ("ClockAPI.off", "name"),
        ("OvenAPI.chop", "parameters"),
        ("FridgeBot.open_door", "parameters"),
        ("FridgeBot.open_door", "behaviour"),
    ],
)
def test_what_is_not_mapped_is_listed(kitchen: Imported, source: str, field: str) -> None:
    assert kitchen.reasons(source, field)


def write(folder: Path, entry: dict[str, Any], answer: dict[str, Any], docs: dict[str, list[Any]]) -> Path:
    """Files with one conversation; the path of its questions."""
    name = "BFCL_v9_multi_turn_one.json"
    (folder / "possible_answer").mkdir(parents=True)
    (folder / "multi_turn_func_doc").mkdir()
    (folder / name).write_text(json.dumps(entry), encoding="utf-8")
    (folder / "possible_answer" / name).write_text(json.dumps(answer), encoding="utf-8")
    for doc, functions in docs.items():
        (folder / "multi_turn_func_doc" / f"{doc}.json").write_text(json.dumps(functions), encoding="utf-8")
    return folder / name


ENTRY = {"id": "one_long_context_1", "question": [[{"role": "user", "content": "Go."}]], "involved_classes": ["AnyAPI"]}
NOTHING = {"type": "dict", "properties": {}, "required": []}


def test_two_classes_with_one_name_get_two_tools(tmp_path: Path) -> None:
    entry = {**ENTRY, "involved_classes": ["AnyAPI", "OtherAPI"]}
    doc = {"name": "go", "description": "Go.", "parameters": NOTHING}
    docs = {"any_api": [doc], "other_api": [{**doc, "description": "Go elsewhere."}]}
    report = import_suite(
        "bfcl-multi-turn",
        write(tmp_path / "s", entry, {"id": ENTRY["id"], "ground_truth": [["go()"]]}, docs),
        tmp_path / "suite",
    )
    (task,) = load_suite(tmp_path / "suite").variants
    assert [(tool.name, tool.description) for tool in task.tools] == [("go", "Go."), ("OtherAPI_go", "Go elsewhere.")]
    rows = {(row.source, row.field) for row in report.unmapped}
    assert {("OtherAPI.go", "name"), (ENTRY["id"], "ground_truth"), (ENTRY["id"], "initial_config")} <= rows


@pytest.mark.parametrize("name", ["../secret", "", "a" * 300, "x/y", "\0"])
def test_the_name_of_a_class_leads_to_no_file_elsewhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "s" / "secret.json").parent.mkdir()
    (tmp_path / "s" / "secret.json").write_text("not JSON", encoding="utf-8")
    entry = {**ENTRY, "involved_classes": [name]}
    source = write(tmp_path / "s" / "t", entry, {"id": ENTRY["id"], "ground_truth": [["go()"]]}, {})
    assert import_suite("bfcl-multi-turn", source, tmp_path / "suite").tools == 1


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("GorillaFileSystem", "gorilla_file_system"),
        ("MathAPI", "math_api"),
        ("TradingBot", "trading_bot"),
        ("TwitterAPI", "posting_api"),
        ("VehicleControlAPI", "vehicle_control"),
    ],
)
def test_where_a_class_is_described(name: str, file: str) -> None:
    assert doc_file(name) == file


@pytest.mark.parametrize(
    ("line", "named", "positional"),
    [
        ("f(a=1, b=-2.5)", {"a": 1, "b": -2.5}, ()),
        ("api.f('x', True)", {}, ("x", True)),
        ("f((1, 2), x={'a': [None]})", {"x": {"a": [None]}}, ([1, 2],)),
        (r"f('\d')", {}, (r"\d",)),
    ],
)
def test_a_call_is_read(line: str, named: dict[str, Any], positional: tuple[Any, ...]) -> None:
    found = read_call(line)
    assert (found.function, found.named, found.positional) == ("f", named, positional)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "f",
        "f() + 1",
        "f(",
        "f()()",
        "f(x)",
        "f(g())",
        "f(*[1])",
        "f(**{})",
        "f(a=1, a=2)",
        "f(1e999)",
        "f(b'x')",
        "f({1: 2})",
        "f({1, 2})",
        "f('\\ud800')",
        "f(__import__('os').getpid())",
        "f(" + "-" * 15_000 + "1)",
        "f(" + "1+" * 9_000 + "1)",
        "f(" + "[" * 5_000 + "]" * 5_000 + ")",
        "f(" + "9" * 5_000 + ")",
        "f(" + "9" * 50 + ")",
        "f(" + "[" * 60 + "]" * 60 + ")",
        "f('" + "a" * MAX_CALL_CHARACTERS + "')",
        "\0",
    ],
    ids=lambda line: ascii(line[:20]),
)
def test_what_is_no_call_is_refused(line: str) -> None:
    with pytest.raises(CallError):
        read_call(line)


def test_problems_of_all_files_come_together(tmp_path: Path) -> None:
    answer = {"id": ENTRY["id"], "ground_truth": [["f(", "g(x)"]]}
    docs = {"any_api": [{"name": "f", "description": "F."}, {"name": "f", "description": 1, "parameters": {}}]}
    source = write(tmp_path / "s", {**ENTRY, "question": "?"}, answer, docs)
    with pytest.raises(FileProblemsError) as caught:
        import_suite("bfcl-multi-turn", source, tmp_path / "suite")
    found = {problem.key for problem in caught.value.problems}
    assert found >= {"[0].question", "[0].ground_truth[0][0]", "[0].ground_truth[0][1]"}


def test_a_folder_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file of questions"):
        import_suite("bfcl-multi-turn", tmp_path, tmp_path / "suite")
