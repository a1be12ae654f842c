"""Secrets are in nothing that a run writes or says; a search through every byte shows it.

That the search would find one is shown by markers, which are no secrets and stand where they are expected.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from fake_vllm import FakeConfig, FakeVllm

from agenteval.store import files_folder

from .conftest import SUITE, CommandLine, Done

LIMIT_S = 120.0
MARKER = "marker-4e1d"
PLANTED = {
    "OPENAI_API_KEY": "planted-01-4e1d",
    "HF_TOKEN": "planted-02-4e1d",
    "AGENTEVAL_API_KEY": "planted-03-4e1d",
    "AWS_SECRET_ACCESS_KEY": "planted-04-4e1d",
    "HTTPS_PROXY": "http://user:planted-05-4e1d@proxy.example:3128",
    "OMP_TOOL_LIBRARIES": "https://user:planted-06-4e1d@host.example/lib.so",
    "NVIDIA_NGC_TOKEN": "planted-07-4e1d",
    # Under a harmless name, the value of the second one.
    "HF_ENDPOINT": "https://hub.example/?key=planted-02-4e1d",
}
HARMLESS = {"OMP_DISPLAY_ENV": MARKER}


@dataclass(frozen=True, kw_only=True)
class Written:
    """Everything that commands wrote and said, by place."""

    contents: dict[str, bytes]

    @classmethod
    def of(cls, folders: list[Path], database: Path, said: dict[str, str]) -> Written:
        """Every file below some folders, the database's rows as text, and the two streams."""
        files = {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}
        rows = {} if not database.is_file() else {"rows": _rows(database)}
        return cls(contents={**files, **rows, **{name: text.encode() for name, text in said.items()}})

    def places(self, text: str) -> set[str]:
        """Where a text stands: what follows the first dot of a file's name, or what is no file."""
        names = [Path(place).name for place, content in self.contents.items() if text.encode() in content]
        return {name.partition(".")[2] or name for name in names}


def _rows(database: Path) -> bytes:
    """Every row of every table, since the file itself may be compressed."""
    with duckdb.connect(str(database), read_only=True) as connection:
        names = [row[0] for row in connection.execute("show tables").fetchall()]
        rows = [connection.execute(f'select * from "{name}"').fetchall() for name in names]
    return json.dumps(rows, default=str, ensure_ascii=False).encode()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, module_env: pytest.MonkeyPatch) -> Written:
    """A run among secrets, at the log level that says most, with a cache of its own."""
    folder = tmp_path_factory.mktemp("run")
    model = folder / MARKER
    model.mkdir()
    (model / "config.json").write_text('{"max_position_embeddings": 32768}')
    (model / "chat_template.jinja").write_text("<tool_call>")
    (model / "model.safetensors").write_bytes(b"\0")
    database = folder / "runs.duckdb"
    words = ["run", SUITE, "--contract", "strict", "--model", str(model), "--limit", "1", "--log-level", "debug"]
    done = subprocess.run(
        [sys.executable, "-m", "agenteval", *words, "--db", str(database)],
        env={**os.environ, **PLANTED, **HARMLESS, "AGENTEVAL_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Written.of([folder], database, {"stdout": done.stdout, "stderr": done.stderr})


@pytest.mark.parametrize("secret", ["planted", *(f"planted-{number:02d}-4e1d" for number in range(1, 8))])
def test_no_planted_secret_is_written_or_said(written: Written, secret: str) -> None:
    assert written.places(secret) == set()


def test_a_variable_that_is_no_secret_is_in_the_lock_and_in_what_the_server_told(written: Written) -> None:
    assert written.places(f'"OMP_DISPLAY_ENV": "{MARKER}"') == {"lock.json"}
    assert "rows" in written.places(f"OMP_DISPLAY_ENV={MARKER}")


def test_the_search_reaches_every_place(written: Written) -> None:
    assert {"lock.json", "rows", "stdout", "log"} <= written.places(MARKER)
    assert {"stderr", "duckdb"} <= written.places("-strict-")


def test_the_boots_own_key_is_not_written_or_said(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    token_hex = secrets.token_hex

    def remembered(size: int) -> str:
        made.append(token_hex(size))
        return made[-1]

    monkeypatch.setattr(secrets, "token_hex", remembered)
    monkeypatch.setenv("AGENTEVAL_CACHE", str(cli.folder / "cache"))
    done = cli.run("strict", "--limit", "1", "--log-level", "debug")
    found = Written.of([cli.folder], cli.db, {"stdout": done.out, "stderr": done.err})
    keys = [text for text in made if len(text) == 48]
    ends_of_ids = [text for text in made if len(text) == 4]
    assert [found.places(key) for key in keys] == [set()]
    assert ["rows" in found.places(end) for end in ends_of_ids] == [True]


def test_a_killed_runs_journal_holds_no_secret(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**PLANTED, **HARMLESS}.items():
        monkeypatch.setenv(name, value)
    running = cli.start(cli.words("strict", "--limit", "3", "--log-level", "debug"))
    assert running.stderr is not None
    said = []
    for line in running.stderr:
        said.append(line)
        if "episode   1/" in line:
            break
    running.kill()
    out, err = running.communicate()
    found = Written.of([files_folder(cli.db)], cli.db, {"stdout": out, "stderr": "".join(said) + err})
    assert "jsonl" in found.places(MARKER)
    assert found.places("planted") == set()


def test_the_key_for_someone_elses_server_is_not_written_or_said(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTEVAL_API_KEY", "planted-4e1d")
    told = {"VLLM_NOTE": f"{MARKER} planted-4e1d", "VLLM_PROXY": "http://user:planted-4e1d@proxy.example"}
    config = FakeConfig(prefix_caching=False, max_num_seqs=1, api_key="planted-4e1d", env=told)
    with FakeVllm(config) as server:
        options = ["--contract", "strict", "--limit", "1", "--base-url", server.base_url, "--log-level", "debug"]
        done = cli("run", SUITE, *options)
    found = Written.of([cli.folder], cli.db, {"stdout": done.out, "stderr": done.err})
    assert "rows" in found.places(MARKER)
    assert found.places("planted") == set()


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("env: {HF_TOKEN: planted-4e1d}", id="a variable's name"),
        pytest.param("env: {OMP_PROXY: 'http://user:planted-4e1d@host'}", id="a variable's value"),
        pytest.param("extra_args: [--api-key, planted-4e1d]", id="a key"),
        pytest.param("extra_args: [--api_key=planted-4e1d]", id="a key after an equals sign"),
        pytest.param("extra_args: [--mirror, 'http://user:planted-4e1d@host']", id="an address"),
    ],
)
def test_a_contract_with_a_secret_is_refused_in_silence_about_it(
    cli: CommandLine, tmp_path_factory: pytest.TempPathFactory, engine: str
) -> None:
    contract = tmp_path_factory.mktemp("contract") / "own.yaml"
    contract.write_text(f"extends: strict\nname: own\ndescription: {MARKER}\nengine: {{{engine}}}\n")
    done: Done = cli.run(contract, "--log-level", "debug")
    assert done.code == 2
    assert "so it must hold no secret" in done.err
    assert "planted" not in done.out + done.err
    assert not list(cli.folder.iterdir())
