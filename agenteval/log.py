"""structlog set-up: talk goes to stderr, data to stdout.

Configured by the command line alone; a program that imports agenteval keeps its own logging.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Literal

import structlog

LogFormat = Literal["text", "json"]
SECRET_NAME = re.compile(
    r"(?i:api_?key|access_?key|private_?key|token$|secret|passw(or)?d|passphrase|authorization|credential)"
    r"|(?i:(^|_)auth$|(^|_)(access|api|auth|bearer|hf|refresh)_?tokens$)"
    # In capitals as variables are, for short words are something else in a configuration.
    r"|(^|_)(PATS?|PASS|JWT|BEARER|COOKIES?)$|_PWD$"
    r"|^(?!.*(BATCHED|INPUT|MAX|MIN|NEW|NUM|OUTPUT|PROMPT|SPECIAL|STOP|TOTAL))(.*_)?TOKENS$"
)
"""Names of keys and environment variables whose values are never kept or passed on, let alone logged."""
SECRET_VALUE = re.compile(r"://(?:[^/\s@]+|[^/\s@:]+:[^\s@]+)@")
"""The user and password of an address, such as a proxy's; never kept or passed on either."""


def configure(*, level: str, log_format: LogFormat) -> None:
    """Send log events of `level` and above to stderr, as text for people or one JSON object a line."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        # Looked up at each event: whoever calls may have put another stream in place since.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def get(name: str) -> structlog.typing.FilteringBoundLogger:
    """A logger that carries its module's name, and follows a set-up that comes after it was made."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(module=name)
    return logger


def printable(text: str) -> str:
    """Text on one line without control characters: what a model or a server wrote must not steer the terminal."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
