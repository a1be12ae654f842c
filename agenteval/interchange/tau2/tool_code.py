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
_LISTS = ("list", "List", "Sequence", "tuple", "Tuple")
_SECTION = re.compile(r"^\s*(Args|Arguments|Parameters|Returns|Return|Raises|Example|Examples|Note|Notes):\s*$")
_ARGUMENT = re.compile(r"^\s+(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCode:
    """What a tool's function says of itself."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema; a parameter whose type is a class of the benchmark allows every value."""
    untyped: tuple[str, ...]
    """Those parameters."""
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
        line = getattr(error, "lineno", None)
        return [], [Problem(path=path, line=line, key="", message=f"not Python: {error or type(error).__name__}")]
    unusable = [message for tool in found.values() for _, message in unwritable([tool.description, tool.parameters])]
    return list(found.values()), [Problem(path=path, line=None, key="", message=message) for message in unusable]


def _tools(tree: ast.Module) -> Iterator[ToolCode]:
    for owner in tree.body:
        for node in owner.body if isinstance(owner, ast.ClassDef) else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in node.decorator_list:
                    if _name(decorator.func if isinstance(decorator, ast.Call) else decorator) in _DECORATORS:
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
        name: {**(schema or {}), **({"description": documented[name]} if name in documented else {})}
        for name, schema in schemas.items()
    }
    return ToolCode(
        name=node.name,
        description=description or f"The function {node.name} of the benchmark.",
        parameters=closed_object(properties, required=[name for name in schemas if name not in optional]),
        untyped=tuple(name for name, schema in schemas.items() if schema is None),
        changes_state=bool(changes.value) if isinstance(changes, ast.Constant) and is_settled else kind == "WRITE",
        is_offered=_name(decorator.func if isinstance(decorator, ast.Call) else decorator) == "is_tool",
    )


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _schema(node: ast.expr | None) -> dict[str, Any] | None:
    """The schema of an annotation; None where it names a class of the benchmark, or is none."""
    if isinstance(node, ast.Constant) and node.value is None:
        return {"type": "null"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right])
    if isinstance(node, ast.Subscript):
        name = _name(node.value)
        inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Literal":
            return _literal(inner)
        if name in ("Optional", "Union"):
            return _union([*inner, ast.Constant(None)] if name == "Optional" else inner)
        if name in _LISTS:
            items = _schema(inner[0]) if len(inner) == 1 else None
            return {"type": "array", **({} if not items else {"items": items})}
        return {"type": "object"} if name in ("dict", "Dict", "Mapping") else None
    if _name(node) == "Any":
        return {}
    kind = _SIMPLE.get(_name(node))
    return None if kind is None else {"type": kind}


def _union(nodes: list[ast.expr]) -> dict[str, Any] | None:
    schemas = [_schema(node) for node in nodes]
    known = [schema for schema in schemas if schema is not None]
    if len(known) < len(schemas):
        return None
    return {} if {} in known else {"anyOf": known}


def _literal(nodes: list[ast.expr]) -> dict[str, Any] | None:
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    is_plain = len(values) == len(nodes) and all(value is None or isinstance(value, str | int) for value in values)
    return {**inferred(values), "enum": values} if is_plain else None


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
