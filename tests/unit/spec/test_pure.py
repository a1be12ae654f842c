"""What a suite's functions compute with: sets in order, modules that keep nothing, times of no machine."""

from __future__ import annotations

import calendar
import decimal
import json
import math
import operator
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.spec.functions import FunctionError, load_function
from agenteval.spec.pure.rewriting import plain_sum
from agenteval.spec.pure.sets import OrderedFrozenset, OrderedSet, operate

WORLD = dict.fromkeys("hgfedcba", 0)


def value_of(folder: Path, expression: str, before: str = "") -> Any:
    """What an expression comes to in a function whose world has the keys h to a."""
    (folder / "f.py").write_text(f"{textwrap.dedent(before)}\ndef f(a, w, c):\n    return {expression}, w\n")
    return load_function(folder, "f.py:f").call({}, dict(WORLD), "2026-01-15T09:00:00Z")[0]


MAPPING = """
from collections.abc import Mapping
class M(Mapping):
    def __getitem__(self, key): return 1
    def __iter__(self): return iter("hbc")
    def __len__(self): return 3
"""
SETS = [
    pytest.param("list({'h', 'b', 'z', 'c'})", "", ["h", "b", "z", "c"], id="written-out"),
    pytest.param("[x for x in {*'hbz', 'c'}]", "", ["h", "b", "z", "c"], id="unpacked-into"),
    pytest.param("[*{x for x in 'hbzch'}]", "", ["h", "b", "z", "c"], id="comprehension"),
    pytest.param("','.join(set('hbzchh'))", "", "h,b,z,c", id="by-name"),
    pytest.param("list(map(list, map(frozenset, ['hbz'])))", "", [["h", "b", "z"]], id="handed-on"),
    pytest.param("max({'hh', 'bb', 'zz'}, key=len)", "", "hh", id="greatest-by-key"),
    pytest.param("sorted({'hh', 'bb', 'z'}, key=len)", "", ["z", "hh", "bb"], id="sorted-by-key"),
    pytest.param("list(w.keys() & {'a', 'h', 'c'})", "", ["h", "c", "a"], id="keys-and"),
    pytest.param("list(w.keys() - 'hg')", "", [*"fedcba"], id="keys-minus"),
    pytest.param("list('zyh' | w.keys())", "", [*"zyhgfedcba"], id="or-keys"),
    pytest.param("list(w.keys() ^ iter('hgz'))", "", [*"fedcbaz"], id="keys-xor-iterator"),
    pytest.param("[k for k, _ in w.items() - {('h', 0)}]", "", [*"gfedcba"], id="items"),
    pytest.param("g(w)", "def g(w):\n ks = w.keys()\n ks -= {'h'}\n return list(ks)", [*"gfedcba"], id="in-place"),
    pytest.param(
        "g(w)", "def g(w):\n ks = w.keys()\n other = ks | 'z'\n return list(other)", [*"hgfedcbaz"], id="kept"
    ),
    pytest.param(
        "list(reduce(operator.or_, [w.keys(), 'zy']))",
        "import operator\nfrom functools import reduce",
        [*"hgfedcbazy"],
        id="operator-as-function",
    ),
    pytest.param("list(set('hbz') | set('ca'))", "", [*"hbzca"], id="algebra"),
    pytest.param("list(set('hbz').union('ca', 'h'))", "", [*"hbzca"], id="method"),
    pytest.param("list(set.union(*map(set, ['hb', 'zc'])))", "", [*"hbzc"], id="method-of-the-class"),
    pytest.param("g()", "def g():\n s = t = {'h'}\n s |= {'b'}\n return list(t)", ["h", "b"], id="one-set-two-names"),
    pytest.param("{'h', 'b'}.pop()", "", "h", id="pop"),
    pytest.param("str({'h', 'b'}) + str(frozenset('c'))", "", "{'h', 'b'}frozenset({'c'})", id="as-text"),
    pytest.param("isinstance({1}, set) and isinstance(frozenset(), frozenset)", "", True, id="isinstance"),
    pytest.param("{1, 2} == {2, 1} and {1} < {1, 2} and w.keys() >= {'a'}", "", True, id="comparison"),
    pytest.param("{frozenset('ab'): 1}[frozenset('ba')]", "", 1, id="as-key"),
    pytest.param("list(copy.copy(s))", "import copy\ns = {'h'}\nt = copy.copy(s)\nt.add('b')", ["h"], id="copied"),
    pytest.param("g(w)", "def g(w):\n match {'h'}:\n  case set(): return 'set'", "set", id="pattern"),
    pytest.param("list(M().keys() | {'z', 'y'})", MAPPING, [*"hbczy"], id="keys-of-a-mapping-of-its-own"),
    pytest.param("w | {'z': 1} == {**w, 'z': 1}", "", True, id="or-of-maps"),
    pytest.param("(7 - 2, 6 & 3, 6 | 1, 6 ^ 2, -1)", "", (5, 2, 7, 4, -1), id="numbers"),
    pytest.param("g(9)", "def g(n):\n n -= 2\n n &= 5\n return n", 5, id="numbers-in-place"),
    pytest.param("g({'n': [9]})", "def g(d):\n d['n'][0] -= 2\n return d['n']", [7], id="item-in-place"),
    pytest.param(
        "g(w)",
        "def g(w):\n d = {'k': w.keys()}\n d['k'] |= w.keys()\n return list(d['k'])",
        [*"hgfedcba"],
        id="item-of-keys",
    ),
    pytest.param(
        "g(w)",
        "class C: pass\ndef g(w):\n c = C()\n c.k = w.keys()\n c.k -= {'h'}\n return list(c.k)",
        [*"gfedcba"],
        id="attribute-of-keys",
    ),
    pytest.param(
        "g()", "def g():\n s = t = {'a', 'b'}\n t -= {'a': 1}.keys()\n return list(s)", ["b"], id="in-place-by-keys"
    ),
    pytest.param(
        "g()", "def g():\n x = [[1, 2, 3], 4]\n x[0][1:] += [5]\n x[1] -= 1\n return x", [[1, 2, 3, 5], 3], id="lists"
    ),
    pytest.param("list(set('hbz') & set('zh'))", "", ["h", "z"], id="and-in-the-order-of-the-left"),
    pytest.param("(isinstance({1}, frozenset), isinstance(frozenset(), set))", "", (False, False), id="two-kinds"),
    pytest.param(
        "g()",
        "def g():\n s = set(range(9))\n s.clear()\n s.update([3, 1], [3, 2])\n return list(s)",
        [3, 1, 2],
        id="anew",
    ),
    pytest.param("g(1)", "def g(x: int | None = None) -> int | str:\n return x", 1, id="types"),
]


