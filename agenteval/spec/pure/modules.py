"""Modules that only compute, and the views of them that a function of a suite imports.

A view holds a module's public names, made anew for each run, so that nothing can be kept in it. Missing are modules
that a module happens to have imported, and what reads the machine or differs between versions of Python.
"""

from __future__ import annotations

import calendar
import decimal
import functools
import importlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from agenteval.spec.pure.clocks import PURE as PURE_DATES
from agenteval.spec.pure.sets import operate


class ToolError(Exception):
    """Raised by a function of a mock for an error that the model is to see; the world stays as it is."""


COMPUTING_MODULES = frozenset(
    "__future__ base64 bisect calendar collections collections.abc copy dataclasses datetime decimal enum fractions "
    "functools hashlib heapq itertools json math numbers operator re statistics string textwrap typing".split()
)
"""What a file of functions may import: modules whose functions depend on their arguments alone."""
OWN_MODULE, OWN_NAME = "agenteval.spec", "ToolError"
"""The one thing of ours that such a file may import."""
_PROCESS = "keeps something for the whole process, or prints"
_VERSION = "differs between versions of Python"
_RANDOM = "draws random numbers"
_ORDERLESS = "has no fixed order, or differs between machines"
_LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "calendar": dict.fromkeys("setfirstweekday prcal prmonth LocaleTextCalendar LocaleHTMLCalendar".split(), _PROCESS),
    "copy": {"replace": _VERSION},
    "hashlib": dict.fromkeys("algorithms_available algorithms_guaranteed".split(), _ORDERLESS),
    "itertools": {"batched": _VERSION},
    "math": dict.fromkeys("fma sumprod".split(), _VERSION),
    "statistics": {
        **dict.fromkeys("correlation covariance kde linear_regression".split(), _VERSION),
        **dict.fromkeys("NormalDist kde_random".split(), _RANDOM),
    },
}
_OPERATORS = {"and_": "&", "or_": "|", "xor": "^", "sub": "-", "iand": "&=", "ior": "|=", "ixor": "^=", "isub": "-="}


def _fmean(data: Iterable[float]) -> float:
    """Without weights, whose rounding differs between versions of Python."""
    return statistics.fmean(data)


def _replaced(name: str) -> Mapping[str, Any]:
    """What a view has of its own in place of the module's."""
    match name:
        case "calendar":
            # Bound to one calendar of the module's, which the process may have changed.
            own = calendar.TextCalendar()
            return {
                "monthcalendar": own.monthdayscalendar,
                "month": own.formatmonth,
                "calendar": own.formatyear,
                "firstweekday": own.getfirstweekday,
                "weekheader": own.formatweekheader,
            }
        case "collections":
            return {"abc": _view("collections.abc")}
        case "datetime":
            return PURE_DATES
        case "decimal":
            return {key: value.copy() for key, value in vars(decimal).items() if isinstance(value, decimal.Context)}
        case "operator":
            return {key: functools.partial(operate, symbol) for key, symbol in _OPERATORS.items()}
        case "statistics":
            return {"fmean": _fmean}
    return {}


@functools.cache
def _public(name: str) -> Mapping[str, Any]:
    """A module's public names that only compute."""
    if name == OWN_MODULE:
        return {OWN_NAME: ToolError}
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None) or [key for key in vars(module) if not key.startswith("_")]
    left_out = _LEFT_OUT.get(name, {})
    found = {key: getattr(module, key) for key in names if key not in left_out}
    return {key: value for key, value in found.items() if not isinstance(value, ModuleType)}


def _view(name: str) -> ModuleType:
    """A module's public names in a module of their own."""

    def missing(key: str) -> Any:
        raise AttributeError(absence(name, key))

    view = ModuleType(name)
    names = {**_public(name), **_replaced(name)}
    vars(view).update(names, __all__=list(names), __getattr__=missing)
    return view


def absence(module: str, name: str) -> str | None:
    """Why a module's view does not have a name; None where it has."""
    if name in ("*", "__name__", "__all__") or name in _public(module) or name in _replaced(module):
        return None
    return f"{module}.{name} may not be used: it {_LEFT_OUT.get(module, {}).get(name, 'is no public name of it')}"


def import_view(
    name: str,
    _global_names: Mapping[str, Any] | None = None,
    _local_names: Mapping[str, Any] | None = None,
    from_list: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """`import` inside such a file; the rules have seen the statement, not what code builds at run time."""
    if isinstance(from_list, list):
        # No statement gives a list: it is Python's own library, whose parts in C import where they are called.
        return importlib.import_module(name)
    if level or name not in {*COMPUTING_MODULES, OWN_MODULE}:
        raise ImportError(f"{name!r} may not be imported by the functions of a suite")
    return _view(name if from_list else name.partition(".")[0])
