"""A domain's tools.py -> names, descriptions and parameters of its tools, read and never run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import Problem
from agenteval.interchange.schemas import closed_object, inferred
from agenteval.interchange.source import read_text, unwritable
from agenteval.loading import Document

_DECORATORS = ("is_tool", "is_discoverable_tool")
_SIMPLE = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "dict": "object", "list": "array"}
_LISTS = frozenset(("list", "List", "Sequence", "tuple", "Tuple"))
_OBJECTS = frozenset(("dict", "Dict", "Mapping"))
_OTHERS = frozenset(("Any", "Literal", "Optional", "Union", "typing"))
_SECTION = re.compile(r"^\s*(Args|Arguments|Parameters|Returns|Return|Raises|Example|Examples|Note|Notes):\s*$")
_ARGUMENT = re.compile(r"^\s+(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCode:
    """What a tool's function says of itself."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema; what a class of the benchmark describes may have any value."""
    untyped: tuple[str, ...]
    """Parameters whose type names such a class, or is not given."""
    changes_state: bool
    """Whether the benchmark counts it among the tools that change the database."""
    is_offered: bool
    """Whether the agent has it from the start."""


def read_tool_code(path: Path) -> tuple[list[ToolCode], list[Problem]]:
    """The tools of a file in the order written, and what is wrong with it."""
    document = Document(path=path)
    text = read_text(document)
    if text is None:
        return [], document.problems
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=str(path))
        found = {tool.name: tool for tool in _tools(tree)}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, why = getattr(error, "lineno", None), getattr(error, "msg", str(error)) or type(error).__name__
        return [], [Problem(path=path, line=line, key="", message=f"not Python: {why}")]
    unusable = [message for tool in found.values() for _, message in unwritable([tool.description, tool.parameters])]
    return list(found.values()), [Problem(path=path, line=None, key="", message=message) for message in unusable]


def _tools(tree: ast.Module) -> Iterator[ToolCode]:
    for owner in tree.body:
        for node in owner.body if isinstance(owner, ast.ClassDef) else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in node.decorator_list:
                    if _name_of_decorator(decorator) in _DECORATORS:
                        yield _tool(node, decorator)


def _tool(node: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr) -> ToolCode:
    options = {keyword.arg: keyword.value for keyword in decorator.keywords} if isinstance(decorator, ast.Call) else {}
    first = decorator.args[:1] if isinstance(decorator, ast.Call) else []
    kind = _name(first[0] if first else options.get("tool_type"))
    changes = options.get("mutates_state")
    is_settled = isinstance(changes, ast.Constant) and isinstance(changes.value, bool)
    description, documented = _documentation(ast.get_docstring(node) or "")
    arguments = [argument for argument in (*node.args.posonlyargs, *node.args.args) if argument.arg != "self"]
    optional = {argument.arg for argument in arguments[len(arguments) - len(node.args.defaults) :]}
    optional |= {a.arg for a, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default}
    arguments += node.args.kwonlyargs
    schemas = {argument.arg: _schema(argument.annotation) for argument in arguments}
    properties = {
        name: {**schema, **({"description": documented[name]} if name in documented else {})}
        for name, schema in schemas.items()
    }
    return ToolCode(
        name=node.name,
        description=description or f"The function {node.name} of the benchmark.",
        parameters=closed_object(properties, required=[name for name in schemas if name not in optional]),
        untyped=tuple(argument.arg for argument in arguments if not _is_plain(argument.annotation)),
        changes_state=bool(changes.value) if isinstance(changes, ast.Constant) and is_settled else kind == "WRITE",
        is_offered=_name_of_decorator(decorator) == "is_tool",
    )


def _name_of_decorator(decorator: ast.expr) -> str:
    return _name(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _name(node: ast.expr | None) -> str:
    """The last part of a dotted name; empty where it is none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_plain(node: ast.expr | None) -> bool:
    """Whether an annotation is made of Python's own types alone."""
    if node is None or any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in _types(node)):
        return False
    names = {_name(part) for part in _types(node) if isinstance(part, ast.Name | ast.Attribute)}
    return names <= _SIMPLE.keys() | _LISTS | _OBJECTS | _OTHERS


def _types(node: ast.expr) -> Iterator[ast.AST]:
    """The parts of an annotation but the values of its literals."""
    left: list[ast.AST] = [node]
    while left:
        part = left.pop()
        yield part
        is_literal = isinstance(part, ast.Subscript) and _name(part.value) == "Literal"
        left += [] if is_literal else ast.iter_child_nodes(part)


def _schema(node: ast.expr | None) -> dict[str, Any]:
    """The schema of an annotation, as far as its names are known."""
    if isinstance(node, ast.Constant) and node.value is None:
        return {"type": "null"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right])
    if isinstance(node, ast.Subscript):
        inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _generic(_name(node.value), inner)
    kind = _SIMPLE.get(_name(node))
    return {} if kind is None else {"type": kind}


def _generic(name: str, inner: list[ast.expr]) -> dict[str, Any]:
    if name == "Literal":
        return _literal(inner)
    if name in ("Optional", "Union"):
        return _union([*inner, ast.Constant(None)] if name == "Optional" else inner)
    if name in _LISTS:
        items = _schema(inner[0]) if len(inner) == 1 else {}
        return {"type": "array", **({"items": items} if items else {})}
    return {"type": "object"} if name in _OBJECTS else {}


def _union(nodes: list[ast.expr]) -> dict[str, Any]:
    schemas = [_schema(node) for node in nodes]
    return {} if {} in schemas else {"anyOf": schemas}


def _literal(nodes: list[ast.expr]) -> dict[str, Any]:
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    is_plain = len(values) == len(nodes) and all(value is None or isinstance(value, str | int) for value in values)
    return {**inferred(values), "enum": values} if is_plain else {}


def _documentation(docstring: str) -> tuple[str, dict[str, str]]:
    """A docstring's text before its sections, and what it says of each argument."""
    lines = docstring.splitlines()
    starts = [number for number, line in enumerate(lines) if _SECTION.match(line)]
    text = "\n".join(lines[: starts[0]] if starts else lines).strip()
    arguments: dict[str, list[str]] = {}
    for start in starts:
        if lines[start].strip() in ("Args:", "Arguments:", "Parameters:"):
            end = next((other for other in starts if other > start), len(lines))
            _read_arguments(lines[start + 1 : end], arguments)
    return text, {name: " ".join(parts).strip() for name, parts in arguments.items()}


def _read_arguments(lines: list[str], arguments: dict[str, list[str]]) -> None:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    name = ""
    for line in lines:
        found = _ARGUMENT.match(line)
        if found and len(line) - len(line.lstrip()) == min(indents):
            name = found[1]
            arguments[name] = [found[2]]
        elif name and line.strip():
            arguments[name].append(line.strip())
