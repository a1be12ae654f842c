"""Players of a suite's tasks: scripts of calls, made as the loop would make them, and graded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import run_records as made

from agenteval import expressions
from agenteval.grade import Played, grade_episode
from agenteval.records import Grade, StopReason, ToolCall
from agenteval.spec import TaskVariant
from agenteval.tools import State, ToolKit, call_tool, parse_arguments, world_patch

CLOCK = "2026-01-15T09:00:00Z"
Script = Sequence[Any]
"""A turn is one call, as [tool, arguments], or a list of such; `${vars.x}` and `${start.x}` are put in."""
Turns = tuple[tuple[tuple[str, dict[str, Any]], ...], ...]
"""The calls of each turn: (tool, arguments)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """What came of a script."""

    turns: Turns
    answers: tuple[str, ...]
    """What the finish tool was given, in order."""
    placed_calls: tuple[tuple[int, ToolCall], ...]
    """(turn, call), without the calls of the finish tool."""
    world: dict[str, Any]
    """At the end."""
    grades: tuple[Grade, ...]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls without their turns."""
        return tuple(call for _, call in self.placed_calls)


def perform(variant: TaskVariant, script: Script) -> Performance:
    """Make the calls of a script, and grade what came of it; whoever does not answer runs out of turns."""
    turns = _turns_of(variant, script)
    kit, state = ToolKit.of(variant), State.begin(world=variant.world, clock=CLOCK)
    answers, placed = list[str](), list[tuple[int, ToolCall]]()
    for turn, wanted in enumerate(turns):
        for place, (tool, arguments) in enumerate(wanted):
            if tool == variant.settings.finish_tool:
                answers.append(arguments["answer"])
                continue
            text = json.dumps(arguments)
            assert parse_arguments(text)[1] is None, f"{variant.label}, turn {turn}: {text}"
            outcome = call_tool(kit, tool, text, state)
            call = made.call(
                turn,
                place,
                tool=tool,
                arguments=text,
                result=outcome.result,
                error=outcome.error,
                is_broken=outcome.is_broken,
                state_digest=state.digest(),
                world_patch=world_patch(state, outcome.state),
                is_repeatable=call_tool(kit, tool, text, state) == outcome,
                fault=outcome.fault,
            )
            placed.append((turn, call))
            state = outcome.state
    is_answered = len(answers) > len(variant.follow_ups)
    episode = made.episode(
        made.plan(task=variant.task, variant=variant.variant),
        turns=len(turns),
        stop_reason=StopReason.FINISH_TOOL if is_answered else StopReason.MAX_TURNS,
        answer=answers[-1] if is_answered else None,
        world=state.world,
    )
    grades = grade_episode(variant, Played.of(episode, calls=placed, output_tokens=0))
    return Performance(
        turns=turns, answers=tuple(answers), placed_calls=tuple(placed), world=state.world, grades=grades
    )


def perform_lazily(variant: TaskVariant) -> Performance:
    """Say at once, and again whenever the user asks for more, that all is done."""
    return perform(variant, [["finish", {"answer": "done"}]] * (1 + len(variant.follow_ups)))


def _turns_of(variant: TaskVariant, script: Script) -> Turns:
    rendered = expressions.render(list(script), {"vars": variant.vars, "start": variant.world})
    turns = [[turn] if isinstance(turn[0], str) else turn for turn in rendered]
    return tuple(tuple((tool, arguments) for tool, arguments in turn) for turn in turns)
