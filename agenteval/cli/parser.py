"""The whole command line: every command with its options and the function that carries it out.

Imports nothing that takes time, so that `--help` and a mistyped option answer at once; a command names its function
as `module:function` of this package.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import agenteval

_DEFAULT_DB = Path("agenteval.duckdb")
_EXIT_STATUS = "Exit status: 0 kept, 1 breached or diverged, 2 could not tell."


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; `arguments.command` is what to call."""
    parser = argparse.ArgumentParser(
        prog="agenteval",
        description="Evaluate LLM agents so that the result can be repeated, with proof.",
        epilog=_EXIT_STATUS,
    )
    parser.add_argument("--version", action="version", version=f"agenteval {agenteval.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    common = _common_options()
    run = commands.add_parser(
        "run",
        help="run a suite under a contract",
        parents=[common],
        description="Run a suite's tasks under a contract and say whether the contract was kept.",
        epilog=_EXIT_STATUS,
    )
    _add_run_options(run)
    _add_sweep(
        commands.add_parser(
            "sweep",
            help="run a matrix of contracts and models",
            parents=[common],
            description="Run every cell of a matrix of contracts, models and formats, compare each with its reference "
            "and its own repeats, and print the table. Cells that the database holds already are not run again.",
            epilog="Exit status: 0 every cell was run or cannot be kept here, 1 a cell breached its contract, 2 a cell "
            "has no run or could not be told.",
        )
    )
    _add_diff(
        commands.add_parser(
            "diff",
            help="compare two runs, or the repeats of one",
            parents=[common],
            description="Pair the episodes of two runs by task, variant, sample and repeat, or the repeats of one run, "
            "and say how many differ, where they first part, and why.",
            epilog="Exit status: 0 identical at the asked level, 1 diverged, 2 could not compare.",
        )
    )
    _add_report(
        commands.add_parser(
            "report",
            help="runs as one page, or as Markdown",
            parents=[common],
            description="Write what runs came to as one HTML page that opens offline, or as Markdown for a pull "
            "request: verdicts with their evidence, how much differs with intervals, where and why, examples, costs. "
            "Every other run is compared with the reference.",
            epilog="Exit status: 0 written, 2 could not.",
        )
    )
    _add_explain(
        commands.add_parser(
            "explain",
            help="ask a server why two episodes part",
            parents=[common],
            description="Send the turn where two episodes part to a live server again under single changes: cold, with "
            "what the cache held, in company, after another start; and say which of them alone turns the one "
            "answer into the other.",
            epilog="Exit status: 0 one change alone flips the answer, 1 none or several do, 2 could not tell.",
        )
    )
    check = commands.add_parser(
        "check",
        help="find every mistake in suites and contracts",
        parents=[common],
        description="Find every mistake in suites and contracts at once, and what looks like a slip in suites.",
        epilog="Exit status: 0 nothing is wrong (there may be warnings), 2 something is.",
    )
    check.add_argument(
        "paths", type=Path, metavar="PATH", nargs="+", help="a suite, a folder of suites, or a contract's file"
    )
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(command="check:check")
    _add_doctor(
        commands.add_parser(
            "doctor",
            help="what this machine and its engine can keep",
            parents=[common],
            description="Look at all that a run needs, and say what of each contract can be kept here, and why not. "
            "Starts no server, fetches nothing.",
            epilog="Exit status: 0 a contract that promises repeatability can be kept here now, 2 none can.",
        )
    )
    _add_authoring(commands, common)
    _add_import_options(
        commands.add_parser(
            "import",
            help="make a suite of another benchmark's task files",
            parents=[common],
            description="Make a suite of another benchmark's task files, with a list of all that could not be kept.",
            epilog="Exit status: 0 a suite was written (IMPORT.md says what it lacks), 2 the source is wrong.",
        )
    )
    _add_contracts(commands.add_parser("contracts", help="list contracts, or show one", parents=[common]), common)
    _add_models(commands.add_parser("models", help="list, fetch or hash models", parents=[common]), common)
    runs = commands.add_parser("runs", help="list the runs of the database", parents=[common])
    runs.add_argument("--json", action="store_true", help="print JSON")
    runs.set_defaults(command="database:show_runs")
    show = commands.add_parser("show", help="print a run's summary again", parents=[common])
    show.add_argument("run", metavar="RUN", nargs="?", help="a run's id, or the start of one (default: the last run)")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(command="database:show_run")
    verify = commands.add_parser(
        "verify",
        help="judge a run again from what is stored",
        parents=[common],
        description="Derive the evidence and the verdict of a run again from its stored facts, without a server, and "
        "compare them with what the run found.",
        epilog=f"{_EXIT_STATUS} Where the two differ, 2.",
    )
    verify.add_argument("run", metavar="RUN", nargs="?", help="a run's id, or the start of one (default: the last run)")
    verify.add_argument("--json", action="store_true", help="print everything as JSON")
    verify.set_defaults(command="verify:verify")
    _add_lock(commands.add_parser("lock", help="show the lock of a run, or compare two", parents=[common]), common)
    sql = commands.add_parser("sql", help="query the database, read-only", parents=[common])
    sql.add_argument("query", metavar="QUERY", help='for instance "select * from run_summary"')
    form = sql.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON array of objects")
    form.add_argument("--csv", action="store_true", help="print CSV with a header")
    sql.set_defaults(command="database:query")
    _add_db(commands.add_parser("db", help="keep a database as one small file, or read one", parents=[common]), common)
    tui = commands.add_parser("tui", help="browse runs and where trajectories part", parents=[common])
    tui.add_argument("database", type=Path, metavar="DB", nargs="?", help="the database (default: as --db)")
    tui.set_defaults(command="tui:browse")
    return parser


def _add_db(db: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = db.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, function, text in (
        ("export", "export", "write all runs into an archive, which --db takes too"),
        ("import", "import_runs", "add an archive's runs to the database"),
    ):
        action = actions.add_parser(name, help=text, parents=[common])
        action.add_argument("file", type=Path, metavar="FILE", help="the archive")
        action.set_defaults(command=f"db:{function}")


def _add_diff(diff: argparse.ArgumentParser) -> None:
    diff.add_argument("a", metavar="A", nargs="?", help="a run's id, or the start of one (default: the last run)")
    diff.add_argument("b", metavar="B", nargs="?", help="another run (default: the repeats of A)")
    diff.add_argument(
        "--level",
        choices=("logprobs", "tokens", "calls", "tools", "outcome"),
        default="logprobs",
        help="how strictly they must agree, strictest first (default: logprobs)",
    )
    diff.add_argument(
        "--episode",
        metavar="X",
        help="show both sides of one episode where they part: task/variant, task/variant/sample/repeat, or an id",
    )
    diff.add_argument("--db-b", type=Path, metavar="PATH", help="the database of B (default: as --db)")
    diff.add_argument("--json", action="store_true", help="print everything as JSON")
    diff.set_defaults(command="diff:diff")


def _add_report(report: argparse.ArgumentParser) -> None:
    report.add_argument("runs", metavar="RUN", nargs="*", help="ids, or the starts of ids (default: the last run)")
    report.add_argument("--html", type=Path, metavar="FILE", help="write the page to this file")
    report.add_argument(
        "--markdown",
        type=Path,
        nargs="?",
        const=Path("-"),
        metavar="FILE",
        help="write Markdown to this file, or print it (the default without --html)",
    )
    report.add_argument(
        "--reference", metavar="RUN", help="compare every other run with this one (default: the first that is named)"
    )
    report.set_defaults(command="report:report")


def _add_explain(explain: argparse.ArgumentParser) -> None:
    explain.add_argument("a", metavar="EPISODE_A", help="id of an episode, as divergences.episode_a has it")
    explain.add_argument("b", metavar="EPISODE_B", help="id of the other, of the same run or another")
    explain.add_argument("--db-b", type=Path, metavar="PATH", help="the database of EPISODE_B (default: as --db)")
    explain.add_argument("--contract", metavar="NAME", help="start the server as this contract says (default: A's)")
    explain.add_argument("--model", metavar="NAME", help="as for run (default: A's)")
    explain.add_argument("--boots", type=int, choices=(1, 2), help="starts of the server (default: 2)")
    explain.add_argument("--base-url", metavar="URL", help="ask a server that someone else runs")
    explain.add_argument("--json", action="store_true", help="print everything as JSON")
    explain.set_defaults(command="explain:explain_divergence")


def _add_sweep(sweep: argparse.ArgumentParser) -> None:
    sweep.add_argument("file", type=Path, metavar="FILE", nargs="?", help="the sweep's YAML file")
    sweep.add_argument(
        "--only",
        metavar="CELL",
        action="append",
        default=[],
        help="run only cells of this name, such as 'bf16/*'; may be given several times. The others are left for later",
    )
    sweep.add_argument("--show", action="store_true", help="run nothing; print the table of the last sweep again")
    sweep.add_argument("--quiet", action="store_true", help="no progress on stderr")
    sweep.add_argument("--json", action="store_true", help="print the summary as JSON")
    sweep.set_defaults(command="sweep:sweep")


def _add_doctor(doctor: argparse.ArgumentParser) -> None:
    doctor.add_argument("--contract", metavar="NAME", help="look at this contract too: a YAML file of your own")
    doctor.add_argument("--model", metavar="NAME", help="as for run (default: the small model of the catalogue)")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(command="doctor:doctor")


def _add_authoring(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser
) -> None:
    """The commands for whoever writes a suite."""
    play = commands.add_parser(
        "play",
        help="call a task's tools by hand",
        parents=[common],
        description="Call a task's tools by hand, and see its world and its checks change; lines may come from a file.",
        epilog="Exit status: 0 every check passes, 1 one fails or there is no answer, 2 could not tell.",
    )
    play.add_argument("suite", type=Path, metavar="SUITE", help="folder with suite.yaml, such as tasks/toolsuite")
    play.add_argument("task", metavar="TASK[/VARIANT]", help="whose tools (default variant: the first)")
    play.add_argument("--clock", metavar="ISO", help="the episode's instant (default: the contract strict's)")
    play.add_argument("--blind", action="store_true", help="show only what a model sees, and the checks at the end")
    play.set_defaults(command="play:play")
    new = commands.add_parser("new", help="write a small suite to start from", parents=[common])
    things = new.add_subparsers(metavar="WHAT", required=True)
    suite = things.add_parser("suite", help="two tasks with comments, ready to run", parents=[common])
    suite.add_argument("folder", type=Path, metavar="DIR", help="absent or empty; its last part names the suite")
    suite.set_defaults(command="new:new_suite")
    schema = commands.add_parser(
        "schema",
        help="print JSON Schema for editors",
        parents=[common],
        description="Print the JSON Schema of what people write, so that an editor completes and checks it.",
    )
    schema.add_argument("what", choices=("suite", "file", "task", "tool", "contract"), help="file: of tools and tasks")
    schema.set_defaults(command="schema:print_schema")


def default_database() -> Path:
    """The database where --db names none."""
    return Path(os.environ.get("AGENTEVAL_DB", _DEFAULT_DB))


def _common_options() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--db",
        type=Path,
        default=default_database(),
        metavar="PATH",
        help=f"database of runs (default: {_DEFAULT_DB} here, or AGENTEVAL_DB)",
    )
    common.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="what to log to stderr",
    )
    common.add_argument("--log-format", choices=("text", "json"), default="text", help="how to log")
    return common


