"""Whether the calls of an episode are those that a check asks for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval import expressions
from agenteval.digest import canonical_json
from agenteval.expressions import ExpressionError
from agenteval.grade.played import Finding, Played, cut
from agenteval.records import ToolCall
from agenteval.spec import CalledCheck, FunctionCheck, NotCalledCheck, OrderCheck, TaskVariant, TogetherCheck
from agenteval.tools import parse_json, without_address


def judge_called(check: CalledCheck, variant: TaskVariant, played: Played) -> Finding:
    """Whether a tool was called as often as is asked, in the way that is asked.

    Raises:
        ExpressionError: If `where` cannot be evaluated for calls that decide.
    """
    has_outcome = {"success": _succeeded, "error": _was_refused, "any": _was_made}[check.outcome]
    meant = _Meant.of([placed for placed in played.calls if has_outcome(placed[1])], check, variant)
    most = check.at_most
    wanted = f"at least {check.at_least}" + ("" if most is None else f", at most {most}")
    how = {"success": "succeeded", "error": "failed", "any": "was called"}[check.outcome]
    passed = meant.is_between(check.at_least, most)
    return Finding(passed=passed, reason=f"{_described(check)} {how} {meant.count} times; wanted {wanted}")


def judge_not_called(check: NotCalledCheck, variant: TaskVariant, played: Played) -> Finding:
    """Whether a tool was never called in this way, not even in vain.

    Raises:
        ExpressionError: If `where` cannot be evaluated for calls that decide.
    """
    meant = _Meant.of(played.calls, check, variant)
    passed = meant.is_between(0, 0)
    return Finding(passed=passed, reason=f"{_described(check)} was called {meant.count} times; wanted never")


def _was_made(_call: ToolCall) -> bool:
    return True


def _succeeded(call: ToolCall) -> bool:
    return call.error is None


def _was_refused(call: ToolCall) -> bool:
    """Whether the tool gave an error; a broken mock gives none that its suite means."""
    return call.error is not None and not call.is_broken


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meant:
    """The calls that a check is about."""

    count: int
    """Calls that are meant for certain."""
    unsettled: Sequence[ExpressionError]
    """Why it cannot be told of other calls whether they are."""

    @classmethod
    def of(
        cls, calls: Sequence[tuple[int, ToolCall]], check: CalledCheck | NotCalledCheck, variant: TaskVariant
    ) -> _Meant:
        count, unsettled = 0, []
        for turn, call in calls:
            try:
                count += _is_meant(turn, call, check, variant)
            except ExpressionError as error:
                # A refused call may lack what the condition reads, an argument for instance: it is not one of those
                # that the check describes.
                if call.error is None:
                    unsettled.append(error)
        return cls(count=count, unsettled=unsettled)

    def is_between(self, least: int, most: int | None) -> bool:
        """Whether so many calls are meant, wherever the unsettled ones do not decide it.

        Raises:
            ExpressionError: The first of them, where they do.
        """
        highest = self.count + len(self.unsettled)
        if self.count >= least and (most is None or highest <= most):
            return True
        if highest < least or (most is not None and self.count > most):
            return False
        raise self.unsettled[0]


def _is_meant(turn: int, call: ToolCall, check: CalledCheck | NotCalledCheck, variant: TaskVariant) -> bool:
    """Whether a check on calls is about this call.

    Raises:
        ExpressionError: If `where` cannot be evaluated for it.
    """
    if call.tool != check.tool:
        return False
    given = _as_value(call.arguments or "{}")
    if not isinstance(given, dict):
        return not check.arguments and check.where is None
    if not expressions.has_all(given, check.arguments):
        return False
    if check.where is None:
        return True
    names = {"args": given, "result": _as_value(call.result), "turn": turn, "vars": variant.vars}
    return expressions.evaluate_condition(check.where, names)


def _described(check: CalledCheck | NotCalledCheck) -> str:
    how = f" with {cut(canonical_json(check.arguments))}" if check.arguments else ""
    return f"{check.tool}{how}{'' if check.where is None else f' where {cut(check.where)}'}"


def judge_order(check: OrderCheck, _variant: TaskVariant, played: Played) -> Finding:
    """Whether tools succeeded in an order; others may stand between."""
    made = [call.tool for _, call in played.calls if call.error is None]
    remaining = iter(made)
    passed = all(tool in remaining for tool in check.tools)
    return Finding(
        passed=passed, reason=f"successful calls were {_listed(made)}; wanted in order {_listed(check.tools)}"
    )


def judge_together(check: TogetherCheck, _variant: TaskVariant, played: Played) -> Finding:
    """Whether calls of all these tools succeeded in one turn."""
    turns: dict[int, list[str]] = {}
    for turn, call in played.calls:
        if call.error is None:
            turns.setdefault(turn, []).append(call.tool)
    passed = any(Counter(check.tools) <= Counter(tools) for tools in turns.values())
    made = _listed(list(turns.values()))
    return Finding(passed=passed, reason=f"successful calls by turn were {made}; wanted in one {_listed(check.tools)}")


def _listed(items: Sequence[Any]) -> str:
    return cut(str(list(items)))


def judge_function(check: FunctionCheck, variant: TaskVariant, played: Played) -> Finding:
    """What a function of the suite's says of the world, the answer and all calls.

    Raises:
        ExpressionError: If it fails, or gives what is no judgement.
    """
    made = [
        {
            "turn": turn,
            "tool": call.tool,
            "arguments": _as_value(call.arguments or "{}"),
            "result": _as_value(call.result),
            "error": call.error,
        }
        for turn, call in played.calls
    ]
    world, calls = json.loads(canonical_json([played.world, made]))
    try:
        found = variant.functions[check.function].call(world, played.answer, calls)
    # The function is the suite's own code, which can raise anything; the episode is then not graded.
    except (Exception, SystemExit) as error:
        raise ExpressionError(f"{check.function} failed: {type(error).__name__}: {error}") from error
    passed, reason = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(passed, bool):
        raise ExpressionError(f"{check.function} gave {found!r}, not true or false, or (true or false, reason)")
    text = str(reason or f"{check.function} says {str(passed).lower()}")
    # Half a character is no text that a file could hold.
    return Finding(passed=passed, reason=cut(without_address(text.encode(errors="replace").decode())))


def _as_value(text: str) -> Any:
    """The JSON value of a text, as mocks see it; the text itself where it is none."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return text
