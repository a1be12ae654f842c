"""Python functions of a suite: what their files may do, and what is refused before anything runs."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agenteval.spec import SuiteFunction, load_suite
from agenteval.spec.functions import MAX_SOURCE_BYTES, FunctionError, load_function
from agenteval.spec.pure import COMPUTING_MODULES

from .conftest import TASK, TOOL, printed_by, problems_of, write


def loaded(folder: Path, body: str) -> SuiteFunction:
    """The function `f` of a file with this text."""
    (folder / "f.py").write_text(textwrap.dedent(body))
    return load_function(folder, "f.py:f")


def refused(folder: Path, body: str) -> str:
    """Why a file is refused."""
    with pytest.raises(FunctionError) as caught:
        loaded(folder, body)
    return str(caught.value)


ABSENT = (
    "open input print eval exec compile globals locals vars dir breakpoint help exit quit hash id memoryview".split()
)


@pytest.mark.parametrize("name", ABSENT)
def test_a_name_that_reaches_outside_or_differs_between_processes_is_refused(tmp_path: Path, name: str) -> None:
    message = refused(tmp_path, f"def f(a, w, c):\n    return {name}(a), w\n")
    assert message == f"f.py line 2: {name} may not be used: a mock depends on its arguments alone"


@pytest.mark.parametrize(
    "statement",
    [
        "import os",
        "import os.path",
        "import math, os",
        "import os as o",
        "from os import path",
        "from os import *",
        "from . import other",
        "from .other import x",
        "from .. import x",
        "import time",
        "import random",
        "import secrets",
        "import uuid",
        "import pathlib",
        "import socket",
        "import subprocess",
        "import sys",
        "import importlib",
        "import inspect",
        "import io",
        "import threading",
        "import asyncio",
        "import pickle",
        "import numpy",
        "import agenteval",
        "import agenteval.tools",
        "from agenteval.spec import functions",
        "from agenteval.spec import load_suite",
        "from agenteval import spec",
        "import collections.os",
    ],
)
def test_a_module_that_does_not_only_compute_is_refused(tmp_path: Path, statement: str) -> None:
    message = refused(tmp_path, f"x = 1\n{statement}\ndef f(a, w, c): return 1, w\n")
    assert message.startswith("f.py line 2: ")
    assert " may not be imported; allowed are " in message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param("from datetime import datetime\nx = datetime.now()", ".now reads", id="now"),
        pytest.param("import datetime as d\nx = d.date.today()", ".today reads", id="today"),
        pytest.param("from datetime import datetime as d\nf = d.utcnow", ".utcnow reads", id="not-even-called"),
        pytest.param("import datetime as d\nf = d.datetime.fromtimestamp(5)", ".fromtimestamp() reads", id="timestamp"),
        pytest.param("import math\nmath.pi = 3", "math.pi may not be changed", id="module-changed"),
        pytest.param("import decimal as d\nd.DefaultContext.prec = 3", "may not be changed", id="deep-in-a-module"),
        pytest.param("from collections import Counter as C\nC.n = 3", "C.n may not be changed", id="class-changed"),
        pytest.param("import math\ndel math.pi", "math.pi may not be changed", id="module-robbed"),
        pytest.param("def f(a, w, c):\n return a['t'].astimezone(), w", "the machine's time zone", id="time-zone"),
        pytest.param("def f(a, w, c):\n return (1).__class__, w", ".__class__ may not be used", id="dunder"),
        pytest.param("def f(a, w, c):\n return f.__globals__, w", ".__globals__ may not be used", id="globals"),
        pytest.param("def f(a, w, c):\n global n", "keeps nothing between calls", id="global"),
    ],
)
def test_what_depends_on_more_than_the_arguments_is_refused_with_its_line(
    tmp_path: Path, body: str, words: str
) -> None:
    message = refused(tmp_path, body)
    assert message.startswith("f.py line 2: ")
    assert words in message


def test_the_first_line_that_is_wrong_is_told(tmp_path: Path) -> None:
    assert refused(tmp_path, "import math\nimport os\nimport sys\nf = open\n").startswith("f.py line 2: os may not")


def test_nothing_of_a_file_that_is_refused_is_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    refused(tmp_path, f"import math\nopen({str(target)!r}, 'w')\ndef f(a, w, c): return 1, w\n")
    assert not target.exists()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("def f(a, w, c):\n return __import__('os').getcwd(), w", id="import-at-run-time"),
        pytest.param("def f(a, w, c):\n return __builtins__['open']('/etc/hostname'), w", id="builtins"),
    ],
)
def test_what_is_reached_at_run_time_is_not_there_either(tmp_path: Path, body: str) -> None:
    with pytest.raises((ImportError, KeyError)):
        loaded(tmp_path, body).call({}, {}, "")


@pytest.mark.parametrize("module", sorted(COMPUTING_MODULES - {"__future__"}))
def test_every_module_that_only_computes_can_be_imported(tmp_path: Path, module: str) -> None:
    function = loaded(tmp_path, f"import {module} as m\ndef f(a, w, c): return str(m), w\n")
    assert module in function.call({}, {}, "")[0]


POINT = "@dataclass\nclass P:\n x: int"


@pytest.mark.parametrize(
    ("before", "expression", "result"),
    [
        pytest.param("", "sorted({3, 1, 2})", [1, 2, 3], id="sorted-set"),
        pytest.param("", "sorted(w.keys() - a.keys(), reverse=True)", ["n"], id="sorted-keys"),
        pytest.param("", "sorted(set('abc') - {'b'} | set('d'))", ["a", "c", "d"], id="algebra-of-sets"),
        pytest.param("", "len(set('abca'))", 3, id="counted-set"),
        pytest.param("", "'a' in {'a', 'b'}", True, id="searched-set"),
        pytest.param("", "min({3, 1}) + max(frozenset([3, 1]))", 4, id="least-and-greatest"),
        pytest.param("", "any({0, 1}) and all({1})", True, id="any-and-all"),
        pytest.param("", "list(dict.fromkeys('abca'))", ["a", "b", "c"], id="dict-as-set"),
        pytest.param("def g(x: set[int]) -> int: return 1", "g([])", 1, id="set-in-a-type"),
        pytest.param("from agenteval.spec import ToolError", "ToolError('x').args", ("x",), id="tool-error"),
        pytest.param("from datetime import datetime", "datetime.fromisoformat(c).hour", 9, id="clock-given"),
        pytest.param("import math\nfrom math import floor as fl", "math.ceil(.5) + fl(.5)", 1, id="math"),
        pytest.param("import re", "re.findall('[0-9]', 'a1b2')", ["1", "2"], id="re"),
        pytest.param("import json", "json.loads(json.dumps(w))", {"n": 1}, id="json"),
        pytest.param("import hashlib", "hashlib.sha256(b'').hexdigest()[:4]", "e3b0", id="hashlib"),
        pytest.param("TABLE = {'x': 9}", "TABLE['x']", 9, id="table"),
        pytest.param("def g(n): return 1 if n < 2 else n * g(n - 1)", "g(5)", 120, id="recursion"),
        pytest.param("x = '{open} hash'  # import os, set()", "x", "{open} hash", id="words-in-texts"),
        pytest.param(f"from dataclasses import dataclass\n{POINT}", "P(4).x", 4, id="dataclass"),
        pytest.param(
            f"from __future__ import annotations\nfrom dataclasses import dataclass\n{POINT}",
            "P(4).x",
            4,
            id="dataclass-whose-types-are-texts",
        ),
        pytest.param("from enum import Enum\nclass E(Enum):\n A = 'a'", "E('a').value", "a", id="enum"),
        pytest.param("from typing import NamedTuple\nclass P(NamedTuple):\n x: int", "P(4).x", 4, id="named-tuple"),
        pytest.param("from collections import namedtuple as n\nP = n('P', 'x')", "P(4).x", 4, id="namedtuple"),
        pytest.param("import collections.abc as m", "isinstance(w, m.Mapping)", True, id="collections-abc"),
    ],
)
def test_what_only_computes_is_allowed(tmp_path: Path, before: str, expression: str, result: Any) -> None:
    function = loaded(tmp_path, f"{before}\ndef f(a, w, c):\n return {expression}, w\n")
    assert function.call({}, {"n": 1}, "2026-01-15T09:00:00Z")[0] == result


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("f = lambda a, w, c: (7, w)", id="lambda"),
        pytest.param("class A:\n def f(self, a, w, c): return 7, w\nf = A().f", id="method"),
        pytest.param("def g(n):\n def f(a, w, c): return n, w\n return f\nf = g(7)", id="closure"),
    ],
)
def test_whatever_can_be_called_is_a_function(tmp_path: Path, body: str) -> None:
    assert loaded(tmp_path, body).call({}, {}, "")[0] == 7


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        pytest.param("gone.py:f", "", "gone.py cannot be read: No such file or directory", id="no-file"),
        pytest.param("f.py:g", "def f(): pass", "f.py has no function 'g'", id="no-function"),
        pytest.param("f.py:f", "f = 1", "f.py has no function 'f'", id="no-callable"),
        pytest.param("f.py:f", "def f(:", "f.py is no Python: ", id="syntax"),
        pytest.param("f.py:f", "\0", "f.py is no Python: ", id="null-byte"),
        pytest.param("f.py:f", "1 / 0", "f.py fails when it is loaded: ZeroDivisionError", id="raises"),
        pytest.param("f.py:f", "raise SystemExit(3)", "f.py fails when it is loaded: SystemExit", id="leaves"),
        pytest.param("f.py:f", "x = " + "(" * 300 + ")" * 300, "f.py is no Python: ", id="deep"),
        pytest.param("f.py:f", "x = " + "-" * 50_000 + "1", "f.py ", id="very-deep"),
        pytest.param("f.py:f", "#" * MAX_SOURCE_BYTES + "\n", "f.py is larger than 200,000 bytes", id="large"),
        pytest.param("f.py:f", "nope", "f.py fails when it is loaded: NameError", id="unknown-name"),
    ],
)
def test_a_file_that_gives_no_function_is_explained(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / "f.py").write_text(text)
    with pytest.raises(FunctionError) as caught:
        load_function(tmp_path, name)
    assert str(caught.value).startswith(words)


def test_a_file_of_another_encoding_is_explained(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(FunctionError, match=r"f\.py is no Python"):
        load_function(tmp_path, "f.py:f")


@pytest.mark.parametrize(
    "name", ["f.py", "f:f", "../f.py:f", "/f.py:f", "f.py:f()", "f.py:f.g", "a b.py:f", ".py:f", "f.PY:f", ""]
)
def test_a_name_of_another_form_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, a={"tools": [{**TOOL, "default": {"function": name}}], "tasks": [TASK]})
    assert [(file, key) for file, key, _ in problems_of(tmp_path)] == [("a.yaml", "tools[0].default.function")]


def suite_with(folder: Path, text: str, *, file: str = "bank.py") -> Path:
    """A suite whose tool and check name functions of one file."""
    (folder / file).parent.mkdir(exist_ok=True, parents=True)
    (folder / file).write_text(textwrap.dedent(text))
    tool = {
        **TOOL,
        "cases": [{"match": {"x": 1}, "function": f"{file}:settle"}],
        "default": {"function": f"{file}:settle"},
    }
    task = {**TASK, "checks": [{"kind": "function", "function": f"{file}:judge"}]}
    return write(folder, a={"tools": [tool], "tasks": [task]})


GOOD = "def settle(args, world, clock): return 1, world\ndef judge(world, answer, calls): return True\n"


@pytest.mark.parametrize("file", ["bank.py", "code/bank.py"])
def test_a_variant_has_the_functions_that_its_tools_and_checks_name(tmp_path: Path, file: str) -> None:
    (variant,) = load_suite(suite_with(tmp_path, GOOD, file=file)).variants
    assert sorted(variant.functions) == [f"{file}:judge", f"{file}:settle"]
    assert variant.functions[f"{file}:judge"].call({}, "", []) is True


def test_a_function_that_cannot_be_used_is_a_problem_where_it_is_named(tmp_path: Path) -> None:
    folder = suite_with(tmp_path, "import os\n" + GOOD)
    assert [(file, key) for file, key, _ in problems_of(folder)] == [
        ("a.yaml", "tools[0].cases[0].function"),
        ("a.yaml", "tools[0].default.function"),
        ("a.yaml", "tasks[0].checks[0].function"),
    ]
    assert {message.split(";")[0] for _, _, message in problems_of(folder)} == {
        "bank.py line 1: os may not be imported"
    }


def test_a_file_of_functions_is_not_read_as_one_of_tasks(tmp_path: Path) -> None:
    assert load_suite(suite_with(tmp_path, GOOD)).variants[0].label == "find/base"


def test_equal_names_and_sources_make_equal_functions(tmp_path: Path) -> None:
    folder = suite_with(tmp_path, GOOD)
    one, two = (load_suite(folder).variants[0].functions for _ in range(2))
    assert one == two
    assert one["bank.py:judge"].call is not two["bank.py:judge"].call


def test_the_result_of_a_function_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def f(a, w, c): return sorted(set('hgfedcba')) + [len({1, 2})], w\n")
    code = (
        "import json, pathlib, sys; from agenteval.spec.functions import load_function; "
        "print(json.dumps(load_function(pathlib.Path(sys.argv[1]), 'f.py:f').call({}, {}, '')))"
    )
    assert [json.loads(text) for text in printed_by(code, tmp_path)] == [[[*"abcdefgh", 2], {}]]
