"""Names and schemas: whatever a source holds becomes one that the task language accepts."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import JSON, OBJECTS, TEXT

from agenteval.interchange.names import fitting_name
from agenteval.interchange.schemas import converted, inferred_parameters, widened
from agenteval.spec import ToolMock
from agenteval.spec.templates import NAME_PATTERN


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("multi_turn_base_0", "multi_turn_base_0"),
        ("0", "task-0"),
        ("", "task"),
        ("[a|b] c", "a-b-c"),
        ("ähm", "ahm"),
        ("日本", "task"),
        ("_x_", "x"),
        ("x\n: y", "x-y"),
    ],
)
def test_a_name_stays_close_to_its_text(text: str, name: str) -> None:
    assert fitting_name(text, prefix="task") == name


@given(st.lists(TEXT | st.text("ab-_0", max_size=70) | st.just("x" * 80), max_size=12))
def test_names_are_fitting_and_unique(texts: list[str]) -> None:
    names: list[str] = []
    for text in texts:
        names.append(fitting_name(text, prefix="task", taken=names))
    assert all(re.match(NAME_PATTERN, name) for name in names)
    assert len(set(names)) == len(names)


def accepts(parameters: dict[str, Any], arguments: dict[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(parameters).is_valid(arguments)


@given(st.lists(OBJECTS, min_size=1, max_size=4))
def test_inferred_parameters_accept_every_call_seen(calls: list[dict[str, Any]]) -> None:
    parameters = inferred_parameters(calls)
    ToolMock(name="t", description="", parameters=parameters)
    assert all(accepts(parameters, call) for call in calls)


@given(st.lists(OBJECTS, max_size=3))
def test_widened_parameters_accept_every_expected_call(calls: list[dict[str, Any]]) -> None:
    lost: list[str] = []
    names = list(dict.fromkeys(name for call in calls for name in call))[:2]
    documented = {"type": "object", "properties": {name: {"type": "null"} for name in names}, "required": ["q", *names]}
    parameters = widened(documented, calls, lambda place, _reason: lost.append(place))
    assert all(accepts(parameters, call) for call in calls)
    assert bool(lost) is not all(accepts({**documented, "additionalProperties": False}, call) for call in calls)


SCHEMAS = st.recursive(
    JSON,
    lambda inner: st.dictionaries(
        st.sampled_from("type properties items required enum default minimum description $ref title any".split()),
        inner | st.dictionaries(TEXT, inner, max_size=2) | st.sampled_from(["dict", "float", "tuple", "Any", "x"]),
        max_size=4,
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_converted_schemas_are_schemas(schema: Any) -> None:
    lost: list[str] = []
    found = converted(schema, "parameters", lambda place, _reason: lost.append(place))
    ToolMock(name="t", description="", parameters={"type": "object", "properties": {"x": found}})
    words = set(schema) - {"type"} if isinstance(schema, dict) else set()
    assert all(word in found or any(place.startswith(f"parameters.{word}") for place in lost) for word in words)
