"""Examples of a report: what differs is set apart, what is long is cut and says so, nothing steers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_records as made
import run_records

from agenteval.compare import Trajectory
from agenteval.report.page.examples import Example, make_example


def example(a: Trajectory, b: Trajectory) -> Example:
    return make_example(made.pair(a, b), a, b, names=None)


def with_turn(side: Trajectory, **fields: object) -> Trajectory:
    """A trajectory whose second turn has other fields."""
    return replace(side, turns=(side.turns[0], replace(side.turns[1], **fields)))


def test_the_first_differing_token_is_set_apart_on_both_sides() -> None:
    sides = example(*made.sides()).sides
    assert sides is not None
    assert [(side.output.before, side.output.differing, side.output.after) for side in sides] == [
        ("a", "b", "c"),
        ("a", "y", "c"),
    ]
    assert [(side.token.text, side.token.runner_up, side.token.margin) for side in sides if side.token] == [
        ("b", "y", 0.5),
        ("y", "b", 0.0625),
    ]
    assert [(side.cached_tokens, side.requests_in_flight) for side in sides] == [(0, 1), (16, 1)]


def test_calls_and_results_are_compared_each_by_itself() -> None:
    sides = example(*made.sides()).sides
    assert sides is not None
    ((asked, given),) = sides[0].calls
    assert (asked.before, asked.differing, asked.after) == ('look({"id":', "7", "})")
    assert given.before + (given.differing or "") + given.after == '{"found":7}'


def test_a_call_that_one_side_lacks_is_said_to_be_none() -> None:
    a, b = made.sides()
    sides = example(a, with_turn(b, tool_calls=())).sides
    assert sides is not None
    assert "no such call" in "".join(str(part) for part in sides[1].calls)


def test_where_one_output_ended_that_is_marked() -> None:
    a, _ = made.sides()
    short = {name: getattr(a.turns[1], name)[:2] for name in ("output_ids", "output_tokens", "logprobs")}
    rivals = {name: getattr(a.turns[1], name)[:2] for name in ("runner_up_tokens", "runner_up_logprobs")}
    sides = example(a, with_turn(a, **short, **rivals)).sides
    assert sides is not None
    assert [side.output.differing for side in sides] == ["c", "(ended)"]
    assert sides[1].token is None


def test_a_token_without_text_is_told_from_an_end() -> None:
    """Tokens that end a turn may stand for no text; their ids tell them apart."""
    a, b = made.sides()
    empty = ("a", "", "c")
    sides = example(with_turn(a, output_tokens=empty), with_turn(b, output_tokens=empty)).sides
    assert sides is not None
    assert [side.output.differing for side in sides] == ["(no text)", "(no text)"]
    assert [side.token.token_id for side in sides if side.token] == [12, 99]


def test_where_no_token_differs_none_is_marked() -> None:
    """Only a tool's result differs, and what came of it: the outputs stand as they are."""
    a, _ = made.sides()
    other = replace(a.turns[1].tool_calls[0], result='{"found":9}')
    sides = example(a, replace(with_turn(a, tool_calls=(other,)), passed=False)).sides
    assert sides is not None
    assert [side.output.differing for side in sides] == [None, None]
    assert sides[1].calls[0][1].differing == "9"


def test_a_side_without_the_turn_has_only_the_number_of_turns() -> None:
    a, _ = made.sides()
    found = example(a, replace(a, turns=a.turns[:1]))
    assert found.sides is None
    assert found.turns == (2, 1)


@pytest.mark.parametrize("text", ["\x00\x1b[31m", "\u202egnp.exe", "\ud800", "\u2028"], ids=ascii)
def test_what_steers_is_spelled_out(text: str) -> None:
    sides = [
        with_turn(side, output_tokens=(text,) * 3, tool_calls=(run_records.call(1, result=text + str(place)),))
        for place, side in enumerate(made.sides())
    ]
    assert text not in str(example(*sides))
    assert repr(text)[1:-1].replace("\\", "\\\\") in str(example(*sides))


def test_what_is_long_is_cut_and_says_how_much() -> None:
    a, b = (
        with_turn(side, output_tokens=("x" * 1_000_000, side.turns[1].output_tokens[1], "y" * 5_000))
        for side in made.sides()
    )
    sides = example(a, b).sides
    assert sides is not None
    assert sides[0].output.before.startswith("(999,760 characters before) … x")
    assert sides[0].output.after.endswith("y … (4,760 characters more)")
    assert len(str(sides)) < 20_000
