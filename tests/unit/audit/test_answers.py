"""What one stored answer shows of itself."""

from __future__ import annotations

import math
from typing import Any

import pytest
import run_records as made
from hypothesis import given
from hypothesis import strategies as st

from agenteval.audit.answers import disobedience, is_distribution, is_greedy, says_its_tokens
from agenteval.records import Turn

CALL = '{"name": "look", "arguments": {"id": 7, "deep": [1, 2]}}'
GUIDED = '[{"name": "look", "parameters": {"id": 7}}]'


def answer(text: str = "abc", calls: list[tuple[str, str]] | None = None, **fields: Any) -> Turn:
    """A turn whose tokens are the letters of a text."""
    message = {"tool_calls": [{"function": {"name": name, "arguments": given}} for name, given in calls or []]}
    letters = tuple(text)
    return made.turn(
        output_tokens=letters,
        output_ids=tuple(range(11, 11 + len(letters))),
        logprobs=(-0.25,) * len(letters),
        runner_up_logprobs=(-2.0,) * len(letters),
        response={"choices": [{"message": message}]},
        **fields,
    )


def asked(**fields: Any) -> Turn:
    """An answer of three tokens, 11, 12 and 13, to a request with these fields."""
    return answer(content="abc", finish_reason="stop", request={"temperature": 0.0, **fields})


@pytest.mark.parametrize(
    ("fields", "greedy"),
    [
        pytest.param({}, True, id="greedy"),
        pytest.param({"tool_choice": "auto"}, True, id="free to call"),
        pytest.param({"temperature": 0.1}, False, id="drawn"),
        pytest.param({"tool_choice": "required"}, False, id="made to call"),
        pytest.param({"tool_choice": {"type": "function"}}, False, id="made to call one tool"),
        pytest.param({"response_format": {"type": "json_object"}}, False, id="a format"),
        pytest.param({"logit_bias": {"5": 1.0}}, False, id="a bias"),
        pytest.param({"presence_penalty": 0.0, "repetition_penalty": 1.0, "bad_words": []}, True, id="neutral"),
        pytest.param({"repetition_penalty": 1.1}, False, id="a penalty"),
        pytest.param({"min_tokens": 2}, False, id="the end token kept away"),
    ],
)
def test_an_answer_is_greedy_where_nothing_keeps_the_likeliest_token_away(fields: dict[str, Any], greedy: bool) -> None:
    assert is_greedy(asked(**fields)) is greedy


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({}, [], id="nothing asked"),
        pytest.param({"allowed_token_ids": [11, 12, 13]}, [], id="allowed"),
        pytest.param({"allowed_token_ids": [11, 12]}, ["allowed_token_ids"], id="not allowed"),
        pytest.param({"min_tokens": 3}, [], id="long enough"),
        pytest.param({"min_tokens": 4}, ["fewer than min_tokens 4"], id="too short"),
        pytest.param({"stop_token_ids": [13]}, [], id="ended at a stop token"),
        pytest.param({"stop_token_ids": [12]}, ["after one of stop_token_ids"], id="went on after a stop token"),
        pytest.param({"stop_token_ids": [11], "min_tokens": 3}, [], id="a stop token that came too early"),
        pytest.param({"logit_bias": {"12": -100.0}}, ["logit_bias bans"], id="a banned token"),
        pytest.param({"logit_bias": {"12": -5.0, "99": -100.0}}, [], id="an unlikely token"),
    ],
)
def test_an_answer_may_not_do_what_its_request_forbids(fields: dict[str, Any], words: list[str]) -> None:
    found = list(disobedience(asked(**fields)))
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))


@pytest.mark.parametrize(
    ("text", "least", "found"),
    [
        pytest.param("a stop." + "b" * 20, 0, 1, id="far behind it"),
        pytest.param("a stop." + "b" * 20, 5, 0, id="with a least length"),
        pytest.param("a stop." + "b" * 3, 0, 0, id="as far as was drafted"),
        pytest.param("a stop" + "b" * 20, 0, 0, id="another text"),
    ],
)
def test_an_answer_ends_at_a_stop_text(text: str, least: int, found: int) -> None:
    turn = answer(text, request={"temperature": 0.0, "stop": ["stop."], "min_tokens": least})
    assert len(list(disobedience(turn))) == found


@pytest.mark.parametrize(("rival", "obeys"), [(-2.0, True), (-0.25, True), (-0.2, False), (None, True)])
def test_a_greedy_token_has_no_likelier_rival(rival: float | None, obeys: bool) -> None:
    turn = made.turn(request={"temperature": 0.0}, logprobs=(-0.25,) * 3, runner_up_logprobs=(-2.0, rival, None))
    assert (list(disobedience(turn)) == []) is obeys


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        pytest.param(answer(content="abc"), True, id="its text"),
        pytest.param(answer("  abc<|im_end|>", content="abc"), True, id="its text without what ends it"),
        pytest.param(answer(content=None), True, id="no text"),
        pytest.param(answer(content="abd"), False, id="another text"),
        pytest.param(answer("ab\ufffd", content="other"), None, id="cut characters"),
        pytest.param(answer(CALL, [("look", '{"deep": [1,2], "id": 7}')]), True, id="a call, spaced otherwise"),
        pytest.param(
            answer(f"<tool_call>\n{CALL}\n</tool_call>", [("look", '{"id":7,"deep":[1,2]}')]), True, id="tags"
        ),
        pytest.param(answer(GUIDED, [("look", '{"id": 7}')]), True, id="a guided call"),
        pytest.param(answer(GUIDED, [("look", '{"id": 8}')]), False, id="other arguments"),
        pytest.param(answer(GUIDED, [("push", '{"id": 7}')]), False, id="another tool"),
        pytest.param(answer(GUIDED, [("look", '{"id": 7}'), ("look", '{"id": 9}')]), False, id="a call too many"),
        pytest.param(answer("look(id=7)", [("look", '{"id": 7}')]), None, id="another syntax"),
        pytest.param(answer(GUIDED, [("look", "{id")]), None, id="arguments that are no JSON"),
    ],
)
def test_an_answer_says_its_tokens(turn: Turn, says: bool | None) -> None:
    assert says_its_tokens(turn) is says


@given(st.lists(st.floats(0.001, 1.0), min_size=2, max_size=5), st.integers(0, 4))
def test_parts_of_a_distribution_are_taken_for_such(weights: list[float], place: int) -> None:
    logprobs = sorted((math.log(weight / sum(weights)) for weight in weights), reverse=True)
    chosen = logprobs.pop(place % len(logprobs))
    assert is_distribution(made.turn(logprobs=(chosen,) * 3, runner_up_logprobs=(logprobs[0],) * 3))


@pytest.mark.parametrize(("chosen", "rival"), [(0.5, None), (-0.1, -0.1), (-0.5, 0.3)])
def test_more_than_certain_is_no_distribution(chosen: float, rival: float | None) -> None:
    assert not is_distribution(made.turn(logprobs=(-1.0, chosen, -1.0), runner_up_logprobs=(None, rival, None)))
