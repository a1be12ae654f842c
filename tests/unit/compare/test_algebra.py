"""Laws of comparison, over trajectories that a run could have produced."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import run_records as made
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.compare import (
    ORDER,
    Trajectory,
    call_answered,
    call_asked,
    canonical_arguments,
    compare,
    compare_pair,
    first_difference,
    full_prompts,
    token_rows,
)
from agenteval.records import CauseKind, Divergence, Level, Turn

PLANS = (made.plan(0), made.plan(1))


def turns(episode_id: str, number: int) -> st.SearchStrategy[Turn]:
    """Turns from a small world, so that two of them are often equal in part."""
    tokens = st.tuples(
        st.integers(1, 2), st.sampled_from([-0.5, -0.25]), st.sampled_from([None, "x"]), st.sampled_from([-1.0, -2.0])
    )
    calls = st.tuples(st.sampled_from(["look", "take"]), st.sampled_from(['{"a":1}', '{"a":1.0}', "{"]))

    def make(outputs: list[tuple[int, float, str | None, float]], asked: list[tuple[str, str]], where: Any) -> Turn:
        prompt, boot, cached, flight = where
        return made.turn(
            number,
            episode_id=episode_id,
            boot_id=boot,
            prompt_added=prompt,
            output_ids=tuple(item[0] for item in outputs),
            output_tokens=tuple(str(item[0]) for item in outputs),
            logprobs=tuple(item[1] for item in outputs),
            runner_up_tokens=tuple(item[2] for item in outputs),
            runner_up_logprobs=tuple(None if item[2] is None else item[3] for item in outputs),
            cached_tokens=cached,
            requests_in_flight=flight,
            tool_calls=tuple(
                made.call(number, place, tool=tool, arguments=text) for place, (tool, text) in enumerate(asked)
            ),
        )

    where = st.tuples(
        st.sampled_from([(1,), (2,)]),
        st.sampled_from(["boot-0", "boot-1"]),
        st.sampled_from([None, 0, 16]),
        st.integers(1, 2),
    )
    return st.builds(make, st.lists(tokens, max_size=2), st.lists(calls, max_size=2), where)


@st.composite
def trajectories(draw: st.DrawFn, place: int) -> Trajectory:
    plan = PLANS[place]
    made_turns = [draw(turns(plan.episode_id, number)) for number in range(draw(st.integers(0, 3)))]
    return made.trajectory(*made_turns, of=plan, passed=draw(st.sampled_from([None, True, False])))


@st.composite
def variations(draw: st.DrawFn) -> tuple[Trajectory, Trajectory]:
    """A trajectory, and the same with one turn replaced: near pairs, which two random ones seldom are."""
    first = draw(trajectories(0))
    copied = tuple(replace(turn, episode_id=PLANS[1].episode_id) for turn in first.turns)
    if copied and draw(st.booleans()):
        number = draw(st.integers(0, len(copied) - 1))
        copied = (*copied[:number], draw(turns(PLANS[1].episode_id, number)), *copied[number + 1 :])
    return first, made.trajectory(*copied, of=PLANS[1], passed=first.passed)


PAIRS = st.tuples(trajectories(0), trajectories(1)) | variations()


def swapped(found: Divergence) -> Divergence:
    """The same divergence seen from the other side."""
    kind, colon, values = found.cause.partition(": ")
    if found.cause_kind is CauseKind.PROMPT and "from character" in found.cause:
        kind, colon, values = found.cause.partition(" on: ")
    left, _, right = values.partition(" against ")
    return replace(
        found,
        episode_a=found.episode_b,
        episode_b=found.episode_a,
        repeat_a=found.repeat_b,
        repeat_b=found.repeat_a,
        text_a=found.text_b,
        text_b=found.text_a,
        margin_a=found.margin_b,
        margin_b=found.margin_a,
        cause=f"{kind}{colon}{right} against {left}" if " against " in values else found.cause,
    )


@settings(deadline=None, max_examples=60)
@given(trajectories(0))
def test_a_trajectory_agrees_with_itself(one: Trajectory) -> None:
    assert compare(one, one) is None


@settings(deadline=None, max_examples=60)
@given(strategies.turns("run", "run/00000", 0))
def test_any_recordable_turn_agrees_with_itself(turn: Turn) -> None:
    one = made.trajectory(turn)
    assert compare(one, one) is None


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_the_order_of_the_two_does_not_matter(pair: tuple[Trajectory, Trajectory]) -> None:
    there, back = compare(*pair), compare(*reversed(pair))
    assert back == (None if there is None else swapped(there))


@settings(deadline=None, max_examples=60)
@given(PAIRS, st.floats(0, 100), st.text(max_size=5))
def test_times_waits_and_ids_do_not_matter(pair: tuple[Trajectory, Trajectory], seconds: float, text: str) -> None:
    def renamed(turn: Turn) -> Turn:
        calls = tuple(replace(call, server_call_id=text, call_id=text) for call in turn.tool_calls)
        response = {**turn.response, "id": text, "created": seconds}
        return replace(turn, elapsed_s=seconds, queued_s=seconds, response=response, tool_calls=calls)

    left, right = pair
    episode = replace(right.episode, elapsed_s=seconds)
    other = replace(right, episode=episode, turns=tuple(map(renamed, right.turns)))
    assert compare(left, other) == compare(left, right)


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_agreement_at_a_level_holds_at_every_looser_one(pair: tuple[Trajectory, Trajectory]) -> None:
    """Equal tokens at every turn and equal calls leave nothing looser to differ but the grades."""
    found = compare(*pair)
    views: dict[Level, list[Any]] = {
        Level.LOGPROBS: [
            [(t.output_ids, t.logprobs, t.runner_up_tokens, t.runner_up_logprobs) for t in one.turns] for one in pair
        ],
        Level.TOKENS: [[t.output_ids for t in one.turns] for one in pair],
        Level.CALLS: [
            [(c.tool, canonical_arguments(c.arguments)) for t in one.turns for c in t.tool_calls] for one in pair
        ],
        Level.TOOLS: [[c.tool for t in one.turns for c in t.tool_calls] for one in pair],
        Level.OUTCOME: [one.passed for one in pair],
    }
    unequal = [level for level in ORDER if views[level][0] != views[level][1]]
    assert (found.level if found else None) == (unequal[-1] if unequal else None)


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_a_prompt_that_differs_comes_before_what_follows_from_it(pair: tuple[Trajectory, Trajectory]) -> None:
    found = compare(*pair)
    if found is None:
        return
    prompts = [
        number
        for number, (x, y) in enumerate(zip(pair[0].turns, pair[1].turns, strict=False))
        if (x.prompt_kept, x.prompt_added) != (y.prompt_kept, y.prompt_added)
    ]
    assert not prompts or found.turn <= prompts[0]
    if prompts and found.turn == prompts[0]:
        assert (found.token, found.cause_kind) == (None, CauseKind.PROMPT)


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_everything_before_the_place_agrees(pair: tuple[Trajectory, Trajectory]) -> None:
    found = compare(*pair)
    if found is None:
        return
    before = [made.trajectory(*one.turns[: found.turn], of=one.episode.plan, passed=True) for one in pair]
    rest = compare(*before)
    # A logprob that differs before a token does is no place of a divergence in tokens, calls, tools or outcome.
    assert rest is None or (rest.level is Level.LOGPROBS and found.level is not Level.LOGPROBS)


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_nothing_before_the_token_differs(pair: tuple[Trajectory, Trajectory]) -> None:
    found = compare(*pair)
    if found is None or found.token is None:
        return
    rows = [token_rows(one.turns[found.turn])[: found.token + 1] for one in pair]
    if found.level is not Level.LOGPROBS:
        rows = [[row[:1] for row in side] for side in rows]
    assert rows[0] != rows[1]
    assert rows[0][: found.token] == rows[1][: found.token]


@settings(deadline=None, max_examples=60)
@given(trajectories(0))
def test_a_full_prompt_is_what_was_kept_and_what_was_added(one: Trajectory) -> None:
    prompts = full_prompts(one.turns)
    before: tuple[int, ...] = ()
    for turn, prompt in zip(one.turns, prompts, strict=True):
        kept = min(turn.prompt_kept, len(before))
        assert (prompt[:kept], prompt[kept:]) == (before[:kept], turn.prompt_added)
        before = prompt + turn.output_ids


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 1), max_size=4), st.lists(st.integers(0, 1), max_size=4))
def test_the_first_difference_ends_what_two_rows_share(a: list[int], b: list[int]) -> None:
    place = first_difference(a, b)
    assert (place is None) == (a == b)
    assert a[:place] == b[:place]
    assert place is None or a[place : place + 1] != b[place : place + 1]


@settings(deadline=None, max_examples=60)
@given(strategies.OBJECTS)
def test_arguments_have_one_form_whatever_their_layout(value: dict[str, Any]) -> None:
    backwards = dict(reversed(value.items()))
    assert canonical_arguments(json.dumps(value)) == canonical_arguments(json.dumps(backwards, indent=1))


@settings(deadline=None, max_examples=60)
@given(strategies.OBJECTS)
def test_the_one_form_is_its_own_form(value: dict[str, Any]) -> None:
    once = canonical_arguments(json.dumps(value))
    assert canonical_arguments(once) == once


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_what_comes_after_is_the_same_from_either_side(pair: tuple[Trajectory, Trajectory]) -> None:
    there, back = (compare_pair(*sides).aftermath for sides in (pair, tuple(reversed(pair))))
    if there is None or back is None:
        assert there is back
        return
    turned = None if there.rejoins is None else (there.rejoins[1], there.rejoins[0])
    assert (back.turns_apart, back.rejoins, back.outcome_differs) == (
        there.turns_apart,
        turned,
        there.outcome_differs,
    )


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_from_where_they_rejoin_calls_and_results_are_equal_to_the_end(pair: tuple[Trajectory, Trajectory]) -> None:
    comparison = compare_pair(*pair)
    if comparison.divergence is None or comparison.aftermath is None or comparison.aftermath.rejoins is None:
        return
    tails = [
        [[(call_asked(call), call_answered(call)) for call in turn.tool_calls] for turn in side.turns[start:]]
        for side, start in zip(pair, comparison.aftermath.rejoins, strict=True)
    ]
    assert tails[0] == tails[1]
    assert min(comparison.aftermath.rejoins) >= comparison.divergence.turn


@settings(deadline=None, max_examples=60)
@given(PAIRS, st.lists(st.text(min_size=1, max_size=8), max_size=2))
def test_the_cause_is_the_first_sign(pair: tuple[Trajectory, Trajectory], settings_: list[str]) -> None:
    comparison = compare_pair(*pair, settings=settings_)
    if comparison.divergence is None:
        assert comparison.signs == ()
        return
    assert comparison.signs[0] == comparison.divergence.cause
    assert len(set(comparison.signs)) == len(comparison.signs)