def _add_run_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("suite", type=Path, metavar="SUITE", help="folder with suite.yaml, such as tasks/toolsuite")
    run.add_argument("--contract", required=True, metavar="NAME", help="built-in contract, or a YAML file")
    run.add_argument(
        "--model",
        metavar="NAME",
        help="folder, org/name or catalogue name (default: the small model of the catalogue); with --base-url, the "
        "served name",
    )
    run.add_argument(
        "--task", action="append", default=[], metavar="ID", help="only this task, or TASK/VARIANT (again for more)"
    )
    run.add_argument("--tag", action="append", default=[], metavar="T", help="only tasks with this tag")
    run.add_argument("--limit", type=_positive, metavar="N", help="only the first N task variants")
    run.add_argument("--repeats", type=_positive, metavar="N", help="same seed N times, in place of the contract's")
    run.add_argument("--samples", type=_positive, default=1, metavar="N", help="N different seeds (default: 1)")
    run.add_argument("--agent", metavar="MODULE:FACTORY", help="a LangGraph graph of your own")
    run.add_argument("--base-url", metavar="URL", help="use a server that someone else runs (key: AGENTEVAL_API_KEY)")
    run.add_argument("--locked", type=Path, metavar="FILE", help="refuse to run where anything differs from this lock")
    run.add_argument("--port", type=_port, metavar="N", help="port of the managed server (default: a free one)")
    run.add_argument("--json", action="store_true", help="print the summary as JSON")
    run.add_argument("--quiet", action="store_true", help="no progress, only warnings")
    run.set_defaults(command="run:run")


