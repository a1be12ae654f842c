"""The report of runs on the stand-in: what it holds, and that equal data give equal pages."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from agenteval.store import run_ids

from .conftest import CommandLine


@pytest.fixture
def runs(cli: CommandLine) -> list[str]:
    """A strict run and its control."""
    for contract in ("strict", "default"):
        cli.run(contract, "--limit", "3", "--quiet")
    return run_ids(cli.db)


def test_markdown_has_verdicts_clauses_rates_and_examples(cli: CommandLine, runs: list[str]) -> None:
    done = cli("report", *runs)
    assert done.code == 0
    for line in (
        r"\| strict<br>.* \| ✅ \*\*kept\*\*<br>every clause was kept \| 6 of 6 \|",
        r"\| default<br>.* \| ≠ \*\*diverged\*\*<br>.* \| 6 of 6 \|",
        r"\| clause \| strict \| default \|",
        r"\| cache \| ✅ kept \| ✅ kept \|",
        r"\| default against strict \| 6 \| 100% \(61-100\) \|",
        r"<details><summary>Where they part: 3 of \d+ shown</summary>",
    ):
        assert re.search(f"^{line}", done.out, re.MULTILINE), line


def test_every_table_row_of_the_markdown_is_as_wide_as_its_head(cli: CommandLine, runs: list[str]) -> None:
    """What a model writes cannot break a table: it stands in no table, and its marks are escaped."""
    blocks = re.findall(r"(?:^\|.*\n)+", cli("report", *runs).out, re.MULTILINE)
    assert len(blocks) == 3
    for block in blocks:
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_equal_data_give_equal_bytes(cli: CommandLine, runs: list[str], tmp_path: Path) -> None:
    pages = []
    for name in ("first.html", "second.html"):
        cli("report", *runs, "--html", tmp_path / name)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_a_run_alone_has_a_report(cli: CommandLine, tmp_path: Path) -> None:
    cli.run("strict", "--limit", "1", "--repeats", "1", "--quiet")
    done = cli("report", "--html", tmp_path / "one.html")
    assert (done.code, done.out) == (0, "")
    assert "How much differs" not in (tmp_path / "one.html").read_text()


def test_costs_are_what_the_turns_add_up_to(cli: CommandLine, runs: list[str], tmp_path: Path) -> None:
    cli("report", runs[1], "--html", tmp_path / "costs.html")
    (sums,) = cli.sql(
        "select sum(prompt_tokens)::bigint p, sum(cached_tokens)::bigint c, sum(len(output_ids))::bigint o from turns "
        f"where kind = 'episode' and run_id = '{runs[1]}'"
    )
    page = (tmp_path / "costs.html").read_text()
    for value in sums.values():
        assert f'<td class="number">{value:,}' in page


def test_a_page_that_cannot_be_written_is_told(cli: CommandLine, runs: list[str], tmp_path: Path) -> None:
    done = cli("report", *runs, "--html", tmp_path / "no" / "such" / "folder.html")
    assert done.code == 2
    assert "Cannot write" in done.err


def test_an_unknown_run_is_told(cli: CommandLine, runs: list[str]) -> None:
    assert runs
    done = cli("report", "nonsense")
    assert done.code == 2
    assert "There is no run 'nonsense'" in done.err


def test_samples_and_variety_are_told_where_there_are_several(cli: CommandLine, tmp_path: Path) -> None:
    cli.run("default", "--limit", "2", "--samples", "2", "--quiet")
    cli("report", "--html", tmp_path / "samples.html")
    page = (tmp_path / "samples.html").read_text()
    assert "pass@k: one of k passes" in page
    (several,) = cli.sql(
        "select count(*) n from (select task, variant from (select e.episode_id, task, variant, "
        "list(t.output_ids order by turn) o from episodes e join turns t using (episode_id) group by all) "
        "group by all having count(distinct o) > 1)"
    )
    rows = re.findall(r"<tr><td>[^<]+/[^<]*</td><td class=.number.>4</td><td class=.number.>(\d)</td>", page)
    assert len(rows) == 2
    assert sum(int(found) > 1 for found in rows) == several["n"]


def test_the_reference_is_the_run_that_is_named(cli: CommandLine, runs: list[str]) -> None:
    strict, default = runs
    assert "| strict against default | 6 |" in cli("report", strict, default, "--reference", default).out
    assert "| strict against default | 6 |" in cli("report", strict, "--reference", default).out
    assert "| default against strict | 6 |" in cli("report", "--reference", strict).out


def test_a_run_is_not_compared_with_itself(cli: CommandLine, runs: list[str]) -> None:
    assert "against" not in cli("report", runs[0], runs[0]).out.partition("<details>")[0]


def test_runs_of_one_contract_are_told_apart(cli: CommandLine, tmp_path: Path) -> None:
    for _ in range(2):
        cli.run("default", "--limit", "1", "--quiet")
    first, second = (run_id.rpartition("-")[2] for run_id in run_ids(cli.db))
    cli("report", *run_ids(cli.db), "--html", tmp_path / "page.html", "--markdown", tmp_path / "page.md")
    page, comment = (tmp_path / "page.html").read_text(), (tmp_path / "page.md").read_text()
    for name in (
        f"default {first}: repeats",
        f"default {second}: repeats",
        f"default {second} against default {first}",
    ):
        assert f'<th scope="row">{name}</th>' in page
        assert name in re.search("<svg [^>]*>", page)[0]  # type: ignore[index]
        assert f"| {name} |" in comment


def test_markdown_goes_to_a_file(cli: CommandLine, runs: list[str], tmp_path: Path) -> None:
    printed = cli("report", *runs, "--markdown")
    written = cli("report", *runs, "--markdown", tmp_path / "comment.md")
    assert (written.code, written.out) == (0, "")
    assert (tmp_path / "comment.md").read_text() == printed.out


def test_a_run_after_markdown_is_no_file(cli: CommandLine, runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cli.folder)
    done = cli("report", "--markdown", runs[0])
    assert done.code == 2
    assert "Put runs first" in done.err
    assert not (cli.folder / runs[0]).exists()


def test_a_run_that_has_not_ended_has_a_report(cli: CommandLine, runs: list[str], tmp_path: Path) -> None:
    with duckdb.connect(str(cli.db)) as connection:
        connection.execute("UPDATE runs SET status = 'running', verdict = NULL, ended_at = NULL")
        connection.execute("DELETE FROM evidence")
    assert cli("report", *runs, "--html", tmp_path / "page.html").code == 0
    assert "it is still running, or its runner died" in (tmp_path / "page.html").read_text()
