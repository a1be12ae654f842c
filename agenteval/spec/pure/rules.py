"""What a file of functions may not say, since its results would depend on more than the arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.spec.pure.modules import COMPUTING_MODULES, OWN_MODULE, absence

ABSENT = frozenset(
    "open input print eval exec compile globals locals vars dir breakpoint help exit quit hash id memoryview".split()
)
"""Builtins that reach outside, or whose results differ between processes."""
_CLOCK_READERS = frozenset("now utcnow today".split())
_ZONE_READERS = frozenset("astimezone fromtimestamp".split())
_HARMLESS_DUNDERS = frozenset(
    "__init__ __new__ __post_init__ __name__ __qualname__ __doc__ __len__ __iter__ __next__ __contains__ __getitem__ "
    "__setitem__ __delitem__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__ __sub__ __mul__ __str__ __repr__ "
    "__enter__ __exit__ __members__ __setattr__".split()
)


def impurities(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What makes a result depend on more than the arguments: (line, problem), in order of line."""
    names = _Names.of(tree)
    found = [
        (getattr(node, "lineno", 1), problem)
        for node in ast.walk(tree)
        if (problem := _impurity(node, names)) is not None
    ]
    yield from sorted(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What the names of a file stand for."""

    bound: frozenset[str]
    """Names that the file gives a meaning of its own, somewhere."""
    modules: Mapping[str, str]
    """Name to the module that it stands for."""
    imported: frozenset[str]
    """Names that stand for a module, or for something out of one."""

    @classmethod
    def of(cls, tree: ast.Module) -> _Names:
        nodes = list(ast.walk(tree))
        plain = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        members = [alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
        return cls(
            bound=frozenset(name for node in nodes for name in _bound_by(node)),
            modules={alias.asname or alias.name: alias.name for alias in plain},
            imported=frozenset(alias.asname or alias.name.partition(".")[0] for alias in (*plain, *members)),
        )


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def _impurity(node: ast.AST, names: _Names) -> str | None:
    match node:
        case ast.Import(names=aliases):
            return next((_may_not_import(alias.name) for alias in aliases if alias.name not in COMPUTING_MODULES), None)
        case ast.ImportFrom(module=module, level=level, names=aliases):
            if level or module is None or module not in {*COMPUTING_MODULES, OWN_MODULE}:
                return _may_not_import("." * level + (module or ""))
            return next(filter(None, (_member_problem(module, alias.name) for alias in aliases)), None)
        case ast.Name(id=name) if name in ABSENT - names.bound:
            return f"{name} may not be used: a mock depends on its arguments alone"
        case ast.Attribute():
            return _attribute_problem(node, names)
        case ast.Call(func=ast.Attribute(attr=name), args=arguments, keywords=[]) if name in _ZONE_READERS:
            if len(arguments) == (name == "fromtimestamp"):
                return f".{name}() reads the machine's time zone; name the zone that is meant"
        case ast.Global():
            return "a mock keeps nothing between calls but the world"
    return None


def _attribute_problem(node: ast.Attribute, names: _Names) -> str | None:
    path = _dotted(node)
    root, _, rest = path.partition(".")
    if node.attr.startswith("__") and node.attr not in _HARMLESS_DUNDERS:
        return f".{node.attr} may not be used"
    if isinstance(node.ctx, ast.Store | ast.Del) and root in names.imported:
        return f"{path} may not be changed: a mock keeps nothing between calls but the world"
    if node.attr in _CLOCK_READERS and root in names.imported:
        return f".{node.attr} reads the machine's clock; use the clock that the function is given"
    if rest == node.attr and root in names.modules:
        return absence(names.modules[root], node.attr)
    return None


def _dotted(node: Any) -> str:
    """`a.b.c` of names joined by dots; empty for an attribute of anything else."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def _member_problem(module: str, name: str) -> str | None:
    return (
        _may_not_import(f"{module}.{name}") if module == OWN_MODULE and absence(module, name) else absence(module, name)
    )


def _may_not_import(name: str) -> str:
    return f"{name} may not be imported; allowed are {', '.join(sorted(COMPUTING_MODULES))}"
