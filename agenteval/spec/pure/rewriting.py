"""A checked file of functions -> code whose sets are ordered, and the builtins that it runs with."""

from __future__ import annotations

import ast
import builtins
import functools
import operator
from collections.abc import Iterable
from types import CodeType
from typing import Any

from agenteval.spec.pure.modules import import_view
from agenteval.spec.pure.rules import ABSENT
from agenteval.spec.pure.sets import OrderedFrozenset, OrderedSet, operate, operate_attribute, operate_item

_SET, _OPERATE = "__ordered_set__", "__operate__"
_OPERATE_ITEM, _OPERATE_ATTRIBUTE = "__operate_item__", "__operate_attribute__"
_SYMBOLS: dict[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Sub: "-"}
_NO_EXPRESSIONS = frozenset("annotation returns pattern".split())
"""Fields of Python's syntax whose operators compute no sets."""


def compile_pure(tree: ast.Module, file_name: str) -> CodeType:
    """The code of a file; the tree is changed on the way.

    Raises:
        RecursionError: If it is nested too deep.
        SyntaxError: If it is no Python after all, as with a `return` outside a function.
    """
    return compile(ast.fix_missing_locations(_Rewriter().visit(tree)), file_name, "exec", dont_inherit=True)


def pure_builtins() -> dict[str, Any]:
    """Builtins of one run, without those that reach outside or differ between processes and versions."""
    safe = {name: value for name, value in vars(builtins).items() if name not in ABSENT}
    ordered = {"set": OrderedSet, "frozenset": OrderedFrozenset, _SET: OrderedSet, _OPERATE: operate}
    ordered |= {_OPERATE_ITEM: operate_item, _OPERATE_ATTRIBUTE: operate_attribute}
    return {**safe, **ordered, "sum": plain_sum, "__import__": import_view}


def plain_sum(items: Iterable[Any], /, start: Any = 0) -> Any:
    """From left to right; Python's own compensates rounding since 3.12, and then gives other floats."""
    return functools.reduce(operator.add, items, start)


class _Rewriter(ast.NodeTransformer):
    """Sets that are written out, and the operators that may make one of a map's keys, become calls of ours."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if name in _NO_EXPRESSIONS:
                continue
            if isinstance(value, list):
                value[:] = [self.visit(item) if isinstance(item, ast.AST) else item for item in value]
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def visit_Set(self, node: ast.Set) -> ast.AST:  # the name that ast calls
        self.generic_visit(node)
        return _called(_SET, node, ast.List(elts=node.elts, ctx=ast.Load()))

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return _called(_SET, node, ast.ListComp(elt=node.elt, generators=node.generators))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        symbol = _SYMBOLS.get(type(node.op))
        return node if symbol is None else _called(_OPERATE, node, ast.Constant(symbol), node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        symbol = _SYMBOLS.get(type(node.op))
        if symbol is None:
            return node
        word = ast.Constant(f"{symbol}=")
        match node.target:
            case ast.Name(id=name):
                before = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node)
                value = _called(_OPERATE, node, word, before, node.value)
                return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)
            # A part of a list is no set, and a private name is spelt otherwise within its class.
            case ast.Subscript(value=holder, slice=key) if not isinstance(key, ast.Slice):
                change = _called(_OPERATE_ITEM, node, word, holder, key, node.value)
            case ast.Attribute(value=holder, attr=name) if not name.startswith("__"):
                change = _called(_OPERATE_ATTRIBUTE, node, word, holder, ast.Constant(name), node.value)
            case _:
                return node
        return ast.copy_location(ast.Expr(value=change), node)


def _called(name: str, node: ast.AST, *arguments: ast.expr) -> ast.Call:
    function = ast.Name(id=name, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=list(arguments), keywords=[]), node)
