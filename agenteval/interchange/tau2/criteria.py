"""What tau2-bench's reward depends on -> checks, as far as calls and the answer show it.

The reward is a product of the parts that `reward_basis` names. Two of them can be asked here: `ACTION` (the listed
calls were made) and `COMMUNICATE` (texts were said). `DB` and `ENV_ASSERTION` are about a state that only the
benchmark's code computes; the calls of its reference solution stand for it.

Source: sierra-research/tau2-bench, src/tau2/evaluator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenteval.interchange.checks import ExpectedCall, called_checks, without_templates
from agenteval.interchange.draft import Draft
from agenteval.interchange.tau2.models import Action, EvaluationCriteria, Tau2Task

_PLACE = "evaluation_criteria"
_PARTS = frozenset(("DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "NL_ASSERTION"))
_NO_PART = "the reward does not depend on it, since reward_basis does not name its part"
_STATE = (
    "the state at the end is computed by the benchmark's code; the reference solution's calls are required instead, so "
    "that another way to the same state fails"
)
_UNBOUNDED = "without a tools.py it is not known which tools write: calls that should not have been made go unnoticed"
_UNTOLD = (
    "it is not in what the agent is told, and the mocks give a fixed result: the check can be passed by a guess alone"
)
_MANY_DIGITS = re.compile(r"\d{4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNames:
    """The tools that checks can name."""

    by_source: Mapping[str, str]
    """Name in the source to the name in the suite."""
    writing: frozenset[str] | None = None
    """Names in the source of the tools that change the database; None where that is not known."""


@dataclass(slots=True)
class _Criteria:
    """The criteria of one task, on their way to checks."""

    source: str
    criteria: EvaluationCriteria
    names: ToolNames
    draft: Draft
    checks: list[dict[str, Any]] = field(default_factory=list)

    def lose(self, place: str, reason: str) -> None:
        self.draft.lose(self.source, f"{_PLACE}.{place}", reason)


def checks_of(task: Tau2Task, source: str, names: ToolNames, draft: Draft) -> list[dict[str, Any]]:
    """The checks of a task, which may be none; what no check asks is noted in the draft.

    Args:
        task: As read.
        source: Its id.
        names: The tools that its checks can name.
        draft: Takes the notes.
    """
    if task.evaluation_criteria is None:
        return []
    work = _Criteria(source=source, criteria=task.evaluation_criteria, names=names, draft=draft)
    basis = set(work.criteria.reward_basis)
    for part in sorted(basis - _PARTS):
        work.lose("reward_basis", f"the part {part!r} is not known here")
    _add_calls(work, basis)
    _add_texts(work, basis)
    for number, _ in enumerate(work.criteria.env_assertions or ()):
        work.lose(f"env_assertions[{number}]", "an assertion of the benchmark's code about its own state")
    for number, _ in enumerate(work.criteria.nl_assertions or ()):
        work.lose(f"nl_assertions[{number}]", "judged by a language model; no check here does that")
    if "NL_ASSERTION" in basis and work.criteria.nl_assertions:
        work.lose("reward_basis", "NL_ASSERTION counts in the benchmark and is not judged here")
    return work.checks


def note_untold_texts(task: Tau2Task, source: str, told: str, draft: Draft) -> None:
    """Note the texts that the agent must say and cannot know, since only the benchmark's code would tell them.

    Args:
        task: As read.
        source: Its id.
        told: All that the agent reads of the task.
        draft: Takes the notes.
    """
    criteria = task.evaluation_criteria
    if criteria is None or "COMMUNICATE" not in criteria.reward_basis:
        return
    known = told.lower().replace(",", "")
    for number, text in enumerate(criteria.communicate_info or ()):
        if text.lower().replace(",", "") not in known:
            draft.lose(source, f"{_PLACE}.communicate_info[{number}]", _UNTOLD)


def _add_calls(work: _Criteria, basis: set[str]) -> None:
    actions = list(enumerate(work.criteria.actions or ()))
    mine = []
    for number, action in actions:
        if action.info:
            work.lose(f"actions[{number}].info", "checks have no notes")
        if action.requestor == "assistant":
            mine.append((number, action))
        else:
            work.lose(f"actions[{number}]", "a call that the simulated user makes; there is no such user here")
    if "ACTION" in basis:
        work.checks += called_checks([_expected(work, *item) for item in mine], is_counted=False)
    elif basis & {"DB", "ENV_ASSERTION"}:
        calls = [_expected(work, *item) for item in mine if _is_required(work, *item)]
        work.checks += called_checks(calls, is_counted=True)
    else:
        for number, _ in mine:
            work.lose(f"actions[{number}]", _NO_PART)
    if basis & {"DB", "ENV_ASSERTION"} and (mine or work.criteria.env_assertions):
        work.lose("reward_basis", _STATE)
    # The benchmark compares no states where a task has neither of the two.
    is_compared = work.criteria.actions is not None or work.criteria.env_assertions is not None
    if "DB" in basis and is_compared:
        _add_bounds(work, [action.name for _, action in mine])


def _expected(work: _Criteria, number: int, action: Action) -> ExpectedCall:
    compared = action.arguments
    if action.compare_args is not None:
        compared = {name: value for name, value in action.arguments.items() if name in action.compare_args}
        for name in action.compare_args:
            if name not in action.arguments:
                work.lose(f"actions[{number}].compare_args", "it names an argument that the action does not have")
    return ExpectedCall(tool=work.names.by_source[action.name], arguments=compared)


def _is_required(work: _Criteria, number: int, action: Action) -> bool:
    """Whether a call stands for the state at the end: only one that writes does, where that is known."""
    if work.names.writing is None or action.name in work.names.writing:
        return True
    work.lose(f"actions[{number}]", "a call that changes no state; the benchmark does not require it either")
    return False


def _add_bounds(work: _Criteria, expected: list[str]) -> None:
    """No calls that write beyond the expected ones: they would change the state that the benchmark compares."""
    if work.names.writing is None:
        work.lose("reward_basis", _UNBOUNDED)
        return
    for source, name in work.names.by_source.items():
        times = expected.count(source)
        if source in work.names.writing and times == 0:
            work.checks.append({"kind": "not_called", "tool": name})
        elif source in work.names.writing:
            work.checks.append({"kind": "called", "tool": name, "at_least": times, "at_most": times})


def _add_texts(work: _Criteria, basis: set[str]) -> None:
    texts = work.criteria.communicate_info or []
    if "COMMUNICATE" not in basis:
        for number, _ in enumerate(texts):
            work.lose(f"communicate_info[{number}]", _NO_PART)
        return
    work.checks += _answer_checks([text for text in texts if text])
    if texts:
        work.lose("communicate_info", "the benchmark looks in all that the agent says; here, in the final answer")


def _answer_checks(texts: list[str]) -> Iterator[dict[str, Any]]:
    """The benchmark takes the commas out of what the agent says, so that `1,234` is found as `1234`."""
    plain = [text for text in texts if "," in text or not _MANY_DIGITS.search(text)]
    if plain:
        yield {"kind": "answer", "contains": without_templates(plain)}
    for text in texts:
        if text not in plain:
            pattern = "(?i)" + ",*".join(re.escape(character) for character in text)
            yield {"kind": "answer", "pattern": without_templates(pattern)}
