"""What a line changes, and what a person reads of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval.play import PlaySession
from agenteval.spec import load_suite

Play = Callable[..., PlaySession]
ERROR_FAULT = """
    faults:
      - {kind: error, tool: put, at: [1], message: "busy"}
      - {kind: latency, tool: bake, when: "args.size() == 9", latency_s: 5}
"""
WORLD_CHECK = """
    checks:
      - {kind: world, that: "world.shelves.size() == 1"}
"""
UNGRADABLE = """
    checks:
      - {kind: world, that: "world.shelves.low.units == 2"}
"""
LOG_CHECK = """
    checks:
      - {kind: world, that: "world.log.size() == 2"}
"""
ONE_CALL = "    parallel_tool_calls: false"
TWO_FOLLOW_UPS = "    follow_ups: [And now?, Again.]"


def is_printable(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


def typed(session: PlaySession, *lines: str) -> str:
    """What the last of some lines shows."""
    return [session.take(line) for line in lines][-1]


def test_the_opening_shows_messages_tools_and_world(play: Play) -> None:
    text = play().opening()
    for part in (
        "task      cook/base",
        "5 turns, several calls a turn",
        "system    You cook.",
        "user      Cook.",
        "finish(answer: string)",
        "put(shelf: string, thing?: any, units?: integer)",
        "Put something on a shelf",
        'world     {"shelves": {}, "log": ["first"]}',
    ):
        assert part in text


def test_a_call_shows_result_world_and_clock(play: Play) -> None:
    session = play()
    shown = typed(session, "put shelf=low units=2").split("\n")
    assert shown == [
        "turn 0",
        '  call      put {"shelf": "low", "units": 2}',
        '  result    {"on":"low"}',
        '  world     + /log/1: "low"',
        '            + /shelves/low: {"shelf": "low", "units": 2}',
    ]
    assert "  clock     2026-01-15T10:00:00Z" in session.take("bake")
    assert session.take("/world").startswith("clock     2026-01-15T10:00:00Z\nworld     {")


def test_only_what_a_call_changes_is_shown(play: Play) -> None:
    shown = typed(play(), "put shelf=low", "put shelf=low units=3")
    assert "- /shelves/low/units" not in shown
    assert "+ /shelves/low/units: 3" in shown
    assert "/log/2" in shown
    assert "/log/1" not in shown


def test_an_error_is_shown_as_the_model_sees_it(play: Play) -> None:
    session = play()
    assert '  error     {"error":"the top shelf is out of reach"}' in session.take("put shelf=top")
    assert "missing: 'shelf'" in session.take("put")
    assert "not JSON, from character 2 on" in session.take("put {")


def test_a_fault_that_fired_is_named_and_one_that_did_not_is_named_at_the_end(play: Play) -> None:
    session = play(ERROR_FAULT + WORLD_CHECK)
    assert "  fault     error#0 fired" in session.take("put shelf=low")
    closing = session.closing()
    assert "latency#1 of bake did not fire" in closing
    assert "error#0" not in closing


def test_a_broken_mock_is_told_from_an_error_that_is_meant(play: Play) -> None:
    assert "  broken    the mock of 'break' could not answer: " in play().take("break")


def test_checks_that_change_are_shown_and_reasons_on_demand(play: Play) -> None:
    session = play()
    assert "  check     together#0: failed -> passed" in session.take("put shelf=low ; bake")
    checks = session.take("checks")
    assert "together#0  passed" in checks
    assert "(weight 3)" in checks
    assert "answer#1    failed      no answer yet" in checks


def test_only_calls_of_one_line_are_together(play: Play) -> None:
    session = play()
    typed(session, "put shelf=low", "bake", "finish ready")
    assert session.exit_status == 1


def test_a_task_that_allows_one_call_a_turn_takes_no_two(play: Play) -> None:
    session = play(WORLD_CHECK + ONE_CALL)
    assert "allows one call a turn" in session.take("put shelf=low ; bake")
    assert "turn 0" in session.take("put shelf=low")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["put shelf=low ; bake", "finish It is ready."], 0),
        (["put shelf=low ; bake", 'finish {"answer": "It is ready."}'], 0),
        (["put shelf=low ; bake ; finish ready"], 0),
        (["put shelf=low ; bake", "finish It is not."], 1),
        (["put shelf=low ; bake"], 1),
        (["finish ready"], 1),
        (["quit"], 1),
        ([], 1),
    ],
)
def test_the_exit_status_is_what_the_checks_come_to(play: Play, lines: list[str], status: int) -> None:
    session = play()
    typed(session, *lines, "")
    assert session.exit_status == status


def test_what_cannot_be_graded_is_told_apart(play: Play) -> None:
    session = play(UNGRADABLE)
    typed(session, "put shelf=low", "finish ready")
    assert session.exit_status == 2
    assert session.closing().startswith("not graded, 0 of 1 checks, no score")


def test_checks_that_pass_without_an_answer_are_no_whole_episode(play: Play) -> None:
    session = play(WORLD_CHECK)
    session.take("put shelf=low")
    assert session.exit_status == 1
    assert session.closing().startswith("no answer was given, so this is no whole episode; as it stands: passed")


def test_the_score_is_the_share_of_the_weights(play: Play) -> None:
    session = play()
    typed(session, "put shelf=low ; bake", "finish no")
    assert "failed, 1 of 2 checks, score 0.75" in session.closing()


def test_without_a_finish_tool_a_text_answers(play: Play) -> None:
    session = play(finish="null")
    assert "  answer    It is ready." in typed(session, "put shelf=low ; bake", "finish It is ready.")
    assert (session.is_over, session.exit_status) == (True, 0)


def test_a_finish_tool_of_another_name_answers_too(play: Play) -> None:
    session = play(finish="done")
    assert "done(answer: string)" in session.opening()
    typed(session, "put shelf=low ; bake", "done answer=ready")
    assert session.exit_status == 0


def test_a_call_of_the_finish_tool_that_its_schema_refuses_ends_nothing(play: Play) -> None:
    session = play()
    assert "must be of type" in session.take('finish {"answer": 5}')
    assert not session.is_over


def test_after_an_answer_the_user_goes_on_where_the_task_says_so(play: Play) -> None:
    session = play(TWO_FOLLOW_UPS + LOG_CHECK)
    assert session.take("finish one").endswith("user      And now?")
    assert not session.is_over
    typed(session, "put shelf=low")
    assert session.take("finish two").endswith("user      Again.")
    typed(session, "undo")
    assert "Again." not in session.take("messages")
    typed(session, "finish two", "finish three")
    assert (session.is_over, session.exit_status) == (True, 0)


def test_the_turn_limit_ends_the_episode_and_undo_takes_turns_back(play: Play) -> None:
    session = play(WORLD_CHECK)
    assert "turn 5 of 5: an agent's episode ends here" in typed(session, *["bake"] * 5)
    assert "the limit of 5 turns is reached" in session.take("put shelf=low")
    assert session.exit_status == 1
    assert "turn 4 is taken back" in session.take("undo")
    typed(session, "put shelf=low ; finish ready")
    assert session.exit_status == 0


def test_a_follow_up_at_the_turn_limit_finds_no_answer(play: Play) -> None:
    session = play(TWO_FOLLOW_UPS + WORLD_CHECK)
    assert "an agent's episode ends here" in typed(session, *["bake"] * 4, "finish one")
    assert "the limit of 5 turns is reached" in session.take("finish two")


def test_undo_takes_world_clock_calls_and_checks_back(play: Play) -> None:
    session = play(ERROR_FAULT + WORLD_CHECK)
    before = session.take("/world")
    typed(session, "put shelf=low", "put shelf=low", "bake")
    assert session.take("/world") != before
    assert "world#0: passed -> failed" in typed(session, "undo", "undo")
    assert "error#0 fired" in typed(session, "undo", "put shelf=low")
    typed(session, "undo")
    assert session.take("/world") == before
    assert "no turn to take back" in session.take("undo")


def test_a_tool_with_the_name_of_a_command_is_called(play: Play) -> None:
    session = play()
    assert "result    round" in session.take("world")
    assert session.take("/world").startswith("clock")


def test_tools_are_listed_short_and_shown_whole(play: Play) -> None:
    session = play()
    assert "Nothing else" not in session.take("tools")
    whole = session.take("tools put")
    assert "Nothing else." in whole
    assert '"minimum": 1' in whole
    assert "Did you mean 'put'?" in session.take("tools pt")


def test_messages_show_all_that_was_said_and_called(play: Play) -> None:
    session = play()
    typed(session, "put shelf=low", "put shelf=top")
    assert session.take("messages").split("\n") == [
        "system    You cook.",
        "user      Cook.",
        'call      put {"shelf": "low"}',
        'result    {"on":"low"}',
        'call      put {"shelf": "top"}',
        'result    {"error":"the top shelf is out of reach"}',
    ]


def test_help_names_every_command(play: Play) -> None:
    text = play().take("help")
    for word in ("finish", "world", "checks", "tools", "messages", "undo", "help", "quit"):
        assert f"\n{word}" in text


@pytest.mark.parametrize("line", ["", "   ", "\t", "# a comment", "  # another"])
def test_empty_lines_and_comments_do_nothing(play: Play, line: str) -> None:
    assert play().take(line) == ""


@pytest.mark.parametrize("line", ["put shlef", "pt", "put a=1 a=2", "undo", "tools pt"])
def test_a_line_that_is_refused_makes_no_turn(play: Play, line: str) -> None:
    session = play()
    assert session.take(line).startswith("?")
    assert "turn 0" in session.take("bake")


def test_control_characters_never_reach_the_terminal(play: Play) -> None:
    session = play()
    lines = [
        "put shelf=a\x1b[31mb",
        r'put shelf=low thing="\u001b[2J\u202e"',
        "\x1b[2J",
        "messages",
        "/world",
        "checks",
    ]
    shown = [*map(session.take, lines), session.closing(), session.opening()]
    assert all(map(is_printable, shown))
    assert r"\x1b[31m" in shown[0].replace(r"\u001b", r"\x1b")


def test_control_characters_of_a_suite_never_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(
        'name: s\ndescription: d\nagent: {system_prompt: "a\\e[31m", tool_choice: auto, max_turns: 3, max_tokens: 9, '
        "parallel_tool_calls: false, finish_tool: null}\n"
    )
    (tmp_path / "t.yaml").write_text(
        'tasks:\n  - name: t\n    prompt: "b\\e[2J"\n    world: {"k\\e": "v\\e"}\n'
        '    variants: {one: {x: "\\e"}}\n    follow_ups: ["f\\e"]\n'
        '    checks: [{kind: answer, contains: ["${vars.x}"]}]\n'
        '    tools: [{name: t, description: "d\\e", parameters: {type: object, properties: {"p\\e": {enum: ["\\e"]}}}, '
        'default: {error: "e\\e"}}]\n'
    )
    session = PlaySession(load_suite(tmp_path).variants[0], clock="2026-01-15T09:00:00Z")
    lines = ["t", "tools t", "messages", "finish a", "checks"]
    assert all(map(is_printable, [session.opening(), *map(session.take, lines), session.closing()]))


def test_a_huge_line_is_answered_shortly(play: Play) -> None:
    session = play()
    for line in ("put shelf=" + "x" * 3_000_000, "put {" + "[" * 300_000, "y" * 3_000_000, "put " + "z" * 3_000_000):
        assert len(session.take(line)) < 6_000


def test_a_large_world_is_cut_at_the_start_alone(play: Play) -> None:
    session = play("".join(["    world:\n", *(f"      key{n}: {'x' * 90}\n" for n in range(100)), WORLD_CHECK]))
    assert "… (103 lines; all of them with: world)" in session.opening()
    assert len(session.take("/world").split("\n")) == 103


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", {"put", "bake", "finish", "undo", "checks"}),
        ("put ", {"shelf=", "thing=", "units="}),
        ("put shelf=low ", {"thing=", "units="}),
        ("bake ; put ", {"shelf=", "thing=", "units="}),
        ("bake ; ", {"put", "bake"}),
        ("tools ", {"put", "bake", "finish", "break"}),
        ("finish ", {"answer="}),
        ("nothing ", set()),
    ],
)
def test_words_are_completed(play: Play, before: str, expected: set[str]) -> None:
    found = play().completions(before)
    assert set(found) >= expected
    assert len(found) == len(set(found))
