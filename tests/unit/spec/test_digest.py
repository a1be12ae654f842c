"""A suite's digest: all that the agent sees and is judged by, in order, and nothing else."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.spec import Suite, load_suite

from .conftest import HEAD, TASK, TOOL, load, printed_by, write

FAULT = {"kind": "error", "tool": "look", "at": [1], "message": "busy"}


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        pytest.param({"task": {"faults": [FAULT]}}, False, id="fault"),
        pytest.param({"task": {"follow_ups": ["More."]}}, False, id="follow-up"),
        pytest.param({"task": {"max_tokens": 65}}, False, id="tokens"),
        pytest.param({"task": {"max_tokens": 64}}, True, id="the-same-tokens-written-out"),
        pytest.param({"task": {"parallel_tool_calls": True}}, False, id="parallel-calls"),
        pytest.param({"task": {"matrix": {"x": ["base"]}}}, False, id="variable-that-nothing-reads"),
        pytest.param({"task": {"checks": [{"kind": "answer", "contains": ["x"], "weight": 2}]}}, False, id="weight"),
        pytest.param(
            {"task": {"checks": [{"kind": "answer", "contains": ["x"], "weight": 1}]}}, True, id="weight-written-out"
        ),
        pytest.param({"tool": {"default": {"error": "no result for these arguments"}}}, True, id="default-written-out"),
        pytest.param({"tool": {"default": {"returns": 1, "latency_s": 1}}}, False, id="answer"),
        pytest.param({"tool": {"parameters": {"type": "object", "description": "x"}}}, False, id="schema"),
        pytest.param({"tool": {"cases": []}}, True, id="no-cases-written-out"),
    ],
)
def test_it_changes_with_what_the_agent_sees_or_is_judged_by(
    tmp_path: Path, fields: dict[str, Any], same: bool
) -> None:
    before = load(tmp_path).digest()
    assert (load(tmp_path, **fields).digest() == before) is same


@pytest.mark.parametrize(
    ("head", "same"),
    [
        pytest.param({"name": "other"}, True, id="name"),
        pytest.param({"description": "Other."}, True, id="description"),
        pytest.param({"tags": ["x"]}, True, id="tags"),
        pytest.param({"tools": ["look"]}, True, id="default-tools-that-no-task-takes"),
        pytest.param({"agent": {**HEAD["agent"], "system_prompt": "Help!"}}, False, id="system-prompt"),
        pytest.param({"agent": {**HEAD["agent"], "finish_tool": "end"}}, False, id="finish-tool"),
        pytest.param({"agent": {**HEAD["agent"], "graph": None}}, True, id="no-graph-written-out"),
        pytest.param({"agent": {**HEAD["agent"], "graph": "a.b:c"}}, False, id="graph"),
    ],
)
def test_it_changes_with_how_the_agent_is_set_up(tmp_path: Path, head: dict[str, Any], same: bool) -> None:
    before = load(tmp_path).digest()
    after = load_suite(write(tmp_path, {**HEAD, **head}, a={"tools": [TOOL], "tasks": [TASK]})).digest()
    assert (after == before) is same


def with_functions(folder: Path, text: str) -> Suite:
    (folder / "f.py").write_text(text)
    return load(
        folder,
        tool={"default": {"function": "f.py:answer"}},
        task={"checks": [{"kind": "function", "function": "f.py:judge"}]},
    )


SOURCE = "def answer(args, world, clock): return 1, world\ndef judge(world, answer, calls): return True\n"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        pytest.param(SOURCE, True, id="the-same"),
        pytest.param(SOURCE.replace("return 1", "return 2"), False, id="tool"),
        pytest.param(SOURCE.replace("True", "False"), False, id="check"),
        pytest.param(SOURCE + "# a comment\n", False, id="comment"),
        pytest.param("HELPER = 1\n" + SOURCE, False, id="what-the-functions-use"),
    ],
)
def test_it_changes_with_the_text_of_functions(tmp_path: Path, text: str, same: bool) -> None:
    before = with_functions(tmp_path, SOURCE).digest()
    assert (with_functions(tmp_path, text).digest() == before) is same


def test_it_does_not_change_with_files_of_functions_that_nothing_names(tmp_path: Path) -> None:
    before = with_functions(tmp_path, SOURCE).digest()
    (tmp_path / "other.py").write_text("x = 1\n")
    assert load_suite(tmp_path).digest() == before


FILES = {"a": {"tools": [TOOL]}, "b": {"tasks": [TASK]}, "c": {"tasks": [{**TASK, "name": "other"}]}}


def test_files_are_read_in_order_of_path_whatever_order_the_disk_has(tmp_path: Path) -> None:
    digests, orders = set(), []
    for place, order in enumerate(itertools.permutations(FILES)):
        folder = tmp_path / str(place)
        folder.mkdir()
        suite = load_suite(write(folder, **{name: FILES[name] for name in order}))
        digests.add(suite.digest())
        orders.append([variant.task for variant in suite.variants])
    assert len(digests) == 1
    assert orders == [["find", "other"]] * 6


def test_the_order_of_the_patterns_does_not_matter(tmp_path: Path) -> None:
    digests = {
        load_suite(write(tmp_path, {**HEAD, "files": files}, **FILES)).digest()
        for files in (["*.yaml"], ["c.yaml", "b.yaml", "a.yaml"], ["a.yaml", "*.yaml"])
    }
    assert len(digests) == 1


def test_folders_are_ordered_by_their_path_written_with_slashes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for path, name in (("a/z", "deep"), ("a-b", "flat"), ("b", "last")):
        (tmp_path / f"{path}.yaml").write_text(json.dumps({"tasks": [{**TASK, "name": name}]}))
    write(tmp_path, {**HEAD, "files": ["**/*.yaml"]}, c={"tools": [TOOL]})
    assert [variant.task for variant in load_suite(tmp_path).variants] == ["flat", "deep", "last"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text("ab ~/é", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=6,
)


def turned(value: Any) -> Any:
    """The same value with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), JSON, max_size=4), JSON)
