"""Each way through the screens, with the keyboard alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from agenteval.records import Verdict
from agenteval.tui.app import BrowserApp
from agenteval.tui.diff import DiffScreen
from agenteval.tui.evidence import EvidenceScreen
from agenteval.tui.help import HelpScreen
from agenteval.tui.pairs import PairsScreen
from agenteval.tui.runs import RunsScreen

from .builders import drive, make_run, make_trajectory, make_turn, press, screen_text, shown, write_run


def test_runs_show_contract_model_episodes_pass_rate_divergences_and_verdict(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await shown(pilot, "2 runs")
        line = next(line for line in screen_text(app).splitlines() if "default" in line)
        assert line.split()[2:] == ["default", "tiny", "8/8", "100%", "2/4", "≠", "diverged"]

    drive(two_runs, script)


@pytest.mark.parametrize(("width", "seen"), [(80, ["100%", "?"]), (120, ["100%", "?", "1"])])
def test_episodes_that_are_not_graded_are_seen_beside_the_share_of_the_others(
    path: Path, width: int, seen: list[str]
) -> None:
    run = make_run()
    graded, other = (make_trajectory(run, place, "rent", place, [make_turn()]) for place in range(2))
    write_run(path, run, [graded, replace(other, passed=None)], verdict=Verdict.KEPT)

    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await shown(pilot, "1 run; ? 1 episode not graded")
        line = next(line for line in screen_text(app).splitlines() if "tiny" in line)
        words = line.split()
        assert words[words.index("2/4") + 1 :][: len(seen)] == seen

    drive(path, script, size=(width, 24))


def test_a_run_with_one_repeat_shows_a_dash_and_not_zero_divergences(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await shown(pilot, "2 runs")
        line = next(line for line in screen_text(app).splitlines() if "strict" in line)
        assert line.split()[2:] == ["strict", "tiny", "1/4", "100%", "-", "✓", "kept"]
        await press(pilot, "enter")
        await shown(pilot, "made each sample once: there is nothing to compare")

    drive(two_runs, script)


@pytest.mark.parametrize(("down", "up"), [("down", "up"), ("j", "k")])
def test_pairs_stand_worst_first_and_both_kinds_of_keys_move(two_runs: Path, down: str, up: str) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, down, "enter")
        assert isinstance(app.screen, PairsScreen)
        await shown(pilot, "4 pairs: 1 calls, 1 logprobs, 2 equal")
        lines = screen_text(app).splitlines()[2:6]
        assert [line.split()[:3] for line in lines] == [
            ["≠", "calls", "rent/base"],
            ["≠", "logprobs", "loan/base"],
            ["=", "equal", "gym/base"],
            ["=", "equal", "tax/base"],
        ]
        assert "1:2" in lines[0]
        assert app.screen.table.cursor_row == 0
        await press(pilot, down, down, up)
        assert app.screen.table.cursor_row == 1

    drive(two_runs, script)


def test_n_and_p_go_from_one_diverged_pair_to_another_and_say_when_there_is_none(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "enter", "n")
        assert isinstance(app.screen, PairsScreen)
        assert app.screen.table.cursor_row == 1
        await press(pilot, "n")
        assert app.screen.table.cursor_row == 1
        await shown(pilot, "no diverged pair further down")
        await press(pilot, "p")
        assert app.screen.table.cursor_row == 0

    drive(two_runs, script)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_a_diff_opens_at_the_first_divergence_with_both_candidates_of_both_sides(
    two_runs: Path, size: tuple[int, int]
) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "enter", "enter")
        await shown(pilot, "FIRST DIVERGENCE")
        assert isinstance(app.screen, DiffScreen)
        text = screen_text(app)
        assert "calls differ from turn 1 token 2 on" in text
        assert "cause: cached tokens differ: 0 against 8" in text
        assert "▾ ≠ turn 1" in text
        for part in ("pay(«rent»)", "pay(«loan»)", '"rent" -0.5', '"loan" -0.625', '"other" -0.75'):
            assert part in text
        assert "0.25 confident" in text
        assert "0.125 confident" in text
        focused = app.screen.views[app.screen._place]
        assert focused.block.is_first_divergence

    drive(two_runs, script, size=size)


def test_agreeing_turns_are_one_line_until_enter_opens_them(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "enter", "j", "enter")
        await shown(pilot, "FIRST DIVERGENCE")
        assert isinstance(app.screen, DiffScreen)
        assert [view.is_open for view in app.screen.views] == [False, True, False, False]
        assert all(view.size.height == 1 for view in app.screen.views if not view.is_open)
        assert "▸ = turn 0  agrees" in screen_text(app)
        await press(pilot, "g", "enter")
        assert [view.is_open for view in app.screen.views] == [True, True, False, False]
        await shown(pilot, "▾ = turn 0  agrees", "in flight")
        await press(pilot, "enter")
        await shown(pilot, "▸ = turn 0  agrees")

    drive(two_runs, script, size=(80, 40))


def test_j_and_k_walk_the_turns_and_d_goes_back_to_the_divergence(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "enter", "enter")
        await shown(pilot, "FIRST DIVERGENCE")
        assert isinstance(app.screen, DiffScreen)
        await press(pilot, "j", "down")
        assert app.screen._place == 3
        await press(pilot, "k", "up", "up")
        assert app.screen._place == 0
        await press(pilot, "G")
        assert app.screen._place == 3
        await press(pilot, "d")
        assert app.screen._place == 1

    drive(two_runs, script, size=(80, 60))


def test_n_and_p_in_a_diff_open_the_other_diverged_pair_and_escape_goes_back_to_it(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "enter", "enter")
        await shown(pilot, "diverged pair 1 of 2")
        await press(pilot, "n")
        await shown(pilot, "loan/base", "logprobs differ from turn 1 token 3 on", "diverged pair 2 of 2")
        await press(pilot, "n")
        await shown(pilot, "this is the last diverged pair")
        await press(pilot, "p")
        await shown(pilot, "rent/base", "diverged pair 1 of 2")
        await press(pilot, "p")
        await shown(pilot, "this is the first diverged pair")
        await press(pilot, "n")
        await shown(pilot, "diverged pair 2 of 2")
        await press(pilot, "escape")
        assert isinstance(app.screen, PairsScreen)
        assert app.screen.table.cursor_row == 1

    drive(two_runs, script)


def test_an_equal_pair_says_so(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "enter", "G", "enter")
        await shown(pilot, "equal in every bit", "▸ = turn 2", "▸ = end")

    drive(two_runs, script)


@pytest.mark.parametrize("way", [("e",), ("enter", "e"), ("enter", "enter", "e")], ids=["runs", "pairs", "diff"])
def test_e_opens_the_evidence_from_everywhere_and_backspace_leaves_it(two_runs: Path, way: tuple[str, ...]) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", *way)
        assert isinstance(app.screen, EvidenceScreen)
        await shown(pilot, "3 facts about 2 clauses", "! breached", "✓ tokens read", "! the probe must hit")
        await press(pilot, "backspace")
        assert not isinstance(app.screen, EvidenceScreen)

    drive(two_runs, script)


def test_the_fact_under_the_cursor_is_shown_whole_and_enter_goes_to_it(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "e", "j")
        await shown(pilot, "observed  a miss", "expected  a hit", '{"probe":"must-hit"}')
        await press(pilot, "enter")
        assert isinstance(app.screen, EvidenceScreen)
        assert app.screen.detail.has_focus
        await press(pilot, "escape")
        assert app.screen.table.has_focus

    drive(two_runs, script)


def test_a_filter_keeps_the_rows_with_all_its_words_until_escape_clears_it(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "enter", "slash", *"CACHED", "space", *"rent")
        await shown(pilot, "1 of 4 match")
        assert isinstance(app.screen, PairsScreen)
        await press(pilot, "enter")
        assert app.screen.table.has_focus
        assert [pair.label for pair in app.screen.table.values] == ["rent/base"]
        await press(pilot, "escape")
        await shown(pilot, "4 pairs:")
        await press(pilot, "escape")
        assert isinstance(app.screen, RunsScreen)

    drive(two_runs, script)


def test_a_filter_takes_letters_that_are_keys_elsewhere(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await shown(pilot, "2 runs")
        await press(pilot, "slash", *"qe?/")
        await shown(pilot, "0 of 2 match")
        assert isinstance(app.screen, RunsScreen)
        assert app.screen.filter_box.value == "qe?/"
        await press(pilot, "escape")
        await shown(pilot, "2 runs")

    drive(two_runs, script)


def test_escape_on_the_first_screen_stays_there(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "escape", "backspace")
        assert isinstance(app.screen, RunsScreen)

    drive(two_runs, script)


@pytest.mark.parametrize("way", [(), ("enter",), ("enter", "enter"), ("e",)])
def test_the_question_mark_shows_the_keys_over_every_screen(two_runs: Path, way: tuple[str, ...]) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", *way)
        below = app.screen
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "next, previous diverged pair" in screen_text(app)
        await press(pilot, "escape")
        assert app.screen is below

    drive(two_runs, script)


@pytest.mark.parametrize("way", [(), ("enter",), ("enter", "enter"), ("e",), ("question_mark",)])
def test_q_ends_it_from_every_screen(two_runs: Path, way: tuple[str, ...]) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", *way)
        await pilot.press("q")
        assert app._exit

    drive(two_runs, script)


def test_every_footer_fits_a_narrow_screen(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j")
        for key in ("enter", "enter", "e"):
            assert screen_text(app).splitlines()[-1].endswith("q Quit")
            await press(pilot, key)
        assert screen_text(app).splitlines()[-1].endswith("q Quit")

    drive(two_runs, script)


def test_t_changes_between_light_and_dark(two_runs: Path) -> None:
    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "t")
        assert not app.current_theme.dark
        await press(pilot, "t")
        assert app.current_theme.dark

    drive(two_runs, script)


def test_no_color_takes_every_colour_away(two_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(app: BrowserApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "enter")
        await shown(pilot, "≠ calls")
        strips = app.screen._compositor.render_strips()
        styles = [
            segment.style
            for strip in strips
            for segment in strip.apply_filter(app._filters[-1], app.screen.background_colors[1])
            if segment.style is not None
        ]
        assert {style.color.name for style in styles if style.color} == {"default"}
        assert any(style.reverse for style in styles), "the cursor must show without colour"

    drive(two_runs, script)
