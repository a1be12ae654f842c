"""tau2-bench's tasks: what becomes of each field, and that the checks judge as the reward does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import FileProblemsError
from agenteval.interchange.tau2 import convert

from .conftest import SOURCES, Imported, failed_checks, imported

LATE = "[late]pays a fee|twice [PERSONA:None]"
RENEW = ("renew", {"book_id": "b1", "weeks": 2})
PAY = ("pay", {"reader_id": "r1", "coins": [{"worth": 1}]})
HAND_OVER = ("call_librarian", {"summary": "anything"})


def task(identity: str = "t", **fields: Any) -> dict[str, Any]:
    """A task of the format that can be imported, with what differs."""
    criteria = {"actions": [{"action_id": "a", "name": "do", "arguments": {"n": 1}}], "reward_basis": ["ACTION"]}
    return {"id": identity, "user_scenario": {"instructions": "You ask."}, "evaluation_criteria": criteria, **fields}


@pytest.mark.parametrize(
    ("identity", "calls", "answer", "failed"),
    [
        pytest.param("0", [RENEW], "Renewed, it costs 1,234.", [], id="the-reference"),
        pytest.param("0", [RENEW], "It costs 1234.", ["answer"], id="a-text-is-missing"),
        pytest.param("0", [], "Renewed: 1234", ["called", "called"], id="nothing-written"),
        pytest.param("0", [("renew", {"book_id": "b2"}), RENEW], "renewed 1234", ["called"], id="one-write-too-many"),
        pytest.param("0", [RENEW, PAY], "renewed 1234", ["not_called"], id="another-write"),
        pytest.param("0", [("get_reader", {"reader_id": "r2"}), RENEW], "renewed 1234", [], id="any-reads"),
        pytest.param(LATE, [PAY, PAY, HAND_OVER], "done", [], id="twice-as-expected"),
        pytest.param(LATE, [PAY, HAND_OVER], "done", ["called"], id="once-only"),
        pytest.param(LATE, [HAND_OVER, PAY, PAY], "done", [], id="in-any-order"),
        pytest.param("refuse", [], "no", [], id="nothing-to-do"),
        pytest.param("refuse", [RENEW], "no", ["not_called"], id="what-must-not-be-done"),
        pytest.param("goes on", [HAND_OVER], "ok", ["called"], id="a-compared-argument-differs"),
    ],
)
def test_checks_judge_as_the_reward_does(
    library: Imported, identity: str, calls: list[Any], answer: str, failed: list[str]
) -> None:
    assert failed_checks(library.task(identity), calls, answer) == failed


def test_the_prompt_says_all_that_the_user_knows(library: Imported) -> None:
    prompt = library.task("0").prompt
    for part in ("renew ${your} book", "You are Ada", "do not know the book's id", "Ask for two weeks"):
        assert part in prompt
    assert "In a hurry" not in prompt


def test_the_policy_is_the_system_prompt(library: Imported) -> None:
    assert library.suite.agent.system_prompt.endswith("Say ${nothing} of other readers.\n")


def test_changes_are_merged_into_the_database(library: Imported) -> None:
    world = library.task("0").world
    assert world["readers"]["r1"] == {"name": "Ada", "loans": ["b1"], "fee": 1.5}
    assert world["books"] == {"b1": {"title": "On ${x}", "due": "2031-05-04"}, "b2": {"title": "1e3"}}
    assert world["open"] == "yes"


def test_a_history_comes_before_the_request(library: Imported) -> None:
    messages = library.task("goes on").messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2].content == "Hello Ada"
    assert messages[3].content.startswith("One more thing\n\n")
    assert messages[3].content.endswith("You ask for the librarian.")


def test_tools_come_from_their_code(library: Imported) -> None:
    tools = {tool.name: tool for tool in library.suite.tools}
    assert list(tools) == ["get_reader", "renew", "pay", "call_librarian"]
    assert tools["get_reader"].description == "Look a reader up."
    reader = tools["get_reader"].parameters["properties"]["reader_id"]
    assert reader == {"type": "string", "description": "The id, such as 'r1'. It never changes."}
    renew = tools["renew"].parameters
    assert renew["required"] == ["book_id"]
    assert renew["properties"]["weeks"] == {"type": "integer"}
    assert renew["properties"]["how"]["anyOf"] == [{"type": "string", "enum": ["mail", "desk"]}, {"type": "null"}]


def test_types_of_the_benchmark_are_inferred_from_calls(library: Imported) -> None:
    pay = next(tool for tool in library.suite.tools if tool.name == "pay").parameters["properties"]
    inside = {"type": "object", "properties": {"worth": {"type": "integer"}}}
    assert pay["coins"] == {"type": "array", "items": inside}
    assert pay["note"] == {}
    assert library.reasons("pay", "parameters.coins") == ["its type is a class of the benchmark; inferred from calls"]


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ("0", "mystery"),
        ("0", "description.author"),
        ("0", "description.notes"),
        ("0", "description.purpose"),
        ("0", "evaluation_criteria.actions[0]"),
        ("0", "evaluation_criteria.actions[0].info"),
        ("0", "evaluation_criteria.actions[2]"),
        ("0", "evaluation_criteria.env_assertions[0]"),
        ("0", "evaluation_criteria.nl_assertions[0]"),
        ("0", "evaluation_criteria.reward_basis"),
        ("0", "initial_state.initialization_actions[0]"),
        ("0", "initial_state.initialization_data.user_data"),
        ("0", "ticket"),
        ("0", "user_scenario.persona"),
        (LATE, "evaluation_criteria.communicate_info[0]"),
        (LATE, "issues"),
        (LATE, "required_documents"),
        (LATE, "user_tools"),
        ("goes on", "initial_state.message_history[1].tool_calls"),
        ("goes on", "initial_state.message_history[2]"),
        ("judged by a model", "(task)"),
        ("judged by a model", "evaluation_criteria.reward_basis"),
        ("always", "(task)"),
        ("refuse", "evaluation_criteria.actions"),
        ("burn", "(tool)"),
        ("get_reader", "behaviour"),
    ],
)
def test_what_is_not_mapped_is_listed(library: Imported, source: str, field: str) -> None:
    assert library.reasons(source, field)


def test_every_tool_says_that_it_does_nothing(library: Imported) -> None:
    assert all(library.reasons(tool.name, "behaviour") for tool in library.suite.tools)
    assert all(tool.default.returns == {"status": "ok"} for tool in library.suite.tools)


def test_ids_are_tags(library: Imported) -> None:
    assert library.task(LATE).tags == (f"id:{LATE}",)
    assert library.task("0").tags == ("id:0", "domain:library")


def test_without_code_tools_are_inferred_and_every_call_is_required(import_tasks: Callable[..., Imported]) -> None:
    actions = [
        {"name": "find", "arguments": {"id": 1, "deep": {"a": [1, 2.5]}}},
        {"name": "find", "arguments": {"id": "x", "deep": {"b": None}, "more": True}},
    ]
    criteria = {"actions": actions, "reward_basis": ["DB"]}
    found = import_tasks(task(evaluation_criteria=criteria))
    (tool,) = found.suite.tools
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "id": {"type": ["integer", "string"]},
            "deep": {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"type": "number"}}, "b": {"type": "null"}},
            },
            "more": {"type": "boolean"},
        },
        "required": ["id", "deep"],
        "additionalProperties": False,
    }
    assert [check.kind for check in found.task("t").checks] == ["called", "called"]
    assert any("which tools write" in reason for reason in found.reasons("t", "evaluation_criteria.reward_basis"))


@pytest.mark.parametrize(
    ("criteria", "reason"),
    [
        pytest.param(None, "every agent passes it", id="no-criteria"),
        pytest.param({"nl_assertions": ["x"]}, "nothing of its criteria", id="only-a-judge"),
        pytest.param({"actions": [], "reward_basis": ["DB"]}, "nothing of its criteria", id="unknown-writers"),
        pytest.param(
            {"actions": [{"name": "do", "arguments": {}}], "reward_basis": ["COMMUNICATE"]},
            "nothing of its criteria",
            id="no-part-depends-on-calls",
        ),
        pytest.param(
            {"actions": [{"name": "do", "arguments": {}, "requestor": "user"}]},
            "nothing of its criteria",
            id="the-user's-calls",
        ),
        pytest.param(
            {"actions": [{"name": "do", "arguments": {"n": n}} for n in range(1001)]}, "1,000 calls", id="too-many"
        ),
    ],
)
def test_a_task_without_checks_is_left_out(
    import_tasks: Callable[..., Imported], criteria: dict[str, Any] | None, reason: str
) -> None:
    found = import_tasks(task("kept"), task("left", evaluation_criteria=criteria))
    assert list(found.report.ids.values()) == ["kept"]
    assert reason in found.report.left_out["left"]


def test_no_states_are_compared_where_the_benchmark_has_none_to_compare(import_tasks: Callable[..., Imported]) -> None:
    """Without actions and assertions the benchmark's part DB is always fulfilled, whatever was written."""
    found = import_tasks(
        task("kept"), task("free", evaluation_criteria={"communicate_info": ["x"]}), beside=["tools.py"]
    )
    assert [check.kind for check in found.task("free").checks] == ["answer"]


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        pytest.param("a red kite", True, id="in-the-prompt"),
        pytest.param("A RED", True, id="in-other-case"),
        pytest.param("1234", True, id="without-its-comma"),
        pytest.param("$77.10", False, id="only-code-knows"),
    ],
)
def test_what_the_agent_must_say_and_cannot_know_is_reported(
    import_tasks: Callable[..., Imported], text: str, is_told: bool
) -> None:
    found = import_tasks(
        task(
            "a",
            user_scenario={"instructions": "I want a red kite for 1,234."},
            evaluation_criteria={"communicate_info": [text], "actions": [{"name": "buy", "arguments": {}}]},
        )
    )
    reasons = found.reasons("a", "evaluation_criteria.communicate_info[0]")
    assert ["passed by a guess alone" in reason for reason in reasons] == ([] if is_told else [True])


