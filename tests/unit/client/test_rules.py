"""What is written into every request, what is let through, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import run_records as made
from fake_vllm.protocol import REQUEST_FIELDS
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.client import RequestRules, check_accepted
from agenteval.client.rules import UNCOVERED
from agenteval.contract import Sampling
from agenteval.errors import RequestContradictsContractError, UnsupportedClauseError

CONTRACT = made.contract()
SALTED = made.plan(cache_salt="salt-0", seed=77)
RULES = RequestRules.of(CONTRACT, SALTED, model_name="served", max_tokens=64)
MESSAGES = [{"role": "user", "content": "hello"}]
ALWAYS = {
    **CONTRACT.sampling.model_dump(mode="json"),
    "seed": 77,
    "cache_salt": "salt-0",
    "model": "served",
    "logprobs": True,
    "top_logprobs": 2,
    "return_token_ids": True,
}
OTHER_VALUES: dict[str, Any] = {
    "temperature": 0.7,
    "seed": 78,
    "top_p": 0.9,
    "top_k": 5,
    "min_p": 0.1,
    "presence_penalty": 1.0,
    "frequency_penalty": 1.0,
    "repetition_penalty": 1.1,
    "min_tokens": 3,
    "ignore_eos": True,
    "stop": ["\n"],
    "stop_token_ids": [7],
    "bad_words": ["no"],
    "logit_bias": {"5": 1.0},
    "allowed_token_ids": [5],
    "model": "another",
    "logprobs": False,
    "top_logprobs": 5,
    "return_token_ids": False,
    "cache_salt": "mine",
}
UNCOVERED_VALUES: dict[str, Any] = {
    "use_beam_search": True,
    "length_penalty": 0.5,
    "prompt_logprobs": 1,
    "logprob_token_ids": [1],
    "truncate_prompt_tokens": 10,
    "thinking_token_budget": 10,
    "repetition_detection": {"max": 1},
    "watermarking": True,
    "kv_transfer_params": {"a": 1},
    "vllm_xargs": {"a": 1},
    "chat_template": "{{ messages }}",
    "logits_processors": ["x"],
    "return_tokens_as_token_ids": True,
    "echo": True,
    "stream": True,
    "n": 2,
    "best_of": 2,
}


def test_every_fixed_field_is_written() -> None:
    sent = RULES.apply({"messages": MESSAGES})
    assert sent == {"messages": MESSAGES, **ALWAYS, "max_completion_tokens": 64}


def test_every_sampling_field_of_a_contract_is_written() -> None:
    assert set(Sampling.model_fields) <= set(RULES.apply({"messages": MESSAGES}))


def test_the_tables_cover_every_fixed_and_every_uncovered_field() -> None:
    assert set(OTHER_VALUES) == set(ALWAYS)
    assert set(UNCOVERED_VALUES) == set(UNCOVERED)


@pytest.mark.parametrize("field", sorted(ALWAYS))
def test_an_equal_value_is_accepted(field: str) -> None:
    assert RULES.apply({"messages": MESSAGES, field: ALWAYS[field]})[field] == ALWAYS[field]


@pytest.mark.parametrize("field", sorted(ALWAYS))
def test_a_null_is_no_wish(field: str) -> None:
    assert RULES.apply({"messages": MESSAGES, field: None})[field] == ALWAYS[field]


@pytest.mark.parametrize(("field", "value"), sorted(OTHER_VALUES.items()))
def test_another_value_is_a_contradiction(field: str, value: Any) -> None:
    with pytest.raises(RequestContradictsContractError) as caught:
        RULES.apply({"messages": MESSAGES, field: value})
    assert (caught.value.field, caught.value.requested, caught.value.fixed) == (field, value, ALWAYS[field])
    assert str(caught.value).endswith(f"Leave the field out of the agent, or change {field} in the contract.")


@pytest.mark.parametrize(("field", "value"), sorted(UNCOVERED_VALUES.items()))
def test_a_field_that_no_clause_covers_is_refused(field: str, value: Any) -> None:
    with pytest.raises(RequestContradictsContractError) as caught:
        RULES.apply({"messages": MESSAGES, field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("field", sorted(UNCOVERED))
def test_an_uncovered_field_at_its_neutral_value_is_let_through(field: str) -> None:
    for value in (UNCOVERED[field], None):
        assert RULES.apply({"messages": MESSAGES, field: value})[field] == value


def test_a_salt_is_refused_where_the_contract_sends_none() -> None:
    rules = RequestRules.of(CONTRACT, made.plan(), model_name="served", max_tokens=64)
    assert "cache_salt" not in rules.apply({"messages": MESSAGES})
    with pytest.raises(RequestContradictsContractError, match="cache_salt"):
        rules.apply({"messages": MESSAGES, "cache_salt": "mine"})


@pytest.mark.parametrize(
    ("wished", "limit"),
    [
        pytest.param({}, 64, id="none"),
        pytest.param({"max_tokens": 9}, 9, id="the old name"),
        pytest.param({"max_completion_tokens": 8}, 8, id="the new name"),
        pytest.param({"max_tokens": 9, "max_completion_tokens": 8}, 8, id="both"),
        pytest.param({"max_tokens": None}, 64, id="null"),
    ],
)
def test_one_limit_of_output_is_sent_under_one_name(wished: dict[str, Any], limit: int) -> None:
    sent = RULES.apply({"messages": MESSAGES, **wished})
    assert sent["max_completion_tokens"] == limit
    assert "max_tokens" not in sent


OWN = sorted(set(REQUEST_FIELDS) - set(ALWAYS) - set(UNCOVERED) - {"max_tokens", "max_completion_tokens"})


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from(OWN), st.integers() | st.text(), max_size=5))
def test_what_is_the_agents_own_is_sent_as_it_is(own: dict[str, Any]) -> None:
    body = {**own, "messages": MESSAGES}
    sent = RULES.apply(body)
    assert {key: sent[key] for key in body} == body
    assert body == {**own, "messages": MESSAGES}, "the agent's own request is not changed"


def test_a_server_that_knows_every_field_is_accepted() -> None:
    check_accepted(RULES, frozenset(REQUEST_FIELDS), "strict")


def test_a_server_that_publishes_nothing_proves_nothing() -> None:
    check_accepted(RULES, frozenset(), "strict")


@pytest.mark.parametrize("field", sorted(ALWAYS))
def test_a_server_that_lacks_a_field_is_refused(field: str) -> None:
    with pytest.raises(UnsupportedClauseError) as caught:
        check_accepted(RULES, frozenset(REQUEST_FIELDS) - {field}, "strict")
    assert caught.value.reasons == (f"sampling: this server's chat completions have no field {field!r}",)
