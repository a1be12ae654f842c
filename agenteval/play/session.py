"""One task variant, played by hand: each line is a command or a turn; every state before a turn is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agenteval.grade import Played, grade_episode, has_passed
from agenteval.play.lines import COMMANDS, FINISH, Answer, Call, Command, LineError, read_line
from agenteval.play.text import (
    check_label,
    check_lines,
    cut,
    first_sentence,
    labelled,
    pretty,
    signature,
    state_text,
    world_changes,
)
from agenteval.records import Grade, StopReason, ToolCall
from agenteval.spec import TaskVariant
from agenteval.tools import CallRequest, State, ToolKit, fault_label, final_answer, finish_mock, record_call
from agenteval.words import nearest

_MOST_WORLD_LINES = 60
"""Of the world at the start; the command `world` shows all."""
_NO_RUN = "play"
"""What grades name in place of a run and an episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """Where the episode stands between two turns."""

    state: State
    turns: int = 0
    calls: tuple[tuple[int, ToolCall], ...] = ()
    """Every call so far with its turn."""
    talk: tuple[tuple[str, str], ...] = ()
    """All that was said, as (label, text)."""
    answer: str | None = None
    """What the agent has answered to the user's last message; None where it has not."""
    replies: int = 0
    """Follow-ups that the user has sent."""