def test_a_database_that_would_be_copied_too_often_is_left_out(
    import_tasks: Callable[..., Imported], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "MAX_WORLDS_CHARACTERS", 200)
    found = import_tasks(task("a"), task("b"), beside=["db.json"])
    assert found.task("a").world == {}
    (reason,) = found.reasons("(all)", "db.json")
    assert "for each of 2 worlds" in reason


def test_a_toml_database_is_read_and_other_files_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "domain"
    folder.mkdir()
    (folder / "tasks.json").write_text(json.dumps([task()]), encoding="utf-8")
    (folder / "db.toml").write_text("[shop]\nopened = 2031-05-04\n", encoding="utf-8")
    (folder / "user_tools.py").write_text("", encoding="utf-8")
    found = imported("tau2", folder, tmp_path / "suite")
    assert found.task("t").world == {"shop": {"opened": "2031-05-04"}}
    assert found.reasons("(all)", "user_tools.py")
    assert found.reasons("(all)", "policy.md")


def test_tools_are_found_where_the_benchmark_keeps_its_code(tmp_path: Path) -> None:
    data, code = tmp_path / "data/tau2/domains/library", tmp_path / "src/tau2/domains/library"
    for folder in (data, code):
        folder.mkdir(parents=True)
    shutil.copy(SOURCES / "library" / "tasks.json", data)
    shutil.copy(SOURCES / "library" / "tools.py", code)
    found = imported("tau2", data, tmp_path / "suite")
    assert "Look a reader up." in [tool.description for tool in found.suite.tools]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        pytest.param("db.json", "[1]", "one JSON object", id="database-is-a-list"),
        pytest.param("db.toml", "a = ", "not TOML", id="no-toml"),
        pytest.param("db.toml", "a = inf", "no JSON number", id="toml-without-a-json-form"),
        pytest.param("tools.py", "def (", "not Python", id="no-python"),
        pytest.param("tools.py", "x = " + "-" * 100_000 + "1", "not Python", id="python-that-is-too-deep"),
        pytest.param("policy.md", "x" * 300_001, "longer than", id="policy-too-long"),
    ],
)
def test_a_wrong_file_beside_the_tasks_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps([task()]), encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(FileProblemsError, match=words):
        imported("tau2", tmp_path, tmp_path / "suite")


def test_problems_of_all_files_come_together(import_tasks: Callable[..., Imported], tmp_path: Path) -> None:
    with pytest.raises(FileProblemsError) as caught:
        import_tasks(
            task("same"),
            task("same"),
            {"id": True, "user_scenario": {"instructions": 3}, "evaluation_criteria": {"actions": [{"name": 1}]}},
        )
    found = {(problem.key, problem.line) for problem in caught.value.problems}
    assert found >= {
        ("[1].id", 1),
        ("[2].evaluation_criteria.actions[0].name", 1),
        ("[2].evaluation_criteria.actions[0].arguments", 1),
    }
    assert not (tmp_path / "suite").exists()