@pytest.mark.parametrize(("expression", "before", "result"), SETS)
def test_a_set_has_the_order_of_its_items(tmp_path: Path, expression: str, before: str, result: Any) -> None:
    assert value_of(tmp_path, expression, before) == result


LETTERS = st.lists(st.sampled_from("abcdefgh"), max_size=6)
BINARY = "union intersection difference symmetric_difference issubset issuperset isdisjoint".split()
UPDATES = "update intersection_update difference_update symmetric_difference_update".split()


@pytest.mark.parametrize("method", BINARY)
@given(left=LETTERS, right=LETTERS)
def test_methods_give_what_pythons_sets_give(method: str, left: list[str], right: list[str]) -> None:
    expected = getattr(set(left), method)(right)
    for kind in (OrderedSet, OrderedFrozenset):
        found = getattr(kind(left), method)(right)
        assert (found if isinstance(expected, bool) else set(found)) == expected


@pytest.mark.parametrize("method", UPDATES)
@given(left=LETTERS, right=LETTERS)
def test_changes_change_as_pythons_sets_do(method: str, left: list[str], right: list[str]) -> None:
    plain, ordered = set(left), OrderedSet(left)
    getattr(plain, method)(right)
    getattr(ordered, method)(right)
    assert set(ordered) == plain