class PlaySession:
    """Takes lines and gives texts; the episode is over when the last answer has been given."""

    def __init__(self, variant: TaskVariant, *, clock: str, is_blind: bool = False) -> None:
        """Open a task variant.

        Args:
            variant: What is played.
            clock: ISO 8601 instant at which the episode starts.
            is_blind: Whether only what a model sees is shown before the end: no world, no faults and no checks.
        """
        self._variant = variant
        self._is_blind = is_blind
        self._finish_tool = variant.settings.finish_tool
        finish = () if self._finish_tool is None else (finish_mock(self._finish_tool),)
        self._kit = ToolKit.of(variant, *finish)
        self._now = _Moment(
            state=State.begin(world=variant.world, clock=clock),
            talk=tuple((message.role, message.content) for message in variant.messages),
        )
        self._earlier: list[_Moment] = []
        self._commands: dict[str, Callable[[str], list[str]]] = {
            "world": self._hidden if is_blind else self._world,
            "checks": self._hidden if is_blind else self._checks,
            "tools": self._tools,
            "messages": self._messages,
            "undo": self._undo,
            "help": self._help,
            "quit": self._quit,
        }
        self.is_over = False
        """Whether no more lines are taken."""

    def opening(self) -> str:
        """What a person should know before the first line."""
        settings = self._variant.settings
        limits = f"{settings.max_turns} turns, " + (
            "several calls a turn" if settings.parallel_tool_calls else "one call a turn"
        )
        lines = [*labelled("task", self._variant.label), *labelled("limits", limits)]
        if self._variant.vars and not self._is_blind:
            lines += labelled("vars", pretty(self._variant.vars))
        lines += [line for label, text in self._now.talk for line in labelled(label, text)]
        lines += ["", *self._tools("")]
        shown = [] if self._is_blind else self._world("")
        lines += ["", *shown[:_MOST_WORLD_LINES]] if shown else []
        if len(shown) > _MOST_WORLD_LINES:
            lines.append(f"… ({len(shown)} lines; all of them with: world)")
        return "\n".join([*lines, "", "Call a tool: NAME key=value …, or NAME {json}. The rest: help"])

    def take(self, line: str) -> str:
        """Carry out one line; what it came to, an empty text for an empty line or a comment."""
        if not line.strip() or line.lstrip().startswith("#"):
            return ""
        try:
            read = read_line(line, self._kit.mocks, self._finish_tool)
            lines = self._commands[read.word](read.rest) if isinstance(read, Command) else self._turn(read)
        except LineError as error:
            lines = labelled("?", str(error))
        return "\n".join(lines)

    def closing(self) -> str:
        """How the episode came out, and what never happened in it."""
        grades = self._grades()
        passed = sum(grade.passed is True for grade in grades)
        verdict = state_text(has_passed(grades))
        if not self._has_ended:
            verdict = f"no answer was given, so this is no whole episode; as it stands: {verdict}"
        lines = [f"{verdict}, {passed} of {len(grades)} checks, {_score_text(grades)}", *self._checks("")]
        if any(grade.kind == "tokens" for grade in grades):
            lines.append("No model wrote here, so that checks of tokens count none.")
        for place, fault in enumerate(self._variant.faults):
            if place not in self._now.state.fired:
                lines.append(f"{fault_label(place, fault.kind)} of {fault.tool} did not fire")
        return "\n".join(lines)

    @property
    def exit_status(self) -> int:
        """0 where every check passes, 1 where one fails or no answer was given, 2 where it cannot be told."""
        passed = has_passed(self._grades())
        if passed is None:
            return 2
        return 0 if passed and self._has_ended else 1

    def completions(self, before: str) -> list[str]:
        """What may stand next.

        Args:
            before: The line up to the word that is being written.
        """
        words = before.rpartition(";")[2].split()
        if not words:
            return [*self._kit.mocks, *(word for word in COMMANDS if word not in self._kit.mocks)]
        if words[0] == "tools":
            return list(self._kit.mocks)
        mock = self._kit.mocks.get(words[0])
        properties = {} if mock is None else mock.parameters.get("properties", {})
        written = {word.partition("=")[0] for word in words[1:]}
        return [f"{name}=" for name in properties if name not in written]

    @property
    def _is_at_limit(self) -> bool:
        """Whether the agent would get no further turn, and has not answered in those it had."""
        return not self._is_answered and self._now.turns >= self._variant.settings.max_turns

    @property
    def _is_answered(self) -> bool:
        return self._now.answer is not None

    @property
    def _has_ended(self) -> bool:
        """Whether an agent's episode would be over, with an answer or at the limit."""
        return self._is_answered or self._is_at_limit

    def _turn(self, steps: Sequence[Call | Answer]) -> list[str]:
        settings = self._variant.settings
        if self._is_at_limit:
            raise LineError(f"the limit of {settings.max_turns} turns is reached; take turns back with undo, or quit")
        if len(steps) > 1 and not settings.parallel_tool_calls:
            raise LineError("this task allows one call a turn (parallel_tool_calls: false); nothing was called")
        before, grades = self._now, self._grades()
        lines = [f"turn {before.turns}"]
        for place, step in enumerate(steps):
            lines += self._answer(step) if isinstance(step, Answer) else self._call(step, place)
        self._now = replace(self._now, turns=before.turns + 1)
        self._earlier.append(before)
        lines += self._check_changes(grades)
        if self._is_answered:
            lines += self._next_message()
        if self._is_at_limit:
            lines.append(f"That was turn {self._now.turns} of {settings.max_turns}: an agent's episode ends here.")
        return lines

    def _answer(self, step: Answer) -> list[str]:
        self._now = replace(self._now, answer=step.text, talk=(*self._now.talk, ("answer", step.text)))
        return labelled("answer", step.text, indent=2)

    def _call(self, step: Call, place: int) -> list[str]:
        before = self._now.state
        call_id = f"call_{self._now.turns:03d}_{place:02d}"
        request = CallRequest(call=place, call_id=call_id, tool=step.tool, arguments=step.arguments)
        made, state = record_call(self._kit, request, before)
        answer = final_answer(made, self._finish_tool)
        self._now = replace(
            self._now,
            state=state,
            calls=(*self._now.calls, (self._now.turns, made)),
            talk=(*self._now.talk, ("call", f"{step.tool} {step.arguments}"), ("result", made.result)),
            answer=self._now.answer if answer is None else answer,
        )
        changes = [] if self._is_blind else _change_lines(made, before, state)
        return _answer_lines(made, is_blind=self._is_blind) + changes

    def _next_message(self) -> list[str]:
        """The user's reply to an answer; without one, the episode is over."""
        if self._now.replies == len(self._variant.follow_ups):
            self.is_over = True
            return []
        text = self._variant.follow_ups[self._now.replies]
        talk = (*self._now.talk, ("user", text))
        self._now = replace(self._now, answer=None, replies=self._now.replies + 1, talk=talk)
        return labelled("user", text)

    def _check_changes(self, before: Sequence[Grade]) -> list[str]:
        """Checks that come to something else than they did."""
        lines: list[str] = []
        if self._is_blind:
            return lines
        for old, new in zip(before, self._grades(), strict=True):
            if old.passed is not new.passed:
                change = f"{check_label(new)}: {state_text(old.passed)} -> {state_text(new.passed)}"
                lines += labelled("check", change, indent=2)
        return lines

    def _grades(self) -> tuple[Grade, ...]:
        """The checks, as an episode that ended here would be judged."""
        now = self._now
        played = Played(
            run_id=_NO_RUN,
            episode_id=_NO_RUN,
            stop_reason=self._stop_reason(),
            answer=now.answer,
            world=now.state.world,
            turns=now.turns,
            calls=now.calls,
            output_tokens=0,
        )
        return grade_episode(self._variant, played)

    def _stop_reason(self) -> StopReason:
        if self._is_answered:
            return StopReason.ANSWER if self._finish_tool is None else StopReason.FINISH_TOOL
        return StopReason.MAX_TURNS if self._is_at_limit else StopReason.STOPPED

    def _checks(self, _rest: str) -> list[str]:
        grades = self._grades()
        if not self._has_ended:
            grades = tuple(replace(g, reason="no answer yet") if g.kind == "answer" else g for g in grades)
        return list(check_lines(grades))

    def _world(self, _rest: str) -> list[str]:
        return [*labelled("clock", self._now.state.clock), *labelled("world", pretty(self._now.state.world))]

    def _hidden(self, _rest: str) -> list[str]:
        raise LineError("a model does not see that; play without --blind to see it")

    def _tools(self, name: str) -> list[str]:
        if not name:
            shown = [f"{signature(mock)}\n  {first_sentence(mock.description)}" for mock in self._kit.mocks.values()]
            return labelled("tools", "\n".join(shown))
        mock = self._kit.mocks.get(name)
        if mock is None:
            raise LineError(f"there is no tool {name[:40]!r}.{nearest(name[:40], self._kit.mocks)}")
        return labelled("tool", f"{signature(mock)}\n{mock.description}\n{pretty(mock.parameters)}")

    def _messages(self, _rest: str) -> list[str]:
        return [line for label, text in self._now.talk for line in labelled(label, text)]

    def _undo(self, _rest: str) -> list[str]:
        if not self._earlier:
            raise LineError("there is no turn to take back")
        grades = self._grades()
        self._now = self._earlier.pop()
        return [f"turn {self._now.turns} is taken back", *self._check_changes(grades)]

    def _help(self, _rest: str) -> list[str]:
        return [
            "NAME key=value …  call a tool; a value is a text where the tool wants one, else JSON if it reads so",
            "NAME {json}       the same with the arguments as a model writes them",
            "CALL ; CALL       several calls in one turn",
            *COMMANDS.values(),
            f"A tool may be named like one of these words; /world, /{FINISH} and so on are never tools.",
        ]

    def _quit(self, _rest: str) -> list[str]:
        self.is_over = True
        return []


