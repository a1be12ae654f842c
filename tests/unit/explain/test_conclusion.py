"""What trials say together: a table of outcomes made by hand, and how they are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from golden_files import check_golden

from agenteval.explain import Answer, Condition, Explanation, Subject, Trial
from agenteval.explain.conclusion import explanation_of
from agenteval.explain.model import ChangeKind
from agenteval.report.explanation import explanation_exit_code, explanation_json, explanation_text

HOSTILE = "\x1b[2J\u202e"


def answer(*tokens: str, logprob: float = -0.5) -> Answer:
    return Answer(
        token_ids=tuple(map(hash, tokens)),
        tokens=tokens,
        logprobs=(logprob,) * len(tokens),
        runner_up_tokens=("?",) * len(tokens),
        runner_up_logprobs=(-1.0,) * len(tokens),
    )


SUBJECT = Subject(
    label="task/base sample 0 repeat 0 against task/base sample 0 repeat 1",
    turn=1,
    token=1,
    signs=("cached tokens differ: 0 against 48",),
    prompt_ids=tuple(range(60)),
    first_prompt_ids=tuple(range(40)),
    requests=(({},), ({},)),
    answers=(answer("x", "left"), answer("x", "right")),
    cached_tokens=(0, 48),
    first_cached_tokens=(0, 0),
    requests_in_flight=(1, 1),
)
KINDS: dict[str, ChangeKind] = {"cold": "none", "warm": "cache", "warmer": "cache", "crowd": "batching", "boot": "boot"}
WORDS: dict[str, dict[str, Any]] = {
    "a": {"match": "a", "departs_at": None},
    "b": {"match": "b", "departs_at": None, "answer": SUBJECT.answers[1]},
    "n": {"match": "neither", "departs_at": 0, "answer": answer("y", "left"), "is_exact": False},
    "m": {"match": "neither", "departs_at": 1, "answer": answer("x", "other"), "is_exact": False},
    "u": {"match": "a", "departs_at": None, "is_reached": False},
    "v": {"match": "a", "departs_at": None, "is_same_prompt": False},
}
"""A letter to what a trial was."""


def trial(name: str, attempt: int, letter: str) -> Trial:
    made = Trial(
        condition=Condition(name=name, kind=KINDS[name]),
        attempt=attempt,
        request_id=f"chatcmpl-{name}-{attempt}",
        cache_salt=f"salt-{name}-{attempt}",
        is_same_prompt=True,
        cached_tokens=0,
        requests_in_flight=1,
        is_reached=True,
        answer=SUBJECT.answers[0],
        match="a",
        is_exact=True,
        departs_at=None,
        candidate_logprobs=(-0.5, -0.625),
    )
    return replace(made, **WORDS[letter])


def explained(subject: Subject = SUBJECT, **letters: str) -> Explanation:
    """By condition, one letter a trial."""
    trials = [
        trial(name, attempt, letter) for name, row in letters.items() for attempt, letter in enumerate(row, start=1)
    ]
    changes = ("cache.mode: disabled in the run, per_episode here, so that a part of the prompt can be warm",)
    return explanation_of(subject, changes, trials)


@pytest.mark.parametrize(
    ("letters", "flips", "code"),
    [
        ({"cold": "aa", "warm": "bb", "crowd": "aa"}, ("cache",), 0),
        ({"cold": "bb", "warm": "aa", "crowd": "bb"}, ("cache",), 0),
        ({"cold": "aa", "warm": "aa", "crowd": "bb"}, ("batching",), 0),
        ({"cold": "aa", "boot": "bb"}, ("boot",), 0),
        ({"cold": "aa", "warm": "bb", "crowd": "bb"}, ("cache", "batching"), 1),
        ({"cold": "aa", "warm": "aa", "crowd": "aa", "boot": "aa"}, (), 1),
        ({"cold": "aa", "warm": "ab"}, (), 1),
        ({"cold": "aa", "warm": "nn"}, (), 1),
        ({"cold": "aa", "warm": "uu"}, (), 1),
        ({"cold": "nn", "warm": "aa", "warmer": "bb"}, ("cache",), 0),
        ({"cold": "nn", "warm": "aa", "crowd": "bb"}, (), 1),
        ({"cold": "ab", "warm": "bb"}, (), 1),
        ({"cold": "nn", "warm": "mm"}, (), 2),
        ({"cold": "nm"}, (), 2),
        ({"cold": "au", "warm": "bb"}, (), 2),
        ({"cold": "vv", "warm": "vv"}, (), 2),
        ({"cold": "aa", "warm": "bv"}, (), 2),
    ],
    ids=lambda value: " ".join(f"{name}={row}" for name, row in value.items()) if isinstance(value, dict) else None,
)
def test_what_alone_flips_the_answer(letters: dict[str, str], flips: tuple[str, ...], code: int) -> None:
    found = explained(**letters)
    assert (found.flips, explanation_exit_code(found)) == (flips, code)
    assert found.conclusion.endswith(".")
    assert explanation_json(found)["exit_code"] == code


def test_the_text() -> None:
    letters = {"cold": "aa", "warm": "bb", "crowd": "nm", "boot": "au"}
    check_golden("explanation/flipped.txt", explanation_text(explained(**letters)) + "\n")


def test_the_text_where_only_logprobs_differ() -> None:
    subject = replace(SUBJECT, answers=(answer("x", "left"), answer("x", "left", logprob=-0.5000001)))
    check_golden("explanation/logprobs.txt", explanation_text(explained(subject, cold="aa", warm="bb")) + "\n")


def test_what_a_model_wrote_steers_no_terminal() -> None:
    subject = replace(
        SUBJECT,
        label=f"task{HOSTILE}",
        signs=(f"settings differ: {HOSTILE}",),
        answers=(answer("x", HOSTILE), answer("x", f"\n{HOSTILE}")),
    )
    found = explained(subject, cold="aa")
    hostile = [replace(one, answer=subject.answers[0]) for one in found.trials]
    text = explanation_text(replace(found, trials=tuple(hostile)))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert repr(HOSTILE) in text
