"""Python functions of a suite: read from a file beside it, and held to what a mock may do."""

from __future__ import annotations

import ast
import decimal
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Annotated, Any

from pydantic import Field

from agenteval.spec.pure import compile_pure, impurities, pure_builtins
from agenteval.spec.running import run_module

FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*\.py:[A-Za-z_][A-Za-z0-9_]*$")]
"""`file.py:function`, the file below the suite's folder."""
MAX_SOURCE_BYTES = 200_000
"""A larger file of functions is refused unread."""


class FunctionError(ValueError):
    """A function cannot be used; says where in its file, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFunction:
    """A loaded function; equal names and equal sources make equal functions."""

    name: str
    """`file.py:function`."""
    source_digest: str
    """Hash of the whole file."""
    call: Callable[..., Any] = field(compare=False, repr=False)
    """Runs the file anew each time, so that every call starts from the same."""


def load_function(folder: Path, name: str) -> SuiteFunction:
    """Load the function that a case or check names.

    Args:
        folder: The suite's.
        name: `file.py:function`.

    Raises:
        FunctionError: If there is none, its file does not load, or it does what a mock may not.
    """
    file_name, _, function_name = name.partition(":")
    source = _read(folder / file_name, file_name)
    code = _compiled(source, file_name)
    module_name = f"agenteval_functions_{Path(file_name).stem}"

    def call(*arguments: Any) -> Any:
        with _run(code, module_name) as names:
            return names[function_name](*arguments)

    try:
        with _run(code, module_name) as names:
            is_there = callable(names.get(function_name))
    # The file is the user's code, which can raise anything, or leave.
    except (Exception, SystemExit) as error:
        raise FunctionError(f"{file_name} fails when it is loaded: {type(error).__name__}: {error}") from error
    if not is_there:
        raise FunctionError(f"{file_name} has no function {function_name!r}")
    return SuiteFunction(name=name, source_digest=f"sha256:{hashlib.sha256(source).hexdigest()}", call=call)


@contextmanager
def _run(code: CodeType, module_name: str) -> Iterator[dict[str, Any]]:
    """The names of a file that has just been run, in a state that is always the same."""
    with (
        decimal.localcontext(decimal.Context()),
        run_module(code, module_name, {"__builtins__": pure_builtins()}) as names,
    ):
        yield names


def _read(path: Path, file_name: str) -> bytes:
    try:
        # A pipe or a device may have no end.
        if path.exists() and not path.is_file():
            raise FunctionError(f"{file_name} is no file")
        if path.stat().st_size > MAX_SOURCE_BYTES:
            raise FunctionError(f"{file_name} is larger than {MAX_SOURCE_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise FunctionError(f"{file_name} cannot be read: {error.strerror or error}") from error


def _compiled(source: bytes, file_name: str) -> CodeType:
    """The code of a file that says nothing that a mock may not."""
    try:
        tree = ast.parse(source, filename=file_name)
        for line, problem in impurities(tree):
            raise FunctionError(f"{file_name} line {line}: {problem}")
        return compile_pure(tree, file_name)
    except FunctionError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FunctionError(f"{file_name} is no Python: {str(error) or 'it is nested too deep'}") from error