def _add_import_options(imports: argparse.ArgumentParser) -> None:
    imports.add_argument("format", metavar="FORMAT", choices=("tau2", "bfcl-multi-turn"), help="%(choices)s")
    imports.add_argument(
        "source", type=Path, metavar="PATH", help="the file of tasks or questions, or the folder that holds it"
    )
    imports.add_argument("folder", type=Path, metavar="DIR", help="the suite to write; absent or empty")
    imports.add_argument("--json", action="store_true", help="print JSON")
    imports.set_defaults(command="interchange:import_tasks")


def _add_contracts(contracts: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = contracts.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the built-in contracts", parents=[common])
    listing.set_defaults(command="contracts:list_contracts")
    show = actions.add_parser("show", help="every effective field, and the server's command line", parents=[common])
    show.add_argument("name", metavar="NAME", help="a built-in contract or a YAML file")
    show.add_argument(
        "--model", metavar="NAME", help="model in the command line (default: the small model of the catalogue)"
    )
    show.add_argument("--json", action="store_true", help="print the fields as JSON")
    show.set_defaults(command="contracts:show_contract")


def _add_models(models: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = models.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the catalogue, and what is here", parents=[common])
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(command="models:list_models")
    pull = actions.add_parser("pull", help="fetch a model and verify it", parents=[common])
    pull.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="catalogue name or org/name[@revision] (default: the small model of the catalogue)",
    )
    pull.set_defaults(command="models:pull_model")
    digest = actions.add_parser("digest", help="content hash of a local model", parents=[common])
    digest.add_argument("folder", type=Path, metavar="FOLDER")
    digest.set_defaults(command="models:digest_model")


def _add_lock(lock: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    what = "a lock's file, or a run's id or the start of one"
    actions = lock.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="every field of a lock", parents=[common])
    show.add_argument("lock", metavar="RUN|FILE", nargs="?", help=f"{what} (default: the last run)")
    show.add_argument("--json", action="store_true", help="print the lock's file")
    show.set_defaults(command="lock:show_lock")
    diff = actions.add_parser(
        "diff",
        help="fields in which two locks differ",
        parents=[common],
        epilog="Exit status: 0 they are equal, 1 they differ, 2 one is missing or does not know enough.",
    )
    diff.add_argument("a", metavar="A", help=what)
    diff.add_argument("b", metavar="B", help="the same of the other")
    diff.add_argument("--json", action="store_true", help="print JSON")
    diff.set_defaults(command="lock:diff_locks")


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0; write 1 or more")
    return number


def _port(text: str) -> int:
    number = _positive(text)
    if number > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; write one from 1 to 65535")
    return number
