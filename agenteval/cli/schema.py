"""`agenteval schema`: JSON Schema of the files that people write."""

from __future__ import annotations

import argparse
import json

from agenteval.cli.common import emit
from agenteval.editor_schema import json_schema


def print_schema(arguments: argparse.Namespace) -> int:
    """Print the schema of one sort of file, or of a part of one."""
    emit(json.dumps(json_schema(arguments.what), indent=2, ensure_ascii=False))
    return 0
