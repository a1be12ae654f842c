"""Python functions of a suite: read from a file beside it, and held to what a mock may do.

The rules keep honest code honest; they are no sandbox. A suite's Python is the user's own program.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from pydantic import Field

FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*\.py:[A-Za-z_][A-Za-z0-9_]*$")]
"""`file.py:function`, the file below the suite's folder."""
MAX_SOURCE_BYTES = 200_000
"""A larger file of functions is refused unread."""
COMPUTING_MODULES = frozenset(
    "__future__ base64 bisect calendar collections collections.abc copy dataclasses datetime decimal enum fractions "
    "functools hashlib heapq itertools json math numbers operator re statistics string textwrap typing".split()
)
"""What such a file may import: modules whose functions depend on their arguments alone."""
_OWN_MODULE, _OWN_NAME = "agenteval.spec", "ToolError"
"""The one thing of ours that such a file may import."""
_ABSENT = frozenset(
    "open input print eval exec compile globals locals vars dir breakpoint help exit quit hash id memoryview".split()
)
_WALL_CLOCK = frozenset("now utcnow today fromtimestamp utcfromtimestamp".split())
_ORDERLESS_USES = frozenset("sorted len min max any all".split())


class ToolError(Exception):
    """Raised by a function of a mock for an error that the model is to see; the world stays as it is."""


class FunctionError(ValueError):
    """A function cannot be used; says where in its file, and why."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFunction:
    """A loaded function; equal names and equal sources make equal functions."""

    name: str
    """`file.py:function`."""
    source_digest: str
    """Hash of the whole file."""
    call: Callable[..., Any] = field(compare=False, repr=False)


def load_function(folder: Path, name: str) -> SuiteFunction:
    """Load the function that a case or check names.

    Args:
        folder: The suite's.
        name: `file.py:function`.

    Raises:
        FunctionError: If there is none, its file does not load, or it does what a mock may not.
    """
    file_name, _, function_name = name.partition(":")
    path = folder / file_name
    try:
        source = path.read_bytes()
    except OSError as error:
        raise FunctionError(f"{file_name} cannot be read: {error.strerror or error}") from error
    if len(source) > MAX_SOURCE_BYTES:
        raise FunctionError(f"{file_name} is larger than {MAX_SOURCE_BYTES:,} bytes")
    try:
        tree = ast.parse(source, filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = str(error) or "it is nested too deep"
        raise FunctionError(f"{file_name} is no Python: {what}", getattr(error, "lineno", None)) from error
    for line, problem in _impurities(tree):
        raise FunctionError(f"{file_name} line {line}: {problem}", line)
    namespace = _execute(tree, path, file_name)
    function = namespace.get(function_name)
    if not callable(function):
        raise FunctionError(f"{file_name} has no function {function_name!r}")
    return SuiteFunction(name=name, source_digest=f"sha256:{hashlib.sha256(source).hexdigest()}", call=function)


def _execute(tree: ast.Module, path: Path, file_name: str) -> Mapping[str, Any]:
    safe = {name: value for name, value in vars(builtins).items() if name not in _ABSENT}
    module = ModuleType(f"agenteval_functions_{path.stem}")
    namespace = vars(module)
    namespace["__builtins__"] = {**safe, "__import__": _import}
    # Where dataclasses look for the module of a class that they make.
    sys.modules[module.__name__] = module
    try:
        code = compile(tree, str(path), "exec", dont_inherit=True)
        exec(code, namespace)  # noqa: S102 # the suite's own code, checked above
    # The file is the user's code, which can raise anything, or leave.
    except (Exception, SystemExit) as error:
        raise FunctionError(f"{file_name} fails when it is loaded: {type(error).__name__}: {error}") from error
    finally:
        del sys.modules[module.__name__]
    return namespace


def _import(
    name: str,
    global_names: Mapping[str, Any] | None = None,
    local_names: Mapping[str, Any] | None = None,
    from_list: tuple[str, ...] = (),
    level: int = 0,
) -> ModuleType:
    """`import` inside such a file; the check before has seen the statement, not what code builds at run time."""
    if level or name not in {*COMPUTING_MODULES, _OWN_MODULE}:
        raise ImportError(f"{name!r} may not be imported by the functions of a suite")
    importlib.import_module(name)
    return builtins.__import__(name, global_names, local_names, from_list, level)


def _impurities(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What makes a result depend on more than the arguments: (line, problem), in order of line."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    found = [
        (getattr(node, "lineno", 1), problem)
        for node in ast.walk(tree)
        if (problem := _impurity(node, parents)) is not None
    ]
    yield from sorted(found)


def _impurity(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> str | None:
    match node:
        case ast.Import(names=names):
            return next((_may_not_import(alias.name) for alias in names if alias.name not in COMPUTING_MODULES), None)
        case ast.ImportFrom(module=module, level=0, names=names) if module == _OWN_MODULE:
            wrong = next((alias.name for alias in names if alias.name != _OWN_NAME), None)
            return None if wrong is None else _may_not_import(f"{module}.{wrong}")
        case ast.ImportFrom(module=module, level=level) if level or module not in COMPUTING_MODULES:
            return _may_not_import("." * level + (module or ""))
        case ast.Name(id=name) if name in _ABSENT:
            return f"{name} may not be used: a mock depends on its arguments alone"
        case ast.Attribute(attr=name) if name in _WALL_CLOCK:
            return f".{name} reads the machine's clock; use the clock that the function is given"
        case ast.Attribute(attr=name) if name.startswith("__"):
            return f".{name} may not be used"
        case ast.Call(func=ast.Attribute(attr="astimezone"), args=[], keywords=[]):
            return ".astimezone() reads the machine's time zone; name the zone that is meant"
        case ast.expr() if _is_set(node) and not _is_orderless(node, parents):
            return "the order of a set changes from process to process; use a list, dict.fromkeys or sorted(set(…))"
        case ast.Global() | ast.Nonlocal():
            return "a mock keeps nothing between calls but the world"
    return None


def _is_set(node: ast.AST) -> bool:
    """Whether an expression gives a set by its form: written out, made by name, or computed from a map's keys."""
    match node:
        case ast.Set() | ast.SetComp() | ast.Name(id="set" | "frozenset"):
            return True
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Sub()):
            return any(map(_is_view, (node.left, node.right)))
    return False


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")


def _is_orderless(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a set is only searched, counted or sorted."""
    parent = parents.get(node)
    if isinstance(node, ast.Name) and isinstance(parent, ast.Call) and parent.func is node:
        return _is_orderless(parent, parents)
    if isinstance(parent, ast.Compare):
        return all(isinstance(operator, ast.In | ast.NotIn) for operator in parent.ops)
    if isinstance(parent, ast.BinOp):
        return _is_orderless(parent, parents)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        # A key makes equals of what is not, and the order among them is the set's.
        has_key = any(keyword.arg in ("key", None) for keyword in parent.keywords)
        return parent.func.id in _ORDERLESS_USES and not has_key
    return isinstance(parent, ast.arg | ast.Subscript)


def _may_not_import(name: str) -> str:
    return f"{name} may not be imported; allowed are {', '.join(sorted(COMPUTING_MODULES))}"
