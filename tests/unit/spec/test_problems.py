"""Every problem of every file in one go, each with its line; and no file, however large or deep, that takes long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from patience import does_not_hang

from agenteval.errors import FileProblemsError
from agenteval.spec import load_suite

SUITE = """\
name: demo
description: A suite.
tools: [gone]
agent:
  system_prompt: Help.
  tool_choice: required
  max_turns: 4
  max_tokens: 64
  parallel_tool_calls: false
  finish_tool: finish
files: ["*.yaml", "*.py"]
"""
BAD_TASKS = """\
tools:
  - name: look
    description: Looks.
    parameters: {type: object}
    cases:
      - when: nope == 1
      - error: "${vars.x}"
        returns: 1
tasks:
  - name: one
    promt: Go.
    prompt: Go.
    tools: [look]
    checks: []
  - name: two
    prompt: "${vars.a"
    tools: [look]
    checks:
      - {kind: world, that: "wrld == 1"}
      - {kind: called, tool: lok}
"""
DANGLING = """\
tasks:
  - name: three
    prompt: Go.
    tools:
      - look
      - lok
    faults:
      - {kind: stale, tool: see, at: [1]}
    checks:
      - {kind: not_called, tool: loook}
      - kind: function
        function: gone.py:judge
  - name: four
    prompt: "${vars.b}"
    tools: [look]
    variants: {v: {a: 1}}
    checks: [{kind: turns, at_most: 1}]
"""
CODE = """\
from agenteval.spec import Task

TASKS = [Task(name="five", prompt="Go.", tools=["lock"], checks=[{"kind": "turns", "at_most": 1}])]
"""


def reported(folder: Path) -> list[tuple[str, int | None, str]]:
    """File, line and key of every problem, in the order in which they are told."""
    with pytest.raises(FileProblemsError) as caught:
        load_suite(folder)
    return [(problem.path.name, problem.line, problem.key) for problem in caught.value.problems]


def test_all_problems_of_all_files_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    files = {"suite.yaml": SUITE, "a.yaml": BAD_TASKS, "b.yaml": DANGLING, "c.py": CODE, "d.yaml": "tasks: [\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert reported(tmp_path) == [
        ("a.yaml", 6, "tools[0].cases[0].when"),
        ("a.yaml", 7, "tools[0].cases[1].error"),
        ("a.yaml", 11, "tasks[0].promt"),
        ("a.yaml", 14, "tasks[0].checks"),
        ("a.yaml", 16, "tasks[1].prompt"),
        ("a.yaml", 19, "tasks[1].checks[0].that"),
        ("b.yaml", 6, "tasks[0].tools[1]"),
        ("b.yaml", 8, "tasks[0].faults[0]"),
        ("b.yaml", 10, "tasks[0].checks[0]"),
        ("b.yaml", 12, "tasks[0].checks[1].function"),
        ("b.yaml", 13, "tasks[1]"),
        ("c.py", None, "TASKS[0].tools[0]"),
        ("d.yaml", 2, ""),
        ("suite.yaml", 3, "tools[0]"),
    ]


def test_a_task_with_problems_of_its_own_still_says_what_it_refers_to(tmp_path: Path) -> None:
    """A person mends a file once: a wrong name beside a wrong key is told with it."""
    (tmp_path / "suite.yaml").write_text(SUITE.replace("tools: [gone]\n", ""))
    (tmp_path / "a.yaml").write_text(
        "tools: [{name: look, description: x, parameters: {type: object}}]\n"
        "tasks:\n"
        "  - name: one\n"
        "    prompt: Go.\n"
        "    tools: [lok]\n"
        "    max_turns: 0\n"
        "    checks: [{kind: turns, at_most: 1}]\n"
    )
    assert reported(tmp_path) == [
        ("a.yaml", 5, "tasks[0].tools[0]"),
        ("a.yaml", 6, "tasks[0].max_turns"),
    ]


def test_each_variant_that_is_wrong_is_told(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("tools: [gone]\n", ""))
    (tmp_path / "a.yaml").write_text(
        "tools: [{name: look, description: x, parameters: {type: object}}]\n"
        "tasks:\n"
        "  - {name: one, prompt: '${vars.a}', tools: [look], variants: {v: {}}, checks: [{kind: turns, at_most: 1}]}\n"
        "  - {name: two, prompt: '${vars.b}', tools: [look], variants: {v: {}}, checks: [{kind: turns, at_most: 1}]}\n"
    )
    assert reported(tmp_path) == [("a.yaml", 3, "tasks[0]"), ("a.yaml", 4, "tasks[1]")]


def test_tools_that_are_wrong_are_not_reported_missing_as_well(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("[gone]", "[look]"))
    (tmp_path / "a.yaml").write_text(
        "tools:\n"
        "  - {name: look, description: x, parameters: {type: object}, x: 1}\n"
        "tasks:\n"
        "  - {name: one, prompt: Go., tools: [look], checks: [{kind: called, tool: look}]}\n"
        "  - {name: two, prompt: Go., checks: [{kind: called, tool: look}]}\n"
    )
    assert reported(tmp_path) == [("a.yaml", 2, "tools[0].x")]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@does_not_hang
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(BOMB, id="alias-bomb"),
        pytest.param(f"tasks: [{{world: &w {{a: {'[' * 59}{']' * 59}}}, name: *w}}]", id="deep-behind-an-alias"),
        pytest.param("&a [*a]", id="alias-of-itself"),
        pytest.param("[" * 400_000, id="never-closed"),
        pytest.param("{a: " * 200_000, id="deep-maps"),
        pytest.param("- " * 400_000, id="deep-lists"),
        pytest.param("? " * 400_000, id="deep-keys"),
        pytest.param("tasks: [" + "{}, " * 240_000 + "]", id="hundreds-of-thousands-of-tasks"),
        pytest.param("tasks: [" + "&a a, *a, " * 80_000 + "]", id="many-anchors"),
        pytest.param("a: " + "x" * 900_000, id="one-long-text"),
        pytest.param("a: " + "9" * 900_000, id="one-long-number"),
        pytest.param("".join(f"k{n}: 1\n" for n in range(90_000)), id="many-keys"),
        pytest.param("".join("k: 1\n" for _ in range(190_000)), id="one-key-many-times"),
        pytest.param("tasks:\n" + "- {name: a, prompt: '${" + "(" * 900_000 + "}'}", id="deep-expression"),
    ],
)
def test_no_file_that_a_suite_may_read_takes_long(tmp_path: Path, text: str) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("tools: [gone]\n", ""))
    (tmp_path / "a.yaml").write_text(text)
    assert reported(tmp_path)


@pytest.mark.parametrize("name", ["suite.yaml", "a.yaml", "b.py"])
def test_a_file_of_100_mb_is_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("tools: [gone]\n", ""))
    (tmp_path / "a.yaml").write_text("tools: [{name: look, description: x, parameters: {type: object}}]\n")
    with (tmp_path / name).open("r+b" if (tmp_path / name).exists() else "wb") as file:
        file.truncate(100_000_000)
    (problem, *_) = [entry for entry in reported(tmp_path) if entry[0] == name]
    assert problem == (name, None, "")


@pytest.mark.parametrize("name", ["a.yaml", "suite.yaml"])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("tools: [gone]\n", ""))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(Exception, match=r"no suite|match no file"):
        load_suite(tmp_path)
