"""No lie ends as kept; the same run on a server that tells the truth does."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration.conftest import SUITE, CommandLine

from lies import servers
from lies.table import LIES, Lie, markdown

DOCUMENT = Path(__file__).parents[2] / "contracts" / "README.md"
BEGIN, END = "<!-- lies -->\n", "\n<!-- end of lies -->"
Engine = Callable[..., None]


def free_suite(folder: Path) -> Path:
    """The starter suite with a model that need not call a tool."""
    suite = folder / "free"
    shutil.copytree(SUITE, suite)
    text = (suite / "suite.yaml").read_text()
    assert "tool_choice: required" in text
    (suite / "suite.yaml").write_text(text.replace("tool_choice: required", "tool_choice: auto"))
    return suite


@pytest.fixture
def run_lie(
    cli: CommandLine, engine_env: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    """Runs three episodes under a lie's contract, on a server with its ways or with others."""

    def run(lie: Lie, ways: type = servers.Honest, config: dict[str, Any] | None = None) -> Any:
        contract = cli.folder / "contract.yaml"
        clauses = json.dumps({"name": "mine", "description": "mine", "extends": lie.contract, **lie.fields})
        contract.write_text(clauses)
        if lie.contract == "invariant":
            # Facts about an engine are kept by installation, and this one claims another device.
            monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
            engine_env(device_type="cuda")
        suite = free_suite(cli.folder) if lie.is_free else Path(SUITE)
        engine_env(config=config or {}, server=f"{ways.__module__}:{ways.__name__}")
        words = ["--contract", contract, "--model", cli.model, "--limit", "2", "--json", "--quiet"]
        return cli("run", suite, *words)

    return run


@pytest.mark.parametrize("lie", LIES, ids=[lie.name for lie in LIES])
def test_no_lie_ends_as_kept(lie: Lie, run_lie: Callable[..., Any], cli: CommandLine) -> None:
    done = run_lie(lie, lie.ways, dict(lie.config))
    if lie.outcome == "stopped":
        assert done.code == 2
        assert "cannot be kept here, so no episode was started:" in done.err
        assert f"  {lie.clause}: {lie.shown_by}" in done.err
        assert cli.sql("select count(*) episodes from episodes") == [{"episodes": 0}]
        return
    assert done.code == {"breached": 1, "unproven": 2}[lie.outcome], done.err
    assert done.summary["verdict"] == lie.outcome
    if lie.clause:
        clause = done.summary["clauses"][lie.clause]
        assert clause["verdict"] == lie.outcome
        assert [row["fact"] for row in clause["evidence"] if row["verdict"] == lie.outcome][:1] == [lie.shown_by]
    assert cli("verify").code == done.code


def _honest() -> list[Lie]:
    """One lie of each contract that is lied under."""
    return list({(lie.contract, json.dumps(dict(lie.fields)), lie.is_free): lie for lie in LIES}.values())


def _words(lie: Lie) -> str:
    return "-".join([lie.contract, *lie.fields, *["free"] * lie.is_free])


@pytest.mark.parametrize("lie", _honest(), ids=_words)
def test_the_same_run_on_an_honest_server_is_kept(lie: Lie, run_lie: Callable[..., Any]) -> None:
    config = {name: value for name, value in lie.config.items() if name in ("guided_format", "latency_s")}
    done = run_lie(lie, config=config)
    rows = [row for clause in done.summary["clauses"].values() for row in clause["evidence"]]
    assert [row for row in rows if row["verdict"] not in ("kept", "not promised")] == []
    assert done.code == 0


def test_the_documentation_has_this_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    found, _, after = rest.partition(END)
    if os.environ.get("UPDATE_GOLDEN"):
        DOCUMENT.write_text(before + BEGIN + markdown() + END + after, encoding="utf-8")
    else:
        assert found == markdown()
