"""Which variants of a suite the names mean that people give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import run_records as made

from agenteval.errors import InputError, UnknownNameError
from agenteval.spec import Selection, Suite, TaskVariant, select_variants


def variant(task: str, name: str = "base", *tags: str) -> TaskVariant:
    return replace(made.VARIANT, task=task, variant=name, tags=tags)


VARIANTS = (variant("pay", "a", "bank"), variant("pay", "b", "bank"), variant("book", "base", "trip", "slow"))
SUITE = Suite(path=Path("suite"), name="suite", description="", agent=made.SETTINGS, tools=(), variants=VARIANTS)


def chosen(**selection: object) -> list[str]:
    return [f"{item.task}/{item.variant}" for item in select_variants(SUITE, Selection(**selection))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        pytest.param({}, ["pay/a", "pay/b", "book/base"], id="all"),
        pytest.param({"tasks": ("book",)}, ["book/base"], id="a task"),
        pytest.param({"tasks": ("book", "pay")}, ["pay/a", "pay/b", "book/base"], id="tasks, in the suite's order"),
        pytest.param({"tasks": ("pay/b", "book")}, ["pay/b", "book/base"], id="a variant and a task"),
        pytest.param({"tags": ("bank",)}, ["pay/a", "pay/b"], id="a tag"),
        pytest.param({"tags": ("slow", "bank")}, ["pay/a", "pay/b", "book/base"], id="any of the tags"),
        pytest.param({"limit": 2}, ["pay/a", "pay/b"], id="a limit"),
        pytest.param({"limit": 99}, ["pay/a", "pay/b", "book/base"], id="a limit above all"),
        pytest.param({"tasks": ("pay",), "limit": 1}, ["pay/a"], id="a task and a limit"),
    ],
)
def test_a_selection_keeps_the_suites_order(selection: dict[str, object], names: list[str]) -> None:
    assert chosen(**selection) == names


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        pytest.param({"tasks": ("bok",)}, "There is no task 'bok'. Known: book, pay. Did you mean", id="task"),
        pytest.param({"tasks": ("pay/c",)}, "There is no variant of pay 'c'. Known: a, b.", id="variant"),
        pytest.param({"tasks": ("pay/",)}, "There is no variant of pay ''. Known: a, b.", id="no variant"),
        pytest.param({"tags": ("bnak",)}, "There is no tag 'bnak'. Known: bank, slow, trip. Did you mean", id="tag"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_right_one(selection: dict[str, object], words: str) -> None:
    with pytest.raises(UnknownNameError, match=words):
        chosen(**selection)


def test_a_selection_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="Loosen --task, --tag or --limit"):
        chosen(tasks=("book",), tags=("bank",))
