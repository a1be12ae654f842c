"""A suite's text loads equal to the same models built in Python, and unfolding never depends on the order of keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import strategies
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agenteval.loading import read_yaml
from agenteval.spec import Suite, Task, ToolMock, load_suite
from agenteval.spec.files import load_suite_files

from .conftest import HEAD

FOLDER = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Dumper(yaml.SafeDumper):
    """Puts every text in quotes: YAML 1.1, which it writes, takes other words for numbers than 1.2 does."""


Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def as_yaml(value: Any, *, flow: bool = False) -> str:
    """A value as YAML text."""
    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=False, default_flow_style=flow)
    return text


def loaded(folder: Path, file: dict[str, Any], **style: Any) -> Suite:
    (folder / "suite.yaml").write_text(json.dumps(HEAD))
    (folder / "a.yaml").write_text(as_yaml(file, **style))
    return load_suite(folder)


@FOLDER
@given(strategies.suite_files(), st.booleans())
def test_yaml_and_python_give_equal_models(tmp_path: Path, file: dict[str, Any], flow: bool) -> None:
    suite = loaded(tmp_path, file, flow=flow)
    assert suite.tools == tuple(ToolMock(**tool) for tool in file["tools"])
    tasks = [task for _, _, task in load_suite_files(tmp_path).tasks.values()]
    assert tasks == [Task(**task) for task in file["tasks"]]


@FOLDER
@given(strategies.suite_files())
def test_a_python_file_unfolds_into_the_same_variants(tmp_path: Path, file: dict[str, Any]) -> None:
    suite = loaded(tmp_path, file)
    (tmp_path / "a.yaml").unlink()
    (tmp_path / "suite.yaml").write_text(json.dumps({**HEAD, "files": ["a.py"]}))
    (tmp_path / "a.py").write_text(
        "from agenteval.spec import Task, ToolMock\n"
        f"TOOLS = [ToolMock(**fields) for fields in {file['tools']!r}]\n"
        f"TASKS = [Task(**fields) for fields in {file['tasks']!r}]\n",
        encoding="utf-8",
    )
    python = load_suite(tmp_path)
    assert python.variants == suite.variants
    assert python.digest() == suite.digest()


def turned(value: Any, *kept: str) -> Any:
    """The same value with the keys of its objects the other way round; what stands under `kept` has an order."""
    if isinstance(value, dict):
        return {
            key: value[key] if key in kept else turned(value[key], *kept)
            for key in (value if set(value) & set(kept) else reversed(value))
        }
    return [turned(item, *kept) for item in value] if isinstance(value, list) else value


@FOLDER
@given(strategies.suite_files())
def test_unfolding_never_depends_on_the_order_of_keys(tmp_path: Path, file: dict[str, Any]) -> None:
    """The names of variants, of a matrix and of parameters have an order that is meant; all other keys have none."""
    suite = loaded(tmp_path, file)
    other = loaded(tmp_path, turned(file, "variants", "matrix", "parameters"))
    assert other.variants == suite.variants
    assert [variant.messages for variant in other.variants] == [variant.messages for variant in suite.variants]
    assert other.digest() == suite.digest()


@FOLDER
@given(strategies.suite_files())
def test_models_written_out_again_load_equal(tmp_path: Path, file: dict[str, Any]) -> None:
    suite = loaded(tmp_path, file)
    again = {
        "tools": [tool.model_dump(mode="json", exclude_unset=True) for tool in suite.tools],
        "tasks": [
            task.model_dump(mode="json", exclude_unset=True, warnings=False)
            for _, _, task in load_suite_files(tmp_path).tasks.values()
        ],
    }
    assert loaded(tmp_path, again).digest() == suite.digest()


@FOLDER
@given(strategies.JSON)
@example("\x85")
@example("\u2028\u2029\ufeff")
@example("yes")
@example({"<<": 1})
@example({"": [""]})
def test_any_json_value_survives_yaml(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "value.yaml"
    path.write_text(as_yaml({"value": value}))
    document = read_yaml(path)
    assert document.problems == []
    assert document.data == {"value": value}