def _answer_lines(made: ToolCall, *, is_blind: bool) -> list[str]:
    """A call and what it gave; why a mock is broken tells of the world, which a blind player does not see."""
    lines = labelled("call", cut(f"{made.tool} {made.arguments}"), indent=2)
    if made.is_broken and not is_blind:
        return lines + labelled("broken", cut(made.error or ""), indent=2)
    return lines + labelled("result" if made.error is None else "error", cut(made.result), indent=2)


def _change_lines(made: ToolCall, before: State, after: State) -> list[str]:
    """What a call met and changed, which a model is not told."""
    lines: list[str] = []
    if made.fault is not None:
        lines += labelled("fault", f"{made.fault} fired", indent=2)
    if after.clock != before.clock:
        lines += labelled("clock", after.clock, indent=2)
    changes = world_changes(before, after)
    if changes:
        lines += labelled("world", "\n".join(changes), indent=2)
    if not made.is_repeatable:
        lines += labelled("broken", "asked twice in the same state, the mock gave two answers", indent=2)
    return lines


def _score_text(grades: Sequence[Grade]) -> str:
    """The share of the checks' weight that passed."""
    if any(grade.passed is None for grade in grades):
        return "no score"
    total = sum(grade.weight for grade in grades)
    return f"score {sum(grade.weight for grade in grades if grade.passed) / total:.2f}"