@pytest.mark.parametrize("symbol", ["&", "|", "^", "-"])
@given(left=LETTERS, right=LETTERS)
def test_operators_give_what_pythons_sets_give(symbol: str, left: list[str], right: list[str]) -> None:
    function = {"&": operator.and_, "|": operator.or_, "^": operator.xor, "-": operator.sub}[symbol]
    expected = function(set(left), set(right))
    assert set(operate(symbol, OrderedSet(left), OrderedSet(right))) == expected
    assert set(operate(symbol + "=", OrderedSet(left), OrderedSet(right))) == expected
    assert set(operate(symbol, dict.fromkeys(left).keys(), right)) == expected


@given(LETTERS)
def test_items_stand_in_the_order_in_which_they_came_first(items: list[str]) -> None:
    assert list(OrderedSet(items)) == list(dict.fromkeys(items))


def test_a_sum_is_taken_from_left_to_right() -> None:
    """Python 3.12 and later give exactly 1.0."""
    assert plain_sum([0.1] * 10) == 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 == 0.9999999999999999


@given(st.lists(st.integers() | st.booleans()), st.integers())
def test_a_sum_of_whole_numbers_is_pythons(items: list[int], start: int) -> None:
    assert plain_sum(items, start) == sum(items, start)


def test_functions_have_the_plain_sum(tmp_path: Path) -> None:
    assert value_of(tmp_path, "sum([1e16, 1.0, -1e16])") == 0.0


STATE = [
    pytest.param("KEPT = []", "KEPT.append(1) or len(KEPT)", 1, id="list"),
    pytest.param("def g(kept=[]):\n kept.append(1)\n return len(kept)", "g()", 1, id="default"),
    pytest.param("class A:\n n = 0\ndef g():\n A.n += 1\n return A.n", "g()", 1, id="class"),
    pytest.param("import itertools\nN = itertools.count()", "next(N)", 0, id="iterator"),
    pytest.param("def g():\n g.n = getattr(g, 'n', 0) + 1\n return g.n", "g()", 1, id="attribute-of-a-function"),
    pytest.param(
        "import functools\nM = []\n@functools.lru_cache\ndef g(x):\n M.append(x)\n return len(M)",
        "g(1) + g(1)",
        2,
        id="cache",
    ),
    pytest.param(
        "def outer():\n n = 0\n def g():\n  nonlocal n\n  n += 1\n  return n\n return g\ng = outer()",
        "g()",
        1,
        id="nonlocal",
    ),
    pytest.param(
        "import decimal\ndef g():\n decimal.getcontext().prec += 1\n return decimal.getcontext().prec",
        "g()",
        29,
        id="decimal-context",
    ),
    pytest.param(
        "import decimal\ndef g():\n c = decimal.DefaultContext\n c.prec += 1\n return c.prec",
        "g()",
        29,
        id="decimal-default",
    ),
    pytest.param("import math\ndef g():\n m = math\n m.pi += 1\n return round(m.pi, 2)", "g()", 4.14, id="module"),
    pytest.param("import math as m\ndef g():\n setattr(m, 'e', m.pi)\n return m.e", "g()", math.pi, id="setattr"),
]


@pytest.mark.parametrize(("before", "expression", "result"), STATE)
def test_nothing_is_kept_from_call_to_call(tmp_path: Path, before: str, expression: str, result: Any) -> None:
    (tmp_path / "f.py").write_text(f"{before}\ndef f(a, w, c):\n    return {expression}, w\n")
    function = load_function(tmp_path, "f.py:f")
    assert [function.call({}, {}, "")[0] for _ in range(3)] == [result] * 3


def test_what_the_process_has_set_does_not_reach_a_call(tmp_path: Path) -> None:
    calendar.setfirstweekday(6)
    try:
        with decimal.localcontext(prec=3):
            found = value_of(
                tmp_path,
                "[calendar.firstweekday(), calendar.monthcalendar(2026, 1)[0], str(D(1) / 3)]",
                "import calendar\nfrom decimal import Decimal as D",
            )
    finally:
        calendar.setfirstweekday(0)
    assert found == [0, [0, 0, 0, 1, 2, 3, 4], "0." + "3" * 28]


def test_a_call_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    before = decimal.getcontext().copy(), set(sys.modules)
    value_of(tmp_path, "1", "import decimal\ndecimal.setcontext(decimal.Context(prec=5))")
    assert (decimal.getcontext().prec, set(sys.modules)) == (before[0].prec, before[1])


