"""Code of a suite's Python files -> the names of the module that it makes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import Any

# The table of modules is the process's: two threads would take each other's module out of it.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def run_module(code: CodeType, name: str, names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The names of a module that has just been run; it is a module of the process until the block ends.

    Args:
        code: What is run.
        name: The module's.
        names: What it has before its first line.
    """
    module = ModuleType(name)
    vars(module).update(names)
    with _ONE_AT_A_TIME:
        # Where dataclasses look for the module of a class that they make.
        sys.modules[name] = module
        try:
            exec(code, vars(module))  # noqa: S102 # the suite's own code
            yield vars(module)
        finally:
            del sys.modules[name]