def test_the_order_of_keys_never_matters(tmp_path: Path, world: dict[str, Any], value: Any) -> None:
    tool = {**TOOL, "cases": [{"match": {"x": value}, "returns": {"y": value}}]}
    task = {**TASK, "world": world, "variants": {"v": {"a": value, "b": world}}, "prompt": "${vars.a} ${vars.b}"}
    one = load(tmp_path, tool=tool, task=task)
    two = load_suite(write(tmp_path, turned(HEAD), a=turned({"tools": [tool], "tasks": [task]})))
    assert one.digest() == two.digest()
    assert [variant.messages for variant in one.variants] == [variant.messages for variant in two.variants]


def test_it_is_the_same_in_every_process(tmp_path: Path) -> None:
    with_functions(tmp_path, SOURCE)
    code = (
        "import sys, pathlib; from agenteval.spec import load_suite; "
        "print(load_suite(pathlib.Path(sys.argv[1])).digest())"
    )
    assert printed_by(code, tmp_path) == {f"{load_suite(tmp_path).digest()}\n".encode()}


PROPERTIES: dict[str, Any] = {"a": {"type": "string", "description": "First."}, "b": {"type": "integer"}}


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({"type": "object", "properties": dict(reversed(PROPERTIES.items()))}, id="properties"),
        pytest.param({"properties": PROPERTIES, "type": "object"}, id="keywords"),
        pytest.param(
            {"type": "object", "properties": {**PROPERTIES, "a": dict(reversed(PROPERTIES["a"].items()))}}, id="deep"
        ),
    ],
)
def test_the_order_in_which_the_model_reads_parameters_matters(tmp_path: Path, parameters: dict[str, Any]) -> None:
    before = load(tmp_path, tool={"parameters": {"type": "object", "properties": PROPERTIES}})
    after = load(tmp_path, tool={"parameters": parameters})
    assert before.digest() != after.digest()
    assert before.variants[0].fields() != after.variants[0].fields()