def test_calls_from_many_threads_do_not_meet(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n x: int\n"
        "def f(a, w, c):\n @dataclass\n class Q:\n  y: P\n return Q(P(a['n'])).y.x, w\n"
    )
    function, found = load_function(tmp_path, "f.py:f"), []

    def call(number: int) -> None:
        found.extend(function.call({"n": number}, {}, "")[0] for _ in range(20))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(list(range(4)) * 20)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        pytest.param("from statistics import random", "statistics.random may not be used", id="module-in-a-module"),
        pytest.param("import statistics as s\nx = s.random", "statistics.random may not be used", id="as-attribute"),
        pytest.param("from dataclasses import inspect", "dataclasses.inspect may not be used", id="inspect"),
        pytest.param("from json import decoder", "json.decoder may not be used", id="submodule"),
        pytest.param("from calendar import setfirstweekday", "keeps something for the whole process", id="setting"),
        pytest.param("import calendar\ncalendar.setfirstweekday(6)", "keeps something", id="setting-as-attribute"),
        pytest.param("from statistics import NormalDist", "draws random numbers", id="random"),
        pytest.param("from math import sumprod", "differs between versions of Python", id="newer-python"),
        pytest.param("import itertools\nitertools.batched", "differs between versions of Python", id="newer-attribute"),
        pytest.param("import hashlib\nhashlib.algorithms_available", "has no fixed order", id="set-of-a-module"),
        pytest.param("from functools import _make_key", "is no public name of it", id="private"),
    ],
)
def test_a_name_that_does_not_only_compute_is_refused(tmp_path: Path, statement: str, words: str) -> None:
    with pytest.raises(FunctionError, match=r"f\.py line \d: ") as caught:
        value_of(tmp_path, "1", statement)
    assert words in str(caught.value)


def test_such_a_name_is_not_there_at_run_time_either(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match=r"statistics\.random may not be used"):
        value_of(tmp_path, "getattr(m, 'random')", "import statistics as m")


