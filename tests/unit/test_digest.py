"""Digests are identities: what may change without changing them, and what may not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.digest import canonical_json, derive_seed, digest_bytes, digest_json, is_digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


def reversed_keys(value: Any) -> Any:
    """The same JSON value with the keys of every object in the other order."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_key_order_does_not_matter(value: Any) -> None:
    assert digest_json(reversed_keys(value)) == digest_json(value)


@given(JSON)
def test_canonical_json_reads_back_equal(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value


@given(JSON)
def test_canonical_json_is_a_fixed_point(value: Any) -> None:
    text = canonical_json(value)
    assert canonical_json(json.loads(text)) == text


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param([1, 2], [2, 1], id="order-of-items"),
        pytest.param(1, True, id="one-and-true"),
        pytest.param(1, 1.0, id="integer-and-float"),
        pytest.param(None, "null", id="null-and-its-text"),
        pytest.param({}, [], id="empty-object-and-list"),
        pytest.param({"a": 1}, {"a": 1, "b": None}, id="absent-and-null"),
        pytest.param("é", "e\u0301", id="composed-and-decomposed"),
    ],
)
def test_different_values_have_different_digests(a: Any, b: Any) -> None:
    assert digest_json(a) != digest_json(b)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), [float("nan")]])
def test_what_json_lacks_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(value)


def test_canonical_json_is_compact_sorted_and_unescaped() -> None:
    assert canonical_json({"b": [1, 2.5, None], "a": "é\n"}) == '{"a":"é\\n","b":[1,2.5,null]}'


def test_a_lone_surrogate_has_a_digest_of_its_own() -> None:
    """A model can write half a character; hashing it must not raise."""
    assert digest_json("\ud800") != digest_json("\ud801")


def test_the_digest_is_sha256_with_its_name_in_front() -> None:
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_bytes(b"") == empty


@given(st.lists(st.text() | st.integers(), min_size=1))
def test_a_seed_has_31_bits(parts: list[str | int]) -> None:
    assert 0 <= derive_seed(*parts) < 2**31


def test_a_seed_never_changes() -> None:
    """Runs of different versions are compared by seed, so this number is an interface."""
    assert derive_seed(20260101, "move-money", "base", 0) == 445596626


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(("ab", "c"), ("a", "bc"), id="borders-of-parts"),
        pytest.param((1, "x"), ("1", "x"), id="number-and-text"),
        pytest.param(("a", "b"), ("b", "a"), id="order"),
        pytest.param(("a",), ("a", ""), id="empty-part"),
    ],
)
def test_every_part_of_a_seed_matters(a: tuple[str | int, ...], b: tuple[str | int, ...]) -> None:
    assert derive_seed(*a) != derive_seed(*b)


@pytest.mark.parametrize(("text", "is_one"), [(digest_json([]), True), ("unknown", False), ("", False)])
def test_what_stands_in_a_digests_place_is_none(text: str, is_one: bool) -> None:
    assert is_digest(text) is is_one
