"""That nothing else happened to the world: what may differ is named, and everything else must be as it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .conftest import check, episode, judge

START: dict[str, Any] = {
    "orders": {"a/b": {"status": "open", "units": 2}, "c": {"status": "open", "units": 5}},
    "log": [{"at": 1, "by": "ann"}],
    "flag": True,
}


def grade_of(end: dict[str, Any], *excepted: str) -> tuple[bool | None, str]:
    grade = judge(check(kind="unchanged", **{"except": list(excepted)}), episode(world=end), start=START)
    return grade.passed, grade.reason


def changed(**orders: Any) -> dict[str, Any]:
    """The world with other fields of order c."""
    return {**START, "orders": {**START["orders"], "c": {**START["orders"]["c"], **orders}}}


@pytest.mark.parametrize(
    ("end", "excepted", "passed"),
    [
        pytest.param(START, [], True, id="nothing"),
        pytest.param(changed(status="paid"), [], False, id="something"),
        pytest.param(changed(status="paid"), ["/orders/c/status"], True, id="at-the-place"),
        pytest.param(changed(status="paid"), ["/orders/c"], True, id="below-the-place"),
        pytest.param(changed(status="paid"), ["/orders"], True, id="far-below-the-place"),
        pytest.param(changed(status="paid"), ["/"], False, id="below-the-empty-name"),
        pytest.param(changed(status="paid"), ["/orders/c/stat"], False, id="beginning-of-a-name"),
        pytest.param(changed(status="paid", units=4), ["/orders/c/status"], False, id="one-of-two"),
        pytest.param(changed(status="paid", units=4), ["/orders/c/status", "/orders/c/units"], True, id="both"),
        pytest.param(changed(units=5.0), [], True, id="the-same-number"),
        pytest.param({**START, "flag": 1}, [], False, id="one-is-not-true"),
        pytest.param({**START, "new": None}, [], False, id="added"),
        pytest.param({**START, "new": None}, ["/new"], True, id="added-as-allowed"),
        pytest.param({key: START[key] for key in ("log", "flag")}, ["/orders/c"], False, id="removed-above"),
        pytest.param({**START, "orders": {"c": START["orders"]["c"]}}, ["/orders/a~1b"], True, id="escaped"),
        pytest.param({**START, "log": [*START["log"], 2]}, ["/log"], True, id="longer-list"),
        pytest.param({**START, "log": [*START["log"], 2]}, ["/flag"], False, id="longer-list-elsewhere"),
        pytest.param({**START, "log": [{"at": 2, "by": "ann"}]}, ["/log/0/at"], True, id="inside-a-list"),
        pytest.param({**START, "log": [{"at": 2, "by": "bob"}]}, ["/log/0/at"], False, id="beside-it-in-a-list"),
        pytest.param({key: START[key] for key in reversed(START)}, [], True, id="order-of-keys"),
    ],
)
def test_unchanged(end: dict[str, Any], excepted: list[str], passed: bool) -> None:
    assert grade_of(end, *excepted)[0] is passed


def test_the_places_that_changed_are_told() -> None:
    end = {**changed(status="paid", units=4), "new": 1}
    assert grade_of(end) == (False, "the world also changed at /new, /orders/c/status, /orders/c/units")
    assert grade_of(end, "/orders", "/new") == (True, "nothing else changed in the world")


def test_of_many_places_a_few_are_told() -> None:
    end = {**START, **{f"k{n}": n for n in range(9)}}
    assert grade_of(end)[1] == "the world also changed at /k0, /k1, /k2, /k3, /k4…"


@pytest.mark.parametrize("pointer", ["orders", "", "#/orders"])
def test_a_text_that_is_no_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(ValueError, match="is no JSON Pointer"):
        check(kind="unchanged", **{"except": [pointer]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab/~", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.text("ab/~", max_size=2), JSON, max_size=3))
def test_a_world_is_unchanged_from_itself_and_any_change_is_allowed_where_all_of_it_is(world: dict[str, Any]) -> None:
    same = judge(check(kind="unchanged"), episode(world=world), start=world)
    assert same.passed is True
    everything = ["/" + key.replace("~", "~0").replace("/", "~1") for key in world]
    gone = judge(check(kind="unchanged", **{"except": everything}), episode(world={}), start=world)
    assert gone.passed is True
    assert judge(check(kind="unchanged"), episode(world={}), start=world).passed is (not world)
