"""Schemas of arguments: which a suite may have, and what the one validator says of values."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.expressions import ExpressionError, values
from agenteval.spec.json_schema import is_allowed, schema_problem

MANY = 20_000


@pytest.mark.parametrize(
    ("value", "step", "allowed"),
    [
        pytest.param(19.99, 0.01, True, id="cents"),
        pytest.param(19.999, 0.01, False, id="a-tenth-of-a-cent"),
        pytest.param(0.3, 0.1, True, id="tenths"),
        pytest.param(1e308, 0.1, True, id="large-by-small"),
        pytest.param(10**200, 5e-324, True, id="a-quotient-of-hundreds-of-digits"),
        pytest.param(7, 2, False, id="whole"),
        pytest.param(-7.5, 2.5, True, id="negative"),
        pytest.param("x", 2, True, id="no-number"),
        pytest.param(True, 2, True, id="true-is-no-number"),
    ],
)
def test_a_multiple_is_one_of_the_numbers_as_written(value: Any, step: float, allowed: bool) -> None:
    assert is_allowed({"multipleOf": step}, value) is allowed


@given(st.integers(-(10**12), 10**12), st.integers(0, 9))
def test_every_decimal_is_a_multiple_of_its_last_place(units: int, places: int) -> None:
    assert is_allowed({"multipleOf": float(f"1e-{places}")}, float(f"{units}e-{places}"))


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 2.0, "1", "a", 1e22, 10**22])
ITEMS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)


@given(st.lists(ITEMS, max_size=5))
def test_items_are_unique_as_json_schema_says(items: list[Any]) -> None:
    schema = {"uniqueItems": True}
    assert is_allowed(schema, items) is jsonschema.Draft202012Validator(schema).is_valid(items)


def test_many_items_are_compared_in_one_pass() -> None:
    """jsonschema's own compares each two of them, which takes minutes."""
    assert is_allowed({"uniqueItems": True}, [{"n": number} for number in range(MANY)])


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"pattern": "^(a|a)*$"}, id="text"),
        pytest.param({"propertyNames": {"pattern": "^(a|a)*$"}}, id="names"),
        pytest.param({"items": {"anyOf": [{"pattern": "^(a|a)*$"}]}}, id="deep"),
    ],
)
def test_a_pattern_that_backtracks_without_end_is_an_error(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "PATTERN_TIMEOUT_S", 0.05)
    text = "a" * 60 + "!"
    value = {"propertyNames": {text: 1}, "items": [text]}.get(next(iter(schema)), text)
    with pytest.raises(ExpressionError, match="not settled"):
        is_allowed(schema, value)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        pytest.param({"properties": {"a": {"pattern": "(?P<x>a"}}}, "no regular expression", id="pattern"),
        pytest.param({"propertyNames": {"pattern": "["}}, "no regular expression", id="pattern-of-names"),
        pytest.param({"properties": {"a": {"pattern": "a{4000000000}"}}}, "repeats", id="one-long-repeat"),
        pytest.param({"pattern": "[[:foo:]]"}, "no regular", id="that-re-takes"),
        pytest.param({"pattern": "(?:a{1000}){1000}"}, "repeats", id="that-takes-too-much-memory"),
        pytest.param({"properties": {"a": {"$ref": "#"}}}, "may not use $ref", id="reference"),
        pytest.param({"not": {"$dynamicRef": "#x"}}, "may not use $dynamicRef", id="dynamic-reference"),
        pytest.param(
            {"unevaluatedProperties": False}, "may not use unevaluatedProperties", id="unevaluated-properties"
        ),
        pytest.param({"not": {"unevaluatedItems": {}}}, "may not use unevaluatedItems", id="unevaluated-items"),
        pytest.param({"allOf": [{"patternProperties": {}}]}, "may not use patternProperties", id="pattern-properties"),
        pytest.param({"type": "objekt"}, "no JSON Schema", id="type"),
    ],
)
def test_a_schema_that_no_tool_can_use_is_explained(schema: dict[str, Any], words: str) -> None:
    problem = schema_problem(json.dumps(schema))
    assert problem is not None
    assert words in problem


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"properties": {"pattern": {"type": "string"}}}, id="property-named-pattern"),
        pytest.param({"properties": {"$ref": {"type": "string"}}}, id="property-named-ref"),
        pytest.param({"properties": {"patternProperties": True}}, id="property-named-pattern-properties"),
        pytest.param({"pattern": r"^\p{L}+$"}, id="class-that-re-lacks"),
        pytest.param({"enum": [{"pattern": "("}, {"$ref": "x"}]}, id="enum"),
        pytest.param({"const": {"pattern": "("}}, id="const"),
        pytest.param({"default": {"patternProperties": {}}}, id="default"),
    ],
)
def test_what_only_looks_like_a_keyword_is_allowed(schema: dict[str, Any]) -> None:
    assert schema_problem(json.dumps(schema)) is None