@pytest.fixture
def far_zone() -> Iterator[None]:
    """A machine whose time zone is not UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Asia/Kathmandu"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


DATES = "from datetime import date, datetime as dt, timedelta, timezone as tz\nT = dt(2026, 1, 15, 9)"
DATES += "\nclass My(date): pass\ndef g(): return isinstance(T.date(), My)"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("T.timestamp()", id="timestamp"),
        pytest.param("T.astimezone(tz.utc).isoformat()", id="from-the-machines-zone"),
        pytest.param("T.replace(tzinfo=tz.utc).astimezone(tz=None).isoformat()", id="to-the-machines-zone"),
        pytest.param("T.strftime('%s')", id="seconds-as-text"),
        pytest.param("f'{T:%s}'", id="seconds-in-a-text"),
        pytest.param("T.strftime('%-s')", id="seconds-with-a-flag"),
        pytest.param("T.strftime('%010s')", id="seconds-with-a-width"),
        pytest.param("T.time().strftime('%s')", id="seconds-of-a-time"),
        pytest.param("dt.strptime('2026 UTC', '%Y %Z').year", id="a-zones-name"),
        pytest.param("dt.max.replace(year=2026).timestamp()", id="from-the-last-time"),
        pytest.param("(T + timedelta(1)).timestamp()", id="computed"),
        pytest.param("dt.fromisoformat('2026-01-15').timestamp()", id="read"),
        pytest.param("dt.strptime('2026', '%Y').timestamp()", id="parsed"),
        pytest.param("T.date().strftime('%s')", id="date"),
        pytest.param("getattr(dt, 'now')().year", id="now"),
        pytest.param("getattr(date, 'today')().year", id="today"),
        pytest.param("getattr(dt, 'fromtimestamp')(0).hour", id="from-timestamp"),
    ],
)
@pytest.mark.usefixtures("far_zone")
def test_the_machines_clock_and_zone_are_not_there(tmp_path: Path, expression: str) -> None:
    with pytest.raises(RuntimeError, match="reads the machine's"):
        value_of(tmp_path, expression, DATES)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        pytest.param("T.replace(tzinfo=tz.utc).timestamp()", 1768467600.0, id="timestamp"),
        pytest.param("dt.fromtimestamp(0, tz.utc).isoformat()", "1970-01-01T00:00:00+00:00", id="zone-given"),
        pytest.param("dt.fromtimestamp(0, tz=tz.utc).hour", 0, id="zone-by-name"),
        pytest.param("dt.fromisoformat(c).astimezone(tz(timedelta(hours=2))).hour", 11, id="between-zones"),
        pytest.param("isinstance(T.date(), date) and isinstance(T, date)", True, id="isinstance"),
        pytest.param("isinstance(T, dt) and not isinstance(T.date(), dt)", True, id="isinstance-of-a-time"),
        pytest.param("(T - dt(2026, 1, 1)).days", 14, id="difference"),
        pytest.param("T.strftime('%Y-%m %%s')", "2026-01 %s", id="format"),
        pytest.param("str(T) + repr(T.date())", "2026-01-15 09:00:00date(2026, 1, 15)", id="as-text"),
        pytest.param("dt.strptime('2026-01-15', '%Y-%m-%d').day", 15, id="parsed"),
        pytest.param("T.time().strftime('%H')", "09", id="time-of-day"),
        pytest.param("T.timetz().isoformat() + str(dt.min)", "09:00:000001-01-01 00:00:00", id="first"),
        pytest.param("issubclass(dt, date)", True, id="issubclass"),
        pytest.param("g()", False, id="a-class-of-its-own"),
        pytest.param("min(T, dt(2025, 1, 1)).year", 2025, id="compared"),
    ],
)
@pytest.mark.usefixtures("far_zone")
def test_times_compute_as_pythons(tmp_path: Path, expression: str, result: Any) -> None:
    assert value_of(tmp_path, expression, DATES) == result


@pytest.mark.parametrize(
    ("before", "expression", "result"),
    [
        pytest.param("def g(id, hash=2): return id + hash", "g(1)", 3, id="arguments-named-like-builtins"),
        pytest.param("", "[id for id in [1]]", [1], id="variable-named-like-a-builtin"),
        pytest.param("input = 5", "input", 5, id="module-value-named-like-a-builtin"),
        pytest.param("", "type(1).__name__ + __name__", "intagenteval_functions_f", id="name"),
        pytest.param(
            "class A:\n def __init__(self): self.x = 1\nclass B(A):\n def __init__(self): super().__init__()",
            "B().x",
            1,
            id="super-init",
        ),
        pytest.param("class A:\n now = 4", "A().now", 4, id="attribute-named-now"),
        pytest.param("", "{1, 2} <= {1, 2, 3}", True, id="sets-compared"),
        pytest.param("import decimal", "str(decimal.Decimal('1.10') * 2)", "2.20", id="decimal"),
        pytest.param("import statistics", "statistics.fmean([1, 2])", 1.5, id="fmean"),
        pytest.param("from collections import abc", "isinstance(w, abc.Mapping)", True, id="abc"),
        pytest.param("import collections.abc", "isinstance(w, collections.abc.Mapping)", True, id="abc-by-dots"),
        pytest.param("from math import *", "floor(1.5)", 1, id="star"),
    ],
)
def test_honest_code_is_not_refused(tmp_path: Path, before: str, expression: str, result: Any) -> None:
    assert value_of(tmp_path, expression, before) == result


def test_sets_have_one_order_in_every_process(tmp_path: Path) -> None:
    expressions = [case.values[0] for case in SETS if not case.values[1]]
    (tmp_path / "f.py").write_text(f"def f(a, w, c):\n    return [{', '.join(map(str, expressions))}], w\n")
    code = (
        "import json, pathlib, sys; from agenteval.spec.functions import load_function; "
        f"print(json.dumps(load_function(pathlib.Path(sys.argv[1]), 'f.py:f').call({{}}, {WORLD!r}, '')))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1
    assert json.loads(next(iter(found)))[0][0] == ["h", "b", "z", "c"]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_refused_unread(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f.py"
    {"pipe": os.mkfifo, "device": lambda path: os.symlink("/dev/zero", path), "folder": os.mkdir}[kind](path)
    with pytest.raises(FunctionError, match=r"f\.py is no file"):
        load_function(tmp_path, "f.py:f")
