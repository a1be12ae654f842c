"""Suite folders: loaded whole, or refused with every problem of every file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.errors import FileProblemsError, InputError
from agenteval.spec import AnswerCheck, CalledCheck, WorldCheck, load_suite

from .conftest import HEAD, TASK, TOOL, load, one_problem, problems_of, write


def test_the_shipped_suite_loads() -> None:
    suite = load_suite(Path(__file__).parents[3] / "tasks" / "starter")
    assert suite.name == "starter"


def test_a_task_without_variants_has_one_named_base(tmp_path: Path) -> None:
    (variant,) = load(tmp_path).variants
    assert (variant.task, variant.variant, variant.settings.max_turns) == ("find", "base", 4)


def test_files_are_read_in_order_of_path_and_tasks_in_order_of_file(tmp_path: Path) -> None:
    write(tmp_path, b={"tasks": [{**TASK, "name": "last"}]}, a={"tools": [TOOL], "tasks": [TASK]})
    assert [variant.task for variant in load_suite(tmp_path).variants] == ["find", "last"]


def test_a_tasks_own_turn_limit_replaces_the_suites(tmp_path: Path) -> None:
    assert load(tmp_path, task={"max_turns": 9}).variants[0].settings.max_turns == 9


def test_variables_are_put_into_prompt_world_and_checks(tmp_path: Path) -> None:
    suite = load(
        tmp_path,
        task={
            "prompt": "Find ${vars.n} of ${vars.what}.",
            "world": {"wanted": "${vars.n}", "rest": ["${vars.what}", 1]},
            "checks": [
                {"kind": "answer", "contains": ["${vars.what}"], "pattern": "^${vars.what}$"},
                {"kind": "called", "tool": "look", "arguments": {"n": "${vars.n}"}},
                {"kind": "world", "that": "world.wanted == vars.n && vars.what in world.rest"},
            ],
            "variants": {"few": {"n": 2, "what": "cup"}, "many": {"n": 40, "what": "mug"}},
        },
    )
    few, many = suite.variants
    assert (few.variant, few.prompt) == ("few", "Find 2 of cup.")
    assert many.world == {"wanted": 40, "rest": ["mug", 1]}
    answer, called, world = many.checks
    assert isinstance(answer, AnswerCheck)
    assert isinstance(called, CalledCheck)
    assert isinstance(world, WorldCheck)
    assert (answer.contains, answer.pattern) == (("mug",), "^mug$")
    assert called.arguments == {"n": 40}
    assert world.that == "world.wanted == vars.n && vars.what in world.rest"


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        pytest.param(
            {"task": {"tools": ["lok"]}},
            "tasks[0].tools[0]",
            "there is no tool 'lok' in this suite. Did you mean 'look'?",
            id="unknown-tool",
        ),
        pytest.param(
            {"task": {"tools": ["look", "look"]}},
            "tasks[0].tools[1]",
            "the tool 'look' stands twice",
            id="twice",
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "called", "tool": "loook"}]}},
            "tasks[0].checks[0]",
            "the check names the tool 'loook', which this task does not have. Did you mean 'look'?",
            id="check-of-an-unknown-tool",
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "order", "tools": ["look", "zzz"]}]}},
            "tasks[0].checks[0]",
            "the check names the tool 'zzz', which this task does not have.",
            id="order-of-an-unknown-tool",
        ),
        pytest.param(
            {"task": {"prompt": "${vars.a}", "variants": {"v": {"b": 1}}}},
            "tasks[0]",
            "the variant 'v' cannot be put in: 'vars.a' failed: there is no key 'a'",
            id="unknown-variable",
        ),
        pytest.param(
            {
                "task": {
                    "checks": [{"kind": "turns", "at_most": "${vars.n}"}],
                    "variants": {"v": {"n": "five"}},
                }
            },
            "tasks[0]",
            "a check or fault is wrong with a variant's values put in: at_most: must be a whole number, not 'five'",
            id="variable-of-the-wrong-type",
        ),
        pytest.param(
            {"task": {"prompt": "${vars.a"}},
            "tasks[0].prompt",
            "'${vars.a': a ${ is not closed by }",
            id="open-template",
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "answer", "contans": ["x"]}]}},
            "tasks[0].checks[0].contans",
            "unknown key 'contans'. Did you mean 'contains'? "
            "Known: contains, excludes, kind, number, one_of, pattern, tolerance, unit, weight.",
            id="unknown-key-of-a-check",
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "anser"}]}},
            "tasks[0].checks[0]",
            "'anser' is not one of 'answer', 'world', 'unchanged', 'called', 'not_called', 'order', 'together', "
            "'turns', 'tokens', 'function'. Did you mean 'answer'?",
            id="unknown-kind-of-check",
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "answer"}]}},
            "tasks[0].checks[0]",
            "an answer check needs contains, excludes, pattern, number or one_of",
            id="check-that-cannot-fail",
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "called", "tool": "look", "at_least": 0}]}},
            "tasks[0].checks[0]",
            "at_least 0 without at_most cannot fail",
            id="count-that-cannot-fail",
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "called", "tool": "look", "at_least": 2, "at_most": 1}]}},
            "tasks[0].checks[0]",
            "at_most 1 is less than at_least 2: it can only fail",
            id="count-that-cannot-pass",
        ),
        pytest.param({"tool": {"default": {"returns": 1, "error": "x"}}}, "tools[0].default", None, id="two-answers"),
        pytest.param({"task": {"checks": []}}, "tasks[0].checks", None, id="no-check"),
        pytest.param(
            {"task": {"tools": []}},
            "tasks[0]",
            "the task has no tools, and the suite no default ones",
            id="no-tool",
        ),
        pytest.param({"task": {"name": "a/b"}}, "tasks[0].name", None, id="name"),
        pytest.param(
            {"task": {"checks": [{"kind": "world", "that": "1 +"}]}},
            "tasks[0].checks[0].that",
            None,
            id="cel",
        ),
        pytest.param(
            {"task": {"checks": [{"kind": "answer", "pattern": "("}]}},
            "tasks[0].checks[0].pattern",
            None,
            id="regex",
        ),
        pytest.param(
            {"tool": {"name": "finish"}, "task": {"tools": ["finish"]}},
            "tools[0].name",
            "'finish' is the finish tool of the suite; choose another name",
            id="finish-tool",
        ),
        pytest.param(
            {"tool": {"parameters": {"type": "array"}}},
            "tools[0].parameters",
            "parameters must be a JSON Schema with `type: object`",
            id="parameters-of-another-type",
        ),
        pytest.param(
            {"tool": {"parameters": {"type": "object", "required": "x"}}},
            "tools[0].parameters",
            None,
            id="no-schema",
        ),
        pytest.param(
            {"tool": {"parameters": {"type": "object", "properties": {"x": {"$ref": "https://example.com"}}}}},
            "tools[0].parameters",
            "parameters may not use $ref; write the schema out where it is used",
            id="schema-on-the-network",
        ),
        pytest.param({"tool": {"cases": [{"when": "args.x in"}]}}, "tools[0].cases[0].when", None, id="when"),
        pytest.param({"tool": {"cases": [{"returns": ["${"]}]}}, "tools[0].cases[0].returns", None, id="returns"),
        pytest.param(
            {"tool": {"cases": [{"retrns": 1}]}},
            "tools[0].cases[0].retrns",
            "unknown key 'retrns'. Did you mean 'returns'? "
            "Known: effects, error, function, latency_s, match, returns, when.",
            id="unknown-key-of-a-case",
        ),
        pytest.param(
            {"tool": {"default": {"effects": [{"op": "add", "path": "x"}]}}},
            "tools[0].default.effects[0].path",
            "'x' is no JSON Pointer: it starts with /",
            id="path",
        ),
        pytest.param(
            {"tool": {"default": {"effects": [{"op": "move", "path": "/x"}]}}},
            "tools[0].default.effects[0]",
            "move needs from",
            id="operation",
        ),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, fields: dict[str, Any], key: str, message: str | None) -> None:
    found_key, found_message = one_problem(tmp_path, **fields)
    assert found_key == key
    assert message is None or found_message == message


def test_a_property_may_be_named_ref(tmp_path: Path) -> None:
    parameters = {"type": "object", "properties": {"$ref": {"type": "string"}}}
    assert load(tmp_path, tool={"parameters": parameters}).tools[0].parameters == parameters


def test_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    head = {**HEAD, "descripton": "x"}
    write(
        tmp_path,
        head,
        a={"tools": [{**TOOL, "descripton": "x"}], "tasks": [{**TASK, "checks": [{"kind": "anser"}]}]},
        b="tools: [",
        c="tasks: []\ntasks: []\n",
    )
    assert [(name, key) for name, key, _ in problems_of(tmp_path)] == [
        ("a.yaml", "tools[0].descripton"),
        ("a.yaml", "tasks[0].checks[0]"),
        ("b.yaml", ""),
        ("c.yaml", "tasks"),
        ("suite.yaml", "descripton"),
    ]


def test_a_tool_in_a_file_with_problems_is_not_reported_missing(tmp_path: Path) -> None:
    write(tmp_path, a={"tools": [{**TOOL, "x": 1}]}, b={"tasks": [TASK]})
    assert [(name, key) for name, key, _ in problems_of(tmp_path)] == [("a.yaml", "tools[0].x")]


def test_names_are_unique_across_files(tmp_path: Path) -> None:
    write(tmp_path, a={"tools": [TOOL], "tasks": [TASK]}, b={"tools": [TOOL], "tasks": [TASK]})
    assert problems_of(tmp_path) == [
        ("b.yaml", "tools[0].name", "there are two tools named 'look'"),
        ("b.yaml", "tasks[0].name", "there are two tasks named 'find'"),
    ]


def test_a_suite_without_tasks_is_refused(tmp_path: Path) -> None:
    assert problems_of(write(tmp_path, a={"tools": [TOOL]})) == [(tmp_path.name, "", "the suite has no task")]


def test_a_pattern_that_matches_no_file_is_refused(tmp_path: Path) -> None:
    ((name, key, message),) = problems_of(write(tmp_path, {**HEAD, "files": ["jobs/*.yaml"]}))
    assert (name, key) == ("suite.yaml", "files")
    assert message == "['jobs/*.yaml'] match no file"


@pytest.mark.parametrize("pattern", ["../*.yaml", "/etc/*.yaml", "", "a**b/*.yaml", "x/../../*.yaml"])
def test_a_pattern_stays_below_the_folder(tmp_path: Path, pattern: str) -> None:
    ((name, key, message),) = problems_of(
        write(tmp_path, {**HEAD, "files": [pattern]}, a={"tools": [TOOL], "tasks": [TASK]})
    )
    assert (name, key) == ("suite.yaml", "files")
    assert message.startswith(f"{pattern!r} is no pattern of files below the suite's folder")


def test_patterns_reach_folders_below(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    write(tmp_path / "jobs", a={"tools": [TOOL], "tasks": [TASK]})
    (tmp_path / "jobs" / "suite.yaml").unlink()
    assert load_suite(write(tmp_path, {**HEAD, "files": ["**/*.yaml"]})).variants[0].task == "find"


def test_a_folder_without_a_suite_file_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no suite\.yaml"):
        load_suite(tmp_path)


def test_the_digest_ignores_names_of_files_keys_order_and_layout(tmp_path: Path) -> None:
    task = {**TASK, "world": {"a": 1, "b": {"c": [1], "d": None}}}
    turned = {key: task[key] for key in reversed(task)} | {"world": {"b": {"d": None, "c": [1]}, "a": 1}}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = load_suite(write(tmp_path / "one", a={"tools": [TOOL], "tasks": [task]}))
    two = load_suite(
        write(tmp_path / "two", x=yaml.safe_dump({"tasks": [turned]}), y=yaml.safe_dump({"tools": [TOOL]}))
    )
    assert one.digest() == two.digest()


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        pytest.param({"task": {"tags": ["new"]}}, True, id="tags"),
        pytest.param({"task": {"prompt": "Find it!"}}, False, id="prompt"),
        pytest.param({"task": {"world": {"a": 1}}}, False, id="world"),
        pytest.param({"task": {"max_turns": 5}}, False, id="turns"),
        pytest.param({"task": {"max_turns": 4}}, True, id="the-same-turns-written-out"),
        pytest.param({"task": {"checks": [{"kind": "answer", "contains": ["y"]}]}}, False, id="check"),
        pytest.param({"task": {"variants": {"base": {}}}}, True, id="the-default-variant-written-out"),
        pytest.param({"task": {"variants": {"other": {}}}}, False, id="variant"),
        pytest.param({"tool": {"description": "Looks!"}}, False, id="description-that-the-model-reads"),
        pytest.param({"tool": {"default": {"returns": 1}}}, False, id="answer-of-a-mock"),
    ],
)
def test_the_digest_changes_with_what_the_agent_sees_or_is_judged_by(
    tmp_path: Path, fields: dict[str, Any], same: bool
) -> None:
    before = load(tmp_path).digest()
    assert (load(tmp_path, **fields).digest() == before) is same


def test_the_order_of_tasks_is_part_of_the_digest(tmp_path: Path) -> None:
    tasks = [TASK, {**TASK, "name": "other"}]
    digests = {
        load_suite(write(tmp_path, a={"tools": [TOOL], "tasks": order})).digest() for order in (tasks, tasks[::-1])
    }
    assert len(digests) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(max_size=80)
    | st.sampled_from(["tools", "tasks"]).flatmap(
        lambda key: st.text("ab:-{}[]\"' \n", max_size=40).map(lambda rest: f"{key}: {rest}")
    )
)
def test_no_task_file_raises_anything_but_file_problems(tmp_path: Path, text: str) -> None:
    write(tmp_path, a={"tools": [TOOL], "tasks": [TASK]})
    (tmp_path / "b.yaml").write_bytes(text.encode("utf-8", errors="surrogatepass"))
    with contextlib.suppress(FileProblemsError):
        load_suite(tmp_path)
