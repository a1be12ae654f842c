"""A suite that was just written runs under the strict contract."""

from __future__ import annotations

from .conftest import CommandLine


def test_a_new_suite_runs_at_once(cli: CommandLine) -> None:
    folder = cli.folder / "desk"
    assert cli("new", "suite", folder).code == 0
    done = cli("run", folder, "--contract", "strict", "--model", cli.model, "--json", "--quiet")
    assert (done.code, done.summary["suite"], done.summary["verdict"]) == (0, "desk", "kept"), done.err
    assert done.summary["episodes"]["finished"] == done.summary["episodes"]["planned"] == 6
