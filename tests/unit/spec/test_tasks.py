"""What a task takes from its suite and what it says itself: messages, tools, tags and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.spec import load_suite

from .conftest import HEAD, TASK, TOOL, load, one_problem, problems_of, variants_of, write

USER = {"role": "user", "content": "Hi."}


def talk(folder: Path, **task: Any) -> list[tuple[str, str]]:
    """Role and content of the messages that a task starts with."""
    (variant,) = variants_of(folder, **task)
    return [(message.role, message.content) for message in variant.messages]


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        pytest.param({"prompt": "Go."}, [("system", "Help."), ("user", "Go.")], id="prompt"),
        pytest.param(
            {"prompt": None, "messages": [USER]}, [("system", "Help."), ("user", "Hi.")], id="messages-after-the-suites"
        ),
        pytest.param(
            {"prompt": None, "messages": [{"role": "system", "content": "Own."}, USER]},
            [("system", "Own."), ("user", "Hi.")],
            id="a-system-message-replaces-the-suites",
        ),
        pytest.param(
            {"prompt": None, "messages": [USER, {"role": "assistant", "content": "Yes?"}, USER]},
            [("system", "Help."), ("user", "Hi."), ("assistant", "Yes?"), ("user", "Hi.")],
            id="a-talk-before",
        ),
        pytest.param({"prompt": ""}, [("system", "Help."), ("user", "")], id="empty-prompt"),
    ],
)
def test_an_episode_starts_with(tmp_path: Path, fields: dict[str, Any], messages: list[tuple[str, str]]) -> None:
    assert talk(tmp_path, **fields) == messages


def test_variables_are_put_into_every_message_and_follow_up(tmp_path: Path) -> None:
    (variant,) = variants_of(
        tmp_path,
        prompt=None,
        messages=[{"role": "system", "content": "Be ${vars.how}."}, {"role": "user", "content": "Do ${vars.n}."}],
        follow_ups=["And ${vars.n} more.", "No variables."],
        variants={"v": {"how": "kind", "n": 3}},
    )
    assert [message.content for message in variant.messages] == ["Be kind.", "Do 3."]
    assert variant.follow_ups == ("And 3 more.", "No variables.")
    assert variant.prompt == "Do 3."


def test_the_suites_system_prompt_is_no_template(tmp_path: Path) -> None:
    head = {"agent": {**HEAD["agent"], "system_prompt": "Say ${vars.x}."}}
    (variant,) = variants_of(tmp_path, head=head)
    assert variant.messages[0].content == "Say ${vars.x}."


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        pytest.param({"messages": [USER]}, "", "a task has either a prompt or messages", id="both"),
        pytest.param({"prompt": None}, "", "a task has either a prompt or messages", id="neither"),
        pytest.param({"messages": [], "prompt": None}, "", "a task has either a prompt or messages", id="no-messages"),
        pytest.param(
            {"prompt": None, "messages": [{"role": "assistant", "content": "x"}]},
            "",
            "the last of the messages must be the user's",
            id="the-agent-speaks-last",
        ),
        pytest.param(
            {"prompt": None, "messages": [USER, {"role": "system", "content": "x"}, USER]},
            "",
            "a system message stands first",
            id="system-message-in-between",
        ),
        pytest.param(
            {"prompt": None, "messages": [{"role": "tool", "content": "x"}, USER]},
            ".messages[0].role",
            "'tool' is not one of 'system', 'user' or 'assistant'.",
            id="role",
        ),
        pytest.param({"prompt": None, "messages": [{"role": "user"}]}, ".messages[0].content", None, id="no-content"),
        pytest.param(
            {"prompt": None, "messages": [{"role": "user", "content": ["x"]}]},
            ".messages[0].content",
            None,
            id="content-in-parts",
        ),
        pytest.param({"follow_ups": ["${args.x}"]}, ".follow_ups[0]", None, id="follow-up-reads-another-name"),
        pytest.param({"follow_ups": "more"}, ".follow_ups", None, id="follow-ups-are-a-text"),
    ],
)
def test_messages_that_make_no_sense_are_refused(
    tmp_path: Path, fields: dict[str, Any], key: str, message: str | None
) -> None:
    task = {name: value for name, value in {**TASK, **fields}.items() if value is not None}
    ((_, found_key, found),) = problems_of(write(tmp_path, a={"tools": [TOOL], "tasks": [task]}))
    assert found_key == f"tasks[0]{key}"
    assert message is None or found == message


OTHER = {**TOOL, "name": "other"}


def test_a_task_without_tools_has_the_suites_default_ones_in_their_order(tmp_path: Path) -> None:
    write(tmp_path, {**HEAD, "tools": ["other", "look"]}, a={"tools": [TOOL, OTHER], "tasks": [{**TASK, "tools": []}]})
    (variant,) = load_suite(tmp_path).variants
    assert [tool.name for tool in variant.tools] == ["other", "look"]


def test_a_tasks_own_tools_replace_the_default_ones(tmp_path: Path) -> None:
    write(tmp_path, {**HEAD, "tools": ["other"]}, a={"tools": [TOOL, OTHER], "tasks": [TASK]})
    (variant,) = load_suite(tmp_path).variants
    assert [tool.name for tool in variant.tools] == ["look"]


@pytest.mark.parametrize(
    ("tools", "key", "message"),
    [
        pytest.param(
            ["lok"], "tools[0]", "there is no tool 'lok' in this suite. Did you mean 'look'?", id="unknown-default"
        ),
        pytest.param(["look", "look"], "tools[1]", "the tool 'look' stands twice", id="default-twice"),
    ],
)
def test_default_tools_are_checked_in_the_suites_own_file(
    tmp_path: Path, tools: list[str], key: str, message: str
) -> None:
    folder = write(tmp_path, {**HEAD, "tools": tools}, a={"tools": [TOOL], "tasks": [TASK]})
    assert problems_of(folder) == [("suite.yaml", key, message)]


def test_a_default_tool_that_is_missing_is_said_once_and_not_by_every_task(tmp_path: Path) -> None:
    tasks = [{**TASK, "name": name, "tools": []} for name in ("one", "two")]
    folder = write(tmp_path, {**HEAD, "tools": ["gone"]}, a={"tools": [TOOL], "tasks": tasks})
    assert [(name, key) for name, key, _ in problems_of(folder)] == [("suite.yaml", "tools[0]")]


INLINE = {**TOOL, "name": "here", "default": {"returns": "${call}"}}


def test_a_tool_may_be_written_out_where_it_is_used(tmp_path: Path) -> None:
    suite = load(tmp_path, task={"tools": ["look", INLINE], "checks": [{"kind": "called", "tool": "here"}]})
    (variant,) = suite.variants
    assert [tool.name for tool in variant.tools] == ["look", "here"]
    assert [tool.name for tool in suite.tools] == ["look"], "it is no tool of the suite"


def test_two_tasks_may_each_have_a_tool_of_their_own_by_one_name(tmp_path: Path) -> None:
    tasks = [{**TASK, "name": f"t{n}", "tools": [{**INLINE, "default": {"returns": n}}]} for n in (1, 2)]
    suite = load_suite(write(tmp_path, a={"tools": [TOOL], "tasks": tasks}))
    assert [variant.tools[0].default.returns for variant in suite.variants] == [1, 2]


@pytest.mark.parametrize(
    ("tools", "key", "message"),
    [
        pytest.param(
            [{**INLINE, "name": "look"}],
            "tools[0].name",
            "'look' is a tool of the suite; give its name",
            id="name-of-the-suites",
        ),
        pytest.param([INLINE, INLINE], "tools[1]", "the tool 'here' stands twice", id="twice"),
        pytest.param([INLINE, "here"], "tools[1]", "the tool 'here' stands twice", id="written-out-and-by-name"),
        pytest.param(
            [{**INLINE, "name": "finish"}],
            "tools[0].name",
            "'finish' is the finish tool of the suite; choose another name",
            id="finish-tool",
        ),
        pytest.param(
            [{**INLINE, "descripton": "x"}],
            "tools[0].descripton",
            "unknown key 'descripton'. Did you mean 'description'? "
            "Known: cases, default, description, name, parameters.",
            id="unknown-key",
        ),
        pytest.param([{**INLINE, "cases": [{"when": "nope"}]}], "tools[0].cases[0].when", None, id="condition"),
        pytest.param([5], "tools[0]", None, id="number"),
    ],
)
def test_a_tool_that_is_written_out_is_checked_like_any(
    tmp_path: Path, tools: list[Any], key: str, message: str | None
) -> None:
    found_key, found = one_problem(tmp_path, task={"tools": tools})
    assert found_key == f"tasks[0].{key}"
    assert message is None or found == message


def test_another_task_cannot_name_a_tool_that_is_written_out(tmp_path: Path) -> None:
    tasks = [{**TASK, "tools": [INLINE]}, {**TASK, "name": "other", "tools": ["here"]}]
    ((_, key, message),) = problems_of(write(tmp_path, a={"tools": [TOOL], "tasks": tasks}))
    assert (key, message) == ("tasks[1].tools[0]", "there is no tool 'here' in this suite.")


def test_the_suites_tags_stand_before_a_tasks_own(tmp_path: Path) -> None:
    (variant,) = variants_of(tmp_path, head={"tags": ["shop", "all"]}, tags=["small"])
    assert variant.tags == ("shop", "all", "small")


@pytest.mark.parametrize(
    ("field", "value", "suites"), [("max_turns", 9, 4), ("max_tokens", 7, 64), ("parallel_tool_calls", True, False)]
)
def test_a_tasks_own_limit_replaces_the_suites(tmp_path: Path, field: str, value: object, suites: object) -> None:
    tasks = [{**TASK, field: value}, {**TASK, "name": "other"}]
    own, other = load_suite(write(tmp_path, a={"tools": [TOOL], "tasks": tasks})).variants
    assert (getattr(own.settings, field), getattr(other.settings, field)) == (value, suites)
    assert own.settings.model_copy(update={field: suites}) == other.settings


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_turns", 0),
        ("max_turns", 201),
        ("max_turns", 1.5),
        ("max_turns", "4"),
        ("max_turns", "${vars.x}"),
        ("max_tokens", 0),
        ("max_tokens", True),
        ("parallel_tool_calls", 1),
        ("parallel_tool_calls", "yes"),
        ("tool_choice", "auto"),
        ("finish_tool", None),
    ],
)
def test_a_limit_that_is_none_is_refused(tmp_path: Path, field: str, value: object) -> None:
    key, _ = one_problem(tmp_path, task={field: value})
    assert key == f"tasks[0].{field}"


@pytest.mark.parametrize(
    ("fault", "key", "message"),
    [
        pytest.param(
            {"kind": "stale"}, "", "a fault needs at, every or when, which say at which calls it happens", id="no-time"
        ),
        pytest.param({"kind": "error", "at": [1]}, ".message", "the key 'message' is missing", id="no-message"),
        pytest.param({"kind": "latency", "at": [1]}, ".latency_s", None, id="no-latency"),
        pytest.param({"kind": "truncated", "at": [1]}, ".keep", None, id="no-length"),
        pytest.param({"kind": "truncated", "at": [1], "keep": -1}, ".keep", None, id="negative-length"),
        pytest.param({"kind": "latency", "at": [1], "latency_s": -1}, ".latency_s", None, id="negative-latency"),
        pytest.param({"kind": "timeout", "at": [1], "after_s": 1e9}, ".after_s", None, id="thirty-years"),
        pytest.param({"kind": "stale", "at": [0]}, ".at[0]", None, id="call-zero"),
        pytest.param({"kind": "stale", "every": 0}, ".every", None, id="every-zero"),
        pytest.param({"kind": "stale", "at": [1], "times": 0}, ".times", None, id="never"),
        pytest.param({"kind": "stale", "when": "nope == 1"}, ".when", None, id="unknown-name"),
        pytest.param({"kind": "stale", "when": "start == 1"}, ".when", None, id="name-of-a-check"),
        pytest.param({"kind": "error", "at": [1], "message": "${result}"}, ".message", None, id="message-reads"),
        pytest.param({"kind": "stale", "at": [1], "keep": 3}, ".keep", None, id="field-of-another-kind"),
        pytest.param({"kind": "eror", "at": [1]}, "", None, id="kind"),
        pytest.param(
            {"kind": "stale", "at": [1], "tool": "lok"},
            "",
            "the fault names the tool 'lok', which this task does not have. Did you mean 'look'?",
            id="unknown-tool",
        ),
        pytest.param({"kind": "stale", "at": [1], "tool": "finish"}, "", None, id="finish-tool"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(
    tmp_path: Path, fault: dict[str, Any], key: str, message: str | None
) -> None:
    found_key, found = one_problem(tmp_path, task={"faults": [{"tool": "look", **fault}]})
    assert found_key == f"tasks[0].faults[0]{key}"
    assert message is None or found == message


@pytest.mark.parametrize(
    ("effect", "key", "message"),
    [
        pytest.param({"op": "move", "path": "/x"}, "", "move needs from", id="move-without-from"),
        pytest.param({"op": "copy", "path": "/x"}, "", "copy needs from", id="copy-without-from"),
        pytest.param({"op": "add", "path": "/x", "from": "/y", "value": 1}, "", "add has no from", id="add-with-from"),
        pytest.param({"op": "move", "path": "/x", "from": "/y", "value": 1}, "", "move has no value", id="move-value"),
        pytest.param({"op": "remove", "path": "/x", "value": None}, "", "remove has no value", id="remove-value"),
        pytest.param({"op": "add", "path": "/x"}, "", "add needs a value", id="add-without-value"),
        pytest.param({"op": "test", "path": "/x"}, "", "test needs a value", id="test-without-value"),
        pytest.param({"op": "add", "path": "", "value": 1}, ".path", None, id="the-whole-world"),
        pytest.param({"op": "move", "path": "/x", "from": "y"}, ".from", None, id="from-is-no-pointer"),
        pytest.param({"op": "add", "path": "/${vars.x}", "value": 1}, ".path", None, id="path-reads-another-name"),
        pytest.param({"op": "add", "path": "/x", "value": ["${nope}"]}, ".value", None, id="value-reads-another-name"),
        pytest.param({"op": "merge", "path": "/x", "value": 1}, ".op", None, id="operation"),
    ],
)
def test_an_effect_that_makes_no_sense_is_refused(
    tmp_path: Path, effect: dict[str, Any], key: str, message: str | None
) -> None:
    found_key, found = one_problem(tmp_path, tool={"default": {"effects": [effect]}})
    assert found_key == f"tools[0].default.effects[0]{key}"
    assert message is None or found == message


def test_null_is_a_value(tmp_path: Path) -> None:
    effects = [{"op": "add", "path": "/x", "value": None}, {"op": "test", "path": "/x", "value": None}]
    assert load(tmp_path, tool={"default": {"effects": effects}}).tools[0].default.effects[1].value is None
