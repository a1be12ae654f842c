"""Where two trajectories part: a table of pairs made by hand, one place and cause each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import run_records as made

from agenteval.compare import (
    Aftermath,
    Trajectory,
    canonical_arguments,
    compare,
    compare_pair,
    compare_repeats,
    compare_stored,
    differs_at,
    passed_by_episode,
)
from agenteval.records import CauseKind, Divergence, EpisodeStatus, Grade, Level, Turn

OTHER = made.plan(1)


def pair(*changes: dict[str, Any], **episode: Any) -> tuple[Trajectory, Trajectory]:
    """Two repeats of as many turns as changes; in the second, each turn has its changes."""
    left = [made.turn(number) for number in range(len(changes))]
    right = [replace(made.turn(number, OTHER), **fields) for number, fields in enumerate(changes)]
    return made.trajectory(*left), made.trajectory(*right, of=OTHER, **episode)


def divergence_of(*changes: dict[str, Any], **episode: Any) -> Divergence:
    found = compare(*pair(*changes, **episode))
    assert found is not None
    return found


LOGPROB = {"logprobs": (-0.25, -0.5001, -0.125)}
TOKEN = {"output_ids": (11, 99, 13), "output_tokens": ("a", "z", "c"), "logprobs": (-0.25, -0.4, -0.125)}
LONGER = {
    "output_ids": (11, 12, 13, 14),
    "output_tokens": ("a", "b", "c", "d"),
    "logprobs": (-0.25, -0.5, -0.125, -1.0),
    "runner_up_tokens": ("x", "y", None, "q"),
    "runner_up_logprobs": (-2.25, -1.0, None, -1.5),
}
CALL = {**TOKEN, "tool_calls": (made.call(arguments='{"id":2}'),)}
TOOL = {**TOKEN, "tool_calls": (made.call(tool="take"),)}
RESULT = {"tool_calls": (made.call(result='{"found":2}'),)}
PROMPT = {"prompt_added": (1, 2, 3)}

TABLE: list[tuple[str, list[dict[str, Any]], dict[str, Any], tuple[Level, int, int | None]]] = [
    ("a logprob", [{}, LOGPROB], {}, (Level.LOGPROBS, 1, 1)),
    ("a runner-up", [{"runner_up_tokens": ("x", "w", None)}], {}, (Level.LOGPROBS, 0, 1)),
    ("a runner-up's logprob", [{"runner_up_logprobs": (-2.25, -1.0, -9.0)}], {}, (Level.LOGPROBS, 0, 2)),
    ("a token", [{}, TOKEN], {}, (Level.TOKENS, 1, 1)),
    ("a token after a logprob", [LOGPROB, TOKEN], {}, (Level.TOKENS, 1, 1)),
    ("a longer output", [LONGER], {}, (Level.TOKENS, 0, 3)),
    ("a call's arguments", [CALL], {}, (Level.CALLS, 0, 1)),
    ("another tool", [TOOL], {}, (Level.TOOLS, 0, 1)),
    ("another outcome", [TOKEN], {"passed": False}, (Level.OUTCOME, 0, 1)),
    ("only the grades", [{}, {}], {"passed": False}, (Level.OUTCOME, 2, None)),
    ("one not graded", [{}], {"passed": None}, (Level.OUTCOME, 1, None)),
    ("a tool's result, then the grades", [RESULT], {"passed": False}, (Level.OUTCOME, 0, None)),
    ("a prompt, then a token", [{}, {**PROMPT, **TOKEN}], {}, (Level.TOKENS, 1, None)),
    ("a prompt, then a logprob", [{}, {**PROMPT, **LOGPROB}], {}, (Level.LOGPROBS, 1, None)),
    ("a result before the prompt", [RESULT, {**PROMPT, **TOKEN}], {}, (Level.TOKENS, 0, None)),
]


@pytest.mark.parametrize(("changes", "episode", "place"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_level_and_place(
    changes: list[dict[str, Any]], episode: dict[str, Any], place: tuple[Level, int, int | None]
) -> None:
    found = divergence_of(*changes, **episode)
    assert (found.level, found.turn, found.token) == place


def test_another_turn_is_the_end_of_the_shorter_one() -> None:
    left, right = pair({}, {})
    found = compare(replace(left, turns=left.turns[:1]), right)
    assert found is not None
    assert (found.level, found.turn, found.token) == (Level.TOOLS, 1, None)
    assert (found.text_a, found.text_b) == ("(the episode has ended)", 'look: {"found":1}')
    assert found.cause == "one trajectory has more turns"


@pytest.mark.parametrize(
    ("changes", "episode", "cause"),
    [
        pytest.param(
            [{**PROMPT, **TOKEN, "cached_tokens": 16}],
            {},
            "the prompts differ: equal messages, from which the template or tokenizer made other ids",
            id="prompt first",
        ),
        pytest.param([{**TOKEN, "boot_id": "b", "cached_tokens": 16}], {}, "another boot", id="then boot"),
        pytest.param(
            [{**TOKEN, "cached_tokens": 16, "requests_in_flight": 2}],
            {},
            "cached tokens differ: 0 against 16",
            id="then cache",
        ),
        pytest.param(
            [{"cached_tokens": 16}, {**TOKEN, "requests_in_flight": 3}],
            {},
            "cached tokens differ: 0 against 16",
            id="a hit in an earlier turn",
        ),
        pytest.param([{**TOKEN, "cached_tokens": None}], {}, "cached tokens differ: 0 against unknown", id="unknown"),
        pytest.param(
            [{**TOKEN, "requests_in_flight": 3}], {}, "other requests in flight: 1 against 3", id="then company"
        ),
        pytest.param(
            [{"requests_in_flight": 2}, TOKEN], {}, "other requests in flight: 1 against 2", id="company before"
        ),
        pytest.param([TOKEN], {}, "unexplained", id="nothing left"),
        pytest.param([RESULT], {"passed": False}, "the tools answered otherwise", id="tools"),
        pytest.param([{}], {"passed": False}, "the grades differ, the trajectories do not", id="grades"),
    ],
)
def test_the_cause_is_found_by_elimination(changes: list[dict[str, Any]], episode: dict[str, Any], cause: str) -> None:
    assert divergence_of(*changes, **episode).cause == cause


def test_equal_company_above_one_can_be_a_cause() -> None:
    left, right = pair(TOKEN)
    crowd = [replace(item, turns=(replace(item.turns[0], requests_in_flight=4),)) for item in (left, right)]
    found = compare(*crowd)
    assert found is not None
    assert found.cause == "company of other requests, 4 in flight on both sides"


def test_texts_and_margins_are_those_of_the_place() -> None:
    found = divergence_of({}, TOKEN)
    assert (found.text_a, found.text_b) == ("bc", "zc")
    assert found.margin_a == pytest.approx(-0.5 + 1.0)
    assert found.margin_b == pytest.approx(-0.4 + 1.0)
    assert (found.repeat_a, found.repeat_b, found.episode_a) == (0, 1, "run-1/00000")


@pytest.mark.parametrize(
    ("change", "margin"),
    [
        pytest.param({"runner_up_logprobs": (-2.25, None, None), **TOKEN}, None, id="no runner-up"),
        pytest.param({**TOKEN, "runner_up_logprobs": (-2.25, -0.1, None)}, -0.3, id="guided: the rival was likelier"),
    ],
)
def test_a_margin_may_be_unknown_or_negative(change: dict[str, Any], margin: float | None) -> None:
    found = divergence_of(change).margin_b
    assert found == (None if margin is None else pytest.approx(margin))


def test_an_output_that_has_ended_has_no_margin() -> None:
    found = divergence_of(LONGER)
    assert (found.text_a, found.margin_a) == ("(the output has ended)", None)
    assert found.margin_b == pytest.approx(0.5)


def test_all_repeats_are_compared_with_the_first_that_was_run() -> None:
    plans = [made.plan(place, repeat=place) for place in range(4)]
    turns = [made.turn(0, plan) for plan in plans]
    changed = replace(turns[2], **TOKEN)
    run = [
        made.trajectory(changed, of=plans[2]),
        made.trajectory(turns[3], of=plans[3]),
        made.trajectory(turns[0], of=plans[0], status=EpisodeStatus.NOT_RUN),
        made.trajectory(turns[1], of=plans[1]),
    ]
    assert [(found.repeat_a, found.repeat_b) for found in compare_repeats(run)] == [(1, 2)]


def test_other_samples_variants_and_tasks_are_never_compared() -> None:
    plans = [
        made.plan(0),
        made.plan(1, sample=1, repeat=0),
        made.plan(2, variant="other", repeat=0),
        made.plan(3, task="t"),
    ]
    changed: list[Turn] = [made.turn(0, plans[0])]
    changed += [replace(made.turn(0, plan), **TOKEN) for plan in plans[1:]]
    assert not list(compare_repeats(made.trajectory(turn, of=plan) for turn, plan in zip(changed, plans, strict=True)))


@pytest.mark.parametrize("level", list(Level))
def test_a_divergence_counts_at_its_level_and_at_every_stricter_one(level: Level) -> None:
    found = replace(divergence_of(TOKEN), level=level)
    strictest_first = list(Level)
    counted = [other for other in strictest_first if differs_at(found, other)]
    assert counted == strictest_first[: strictest_first.index(level) + 1]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param('{"a": 1, "b": 2}', '{"b":2,"a":1}', id="key order and blanks"),
        pytest.param('{"a": 5.0}', '{"a": 5}', id="an integer as a float"),
        pytest.param('{"a": [1.0, {"b": 2.0}]}', '{"a": [1, {"b": 2}]}', id="nested"),
        pytest.param('{"a": "\\u00e9"}', '{"a": "é"}', id="an escape"),
        pytest.param('{"a": 1e2}', '{"a": 100}', id="an exponent"),
    ],
)
def test_equal_arguments_have_one_form(left: str, right: str) -> None:
    assert canonical_arguments(left) == canonical_arguments(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param('{"a": 1}', '{"a": "1"}', id="a number and a text"),
        pytest.param('{"a": 1}', '{"a": true}', id="a number and a truth"),
        pytest.param('{"a": [1, 2]}', '{"a": [2, 1]}', id="another order of items"),
        pytest.param('{"a": 1.5}', '{"a": 1}', id="a fraction"),
        pytest.param('{"a": ', '{"a":', id="no JSON: byte for byte"),
    ],
)
def test_unequal_arguments_stay_unequal(left: str, right: str) -> None:
    assert canonical_arguments(left) != canonical_arguments(right)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": NaN}'], ids=["empty", "open", "deep", "NaN"])
def test_what_is_no_json_stays_as_it_is(text: str) -> None:
    assert canonical_arguments(text) == text


def test_stored_episodes_are_compared_within_their_sample_with_their_grades() -> None:
    plans = [made.plan(place, task=f"task-{place // 2}", repeat=place % 2) for place in range(4)]
    stored = [(made.episode(plan), (made.turn(0, plan), made.turn(1, plan))) for plan in plans]
    passed = {plan.episode_id: place != 3 for place, plan in enumerate(plans)}
    [found] = compare_stored(stored, passed)
    assert (found.task, found.level, found.cause) == (
        "task-1",
        Level.OUTCOME,
        "the grades differ, the trajectories do not",
    )


def test_an_episode_passed_if_all_its_grades_did() -> None:
    def grade(episode: str, check: int, passed: bool | None) -> Grade:
        return Grade(
            run_id=made.RUN, episode_id=episode, check=check, kind="answer", passed=passed, reason="", weight=1.0
        )

    marks = [("a", True), ("b", True), ("a", True), ("b", False), ("c", None), ("c", False)]
    grades = [grade(episode, check, passed) for check, (episode, passed) in enumerate(marks)]
    assert passed_by_episode(grades) == {"a": True, "b": False, "c": None}
    assert passed_by_episode([]) == {}


def said(role: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


ASKED = said(
    "assistant",
    "",
    tool_calls=[{"id": "c-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
)


@pytest.mark.parametrize(
    ("left", "right", "cause"),
    [
        pytest.param(
            (said("user", "buy tea"),),
            (said("user", "buy two"),),
            "message 0 (user) from character 11 on: 'ea' against 'wo'",
            id="what the user said",
        ),
        pytest.param(
            (said("user", "x"), ASKED, said("tool", "12", tool_call_id="c-1")),
            (said("user", "x"), ASKED, said("tool", "13", tool_call_id="c-1")),
            "message 2 (result of look) from character 7 on",
            id="a tool's result, by the tool",
        ),
        pytest.param(
            (said("user", "x"),),
            (said("user", "x"), said("user", "y")),
            "message 1 (user) from character 0 on: '(no such message)' against 'user: y'",
            id="one message more",
        ),
    ],
)
def test_a_prompt_that_differs_names_the_message(
    left: tuple[dict[str, Any], ...], right: tuple[dict[str, Any], ...], cause: str
) -> None:
    sides = [
        made.trajectory(made.turn(0, messages_kept=0, messages_added=messages, prompt_added=prompt), of=plan)
        for messages, prompt, plan in ((left, (1, 2), made.plan(0)), (right, (1, 3), OTHER))
    ]
    # The outputs differ too, as they would.
    sides[1] = replace(sides[1], turns=(replace(sides[1].turns[0], **TOKEN),))
    found = compare(*sides)
    assert found is not None
    assert found.cause_kind is CauseKind.PROMPT
    assert cause in found.cause


def test_settings_come_before_what_the_server_showed_and_hide_none_of_it() -> None:
    left, right = pair({**TOKEN, "cached_tokens": 16, "requests_in_flight": 3})
    comparison = compare_pair(left, right, settings=("cache.mode: disabled against shared", "x: 1 against 2"))
    assert comparison.signs == (
        "settings differ: cache.mode: disabled against shared; x: 1 against 2",
        "cached tokens differ: 0 against 16",
        "other requests in flight: 1 against 3",
    )
    assert comparison.divergence is not None
    assert comparison.divergence.cause_kind is CauseKind.SETTING


def test_settings_explain_no_prompt_that_differs() -> None:
    left, right = pair({**PROMPT, **TOKEN})
    comparison = compare_pair(left, right, settings=("cache.mode: disabled against shared",))
    assert comparison.divergence is not None
    assert comparison.divergence.cause_kind is CauseKind.PROMPT


OTHER_CALL = {**CALL}
FINISH = {"tool_calls": (made.call(tool="finish"),)}


@pytest.mark.parametrize(
    ("changes", "longer", "aftermath"),
    [
        pytest.param([LOGPROB, {}], 0, Aftermath(turns_apart=0, rejoins=(0, 0), outcome_differs=False), id="logprobs"),
        pytest.param(
            [{}, OTHER_CALL, {}], 0, Aftermath(turns_apart=1, rejoins=(2, 2), outcome_differs=False), id="once"
        ),
        pytest.param(
            [{}, OTHER_CALL], 0, Aftermath(turns_apart=1, rejoins=None, outcome_differs=False), id="to the end"
        ),
        pytest.param(
            [{}, OTHER_CALL, {}], 1, Aftermath(turns_apart=2, rejoins=(2, 3), outcome_differs=False), id="a turn later"
        ),
    ],
)
def test_what_comes_after(changes: list[dict[str, Any]], longer: int, aftermath: Aftermath) -> None:
    """The turns of the first side all make the same call; the second may have turns more before the last."""
    left, right = pair(*changes)
    last = right.turns[-1]
    between = tuple(replace(last, **OTHER_CALL) for _ in range(longer))
    right = replace(right, turns=(*right.turns[:-1], *between, last))
    assert compare_pair(left, right).aftermath == aftermath


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ('{"a": 1}', '{"a": 1.0}', True),
        ('{"a": 1e2}', '{"a": 100}', True),
        ('{"a": "1"}', '{"a": 1}', False),
        ('{"a": true}', '{"a": 1}', False),
        ('{"a": 1, "a": 2}', '{"a": 2}', False),
        ('{"a": NaN}', '{"a": null}', False),
        ("no json", "no json ", False),
    ],
)
def test_calls_are_equal_by_meaning(left: str, right: str, equal: bool) -> None:
    assert (canonical_arguments(left) == canonical_arguments(right)) is equal
