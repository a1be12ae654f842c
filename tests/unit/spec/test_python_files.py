"""Python files of tools and tasks: the same models as YAML gives, and what they do wrong is a problem with a line."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import FileProblemsError
from agenteval.spec import load_suite

from .conftest import HEAD, TASK, TOOL, problems_of, write

IMPORTS = "from agenteval.spec import Task, ToolMock\n"


def python_suite(folder: Path, text: str, **files: Any) -> Path:
    """A suite whose tasks are in `b.py`."""
    (folder / "b.py").write_text(textwrap.dedent(text))
    return write(folder, {**HEAD, "files": ["*.yaml", "*.py"]}, **files)


FULL_TOOL: dict[str, Any] = {
    "name": "ship",
    "description": "Ships.",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "cases": [{"match": {"n": 0}, "error": "none"}, {"when": "args.n > 9", "returns": ["${args.n}", None]}],
    "default": {
        "returns": {"left": 1.5},
        "effects": [
            {"op": "move", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/log/-", "value": {"x": "${clock}"}},
        ],
        "latency_s": 2.5,
    },
}
FULL_TASK: dict[str, Any] = {
    "name": "t",
    "messages": [{"role": "system", "content": "Be ${vars.x}."}, {"role": "user", "content": "Go."}],
    "follow_ups": ["And ${vars.x}."],
    "tools": ["ship", {**TOOL, "name": "here"}],
    "variants": {"v": {"x": "kind"}},
    "matrix": {"n": [1, 2]},
    "world": {"a": {"deep": [1, "${vars.n}"]}, "log": []},
    "faults": [
        {"kind": "error", "tool": "ship", "at": [1], "message": "busy ${call}"},
        {"kind": "truncated", "tool": "ship", "every": 2, "keep": "${vars.n}"},
    ],
    "checks": [
        {"kind": "answer", "number": "${vars.n}", "unit": ["kg"], "weight": 2.0},
        {"kind": "called", "tool": "ship", "arguments": {"n": "${vars.n}"}, "at_most": 1},
        {"kind": "order", "tools": ["ship", "here"]},
    ],
    "tags": ["a"],
    "max_turns": 3,
}


def test_a_python_file_gives_the_same_suite_as_yaml(tmp_path: Path) -> None:
    (tmp_path / "yaml").mkdir()
    (tmp_path / "python").mkdir()
    yaml = load_suite(write(tmp_path / "yaml", a={"tools": [FULL_TOOL], "tasks": [FULL_TASK]}))
    text = f"{IMPORTS}TOOLS = [ToolMock(**{FULL_TOOL!r})]\nTASKS = [Task(**{FULL_TASK!r})]\n"
    python = load_suite(python_suite(tmp_path / "python", text))
    assert python.variants == yaml.variants
    assert (python.tools, python.digest()) == (yaml.tools, yaml.digest())


def test_models_may_be_given_by_their_own_classes_and_as_tuples(tmp_path: Path) -> None:
    text = """
        from agenteval.spec import AnswerCheck, Case, Effect, Task, ToolMock
        TOOLS = (ToolMock(name="ship", description="Ships.", parameters={"type": "object"},
                          default=Case(returns=1, effects=(Effect(**{"op": "move", "from": "/a", "path": "/b"}),))),)
        TASKS = (Task(name="t", prompt="Go.", tools=("ship",),
                      checks=(AnswerCheck(kind="answer", contains=("x",)),)) for _ in range(1))
        TASKS = tuple(TASKS)
    """
    tool = {**TOOL, "name": "ship", "description": "Ships."}
    tool["default"] = {"returns": 1, "effects": [{"op": "move", "from": "/a", "path": "/b"}]}
    task = {**TASK, "name": "t", "prompt": "Go.", "tools": ["ship"]}
    (tmp_path / "yaml").mkdir()
    assert load_suite(python_suite(tmp_path, text)).digest() == (
        load_suite(write(tmp_path / "yaml", a={"tools": [tool], "tasks": [task]})).digest()
    )


def test_tasks_of_python_use_tools_of_yaml_and_the_other_way_round(tmp_path: Path) -> None:
    text = (
        f"{IMPORTS}TOOLS = [ToolMock(**{ {**TOOL, 'name': 'there'}!r})]\nTASKS = [Task(**{ {**TASK, 'name': 'p'}!r})]\n"
    )
    other = {**TASK, "name": "y", "tools": ["there"]}
    suite = load_suite(python_suite(tmp_path, text, a={"tools": [TOOL], "tasks": [other]}))
    assert [variant.label for variant in suite.variants] == ["y/base", "p/base"]


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        pytest.param("x = 1\n1 / 0\n", 2, "", "it fails: ZeroDivisionError: division by zero", id="raises"),
        pytest.param("def g():\n    return nope\n\nTASKS = g()\n", 2, "", "it fails: NameError", id="raises-deep"),
        pytest.param("TASKS = [\n", 1, "", "it fails: SyntaxError", id="syntax"),
        pytest.param("import no_such_module\n", 1, "", "it fails: ModuleNotFoundError", id="import"),
        pytest.param("raise SystemExit(2)\n", 1, "", "it fails: SystemExit: 2", id="leaves"),
        pytest.param("x = 1\n", None, "", "it has neither TOOLS nor TASKS", id="nothing"),
        pytest.param("TASKS = []\n", None, "", "it has neither TOOLS nor TASKS", id="empty"),
        pytest.param("TASKS = 5\n", None, "TASKS", "TASKS is no list of Task", id="number"),
        pytest.param("TOOLS = {}\n", None, "TOOLS", "TOOLS is no list of ToolMock", id="dict"),
        pytest.param("TASKS = (x for x in [])\n", None, "TASKS", "TASKS is no list of Task", id="generator"),
        pytest.param("TASKS = [{'name': 'x'}]\n", None, "TASKS[0]", "it is a dict, not a Task", id="dict-as-task"),
        pytest.param("TOOLS = [None]\n", None, "TOOLS[0]", "it is a NoneType, not a ToolMock", id="none-as-tool"),
        pytest.param(
            "from agenteval.spec import Task\n\nTASKS = [\n    Task(name='x', prompt='y', checks=[]),\n]\n",
            4,
            "",
            "a Task is wrong: checks: ",
            id="pydantic",
        ),
        pytest.param(
            "from agenteval.spec import Task\nTASKS = [Task(name='a b', promt='y')]\n",
            2,
            "",
            "promt",
            id="pydantic-all",
        ),
        pytest.param(
            "from agenteval.spec import Case\nx = Case(error='e', returns=1)\n",
            2,
            "",
            "a Case is wrong: a case with an error can have no returns, effects or function",
            id="pydantic-of-a-case",
        ),
    ],
)
def test_what_is_wrong_with_a_python_file_is_a_problem_of_it(
    tmp_path: Path, text: str, line: int | None, key: str, words: str
) -> None:
    python_suite(tmp_path, text, a={"tools": [TOOL], "tasks": [TASK]})
    with pytest.raises(FileProblemsError) as caught:
        load_suite(tmp_path)
    ((problem),) = caught.value.problems
    assert (problem.path.name, problem.line, problem.key) == ("b.py", line, key)
    assert words in problem.message


def test_a_dangling_reference_of_a_python_task_names_its_place(tmp_path: Path) -> None:
    text = f"{IMPORTS}TASKS = [Task(**{TASK!r}), Task(**{ {**TASK, 'name': 'o', 'tools': ['lok']}!r})]\n"
    assert problems_of(python_suite(tmp_path, text, a={"tools": [TOOL]})) == [
        ("b.py", "TASKS[1].tools[0]", "there is no tool 'lok' in this suite. Did you mean 'look'?")
    ]


def test_a_python_file_may_use_what_it_likes(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("cup\nmug\n")
    text = f"""
        from __future__ import annotations
        import dataclasses, pathlib
        {IMPORTS}
        @dataclasses.dataclass
        class Row:
            name: str
        ROWS = [Row(line) for line in pathlib.Path(__file__).with_name("rows.csv").read_text().split()]
        TASKS = [Task(**{{**{TASK!r}, "name": row.name}}) for row in ROWS]
    """
    suite = load_suite(python_suite(tmp_path, text, a={"tools": [TOOL]}))
    assert [variant.task for variant in suite.variants] == ["cup", "mug"]


def test_a_file_that_has_changed_is_read_anew_however_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps compiled files by second and size; a suite must be what its text says."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    names = []
    for name in ("one", "two"):
        text = f"{IMPORTS}TASKS = [Task(**{ {**TASK, 'name': name}!r})]\n"
        names.append(load_suite(python_suite(tmp_path, text, a={"tools": [TOOL]})).variants[0].task)
    assert names == ["one", "two"]


def test_loading_leaves_nothing_beside_the_files_and_no_module_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    text = f"{IMPORTS}TASKS = [Task(**{TASK!r})]\n"
    python_suite(tmp_path, text, a={"tools": [TOOL]})
    before, modules = sorted(tmp_path.rglob("*")), set(sys.modules)
    load_suite(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    assert set(sys.modules) == modules


def test_two_suites_may_have_files_of_one_name(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        text = f"{IMPORTS}TASKS = [Task(**{ {**TASK, 'name': name}!r})]\n"
        found.append(load_suite(python_suite(folder, text, a={"tools": [TOOL]})).variants[0].task)
    assert found == ["one", "two"]


@pytest.mark.parametrize(
    ("field", "key", "words"),
    [
        pytest.param("world={'a': [1, float('nan')]}", "TASKS[0].world.a[1]", "nan is no JSON number", id="nan"),
        pytest.param("world={'a': float('inf')}", "TASKS[0].world.a", "inf is no JSON number", id="infinity"),
        pytest.param("world={'a': (1, 2)}", "TASKS[0].world.a", "of the type tuple", id="tuple"),
        pytest.param("world={'a': {1}}", "TASKS[0].world.a", "of the type set", id="set"),
        pytest.param("world={'a': b'x'}", "TASKS[0].world.a", "of the type bytes", id="bytes"),
        pytest.param("world={'a': {1: 2}}", "TASKS[0].world.a", "the key 1 is no text", id="key"),
        pytest.param("world={'a': chr(0xd800)}", "TASKS[0].world.a", "half a character", id="half-a-character"),
        pytest.param("world={'a': 10**40}", "TASKS[0].world.a", "more than 32 digits", id="long-number"),
        pytest.param("world={'a': datetime.date(2026, 1, 1)}", "TASKS[0].world.a", "of the type date", id="date"),
        pytest.param("variants={'v': {'x': [{1}]}}", "TASKS[0].variants.v.x[0]", "of the type set", id="variable"),
        pytest.param(
            "checks=({'kind': 'called', 'tool': 'look', 'arguments': {'x': b''}},)",
            "TASKS[0].checks[0].arguments.x",
            "of the type bytes",
            id="check",
        ),
        pytest.param(
            "tools=(ToolMock(name='here', description='', parameters={'type': 'object'},"
            " cases=({'match': {'x': {2}}, 'returns': 1},)),)",
            "TASKS[0].tools[0].cases[0].match.x",
            "of the type set",
            id="tool-of-a-task",
        ),
    ],
)
def test_a_value_that_json_lacks_is_refused_where_it_stands(tmp_path: Path, field: str, key: str, words: str) -> None:
    name = field.partition("=")[0]
    rest = {other: value for other, value in TASK.items() if other != name}
    text = f"import datetime\n{IMPORTS}TASKS = [Task(**{rest!r}, {field})]\n"
    problems = problems_of(python_suite(tmp_path, text, a={"tools": [TOOL]}))
    assert [found[:2] for found in problems] == [("b.py", key)]
    assert words in problems[0][2]


@pytest.mark.parametrize("value", ["{1}", "b'x'", "float('nan')"])
def test_parameters_that_json_lacks_are_refused_with_their_line(tmp_path: Path, value: str) -> None:
    text = (
        f"{IMPORTS}TOOLS = [ToolMock(name='t', description='', parameters={{'type': 'object', 'default': {value}}})]\n"
    )
    with pytest.raises(FileProblemsError) as caught:
        load_suite(python_suite(tmp_path, text, a={"tools": [TOOL], "tasks": [TASK]}))
    assert [(problem.path.name, problem.line) for problem in caught.value.problems] == [("b.py", 2)]
