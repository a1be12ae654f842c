"""YAML files -> frozen models, or every problem at once, each with file, line, key and nearest right word.

Knows YAML and pydantic; must not know what the models mean.
"""

from agenteval.loading.document import (
    MAX_FINDINGS,
    Document,
    KeyPath,
    collecting_later,
    key_text,
    raise_if_any,
)
from agenteval.loading.findings import findings_text, validate, wrong_fields
from agenteval.loading.json_values import not_json
from agenteval.loading.models import Frozen, FrozenT, Many
from agenteval.loading.yaml_values import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_INTEGER_CHARACTERS,
    MAX_NODES,
    read_yaml,
)

__all__ = [
    "MAX_DEPTH",
    "MAX_FILE_BYTES",
    "MAX_FINDINGS",
    "MAX_INTEGER_CHARACTERS",
    "MAX_NODES",
    "Document",
    "Frozen",
    "FrozenT",
    "KeyPath",
    "Many",
    "collecting_later",
    "findings_text",
    "key_text",
    "not_json",
    "raise_if_any",
    "read_yaml",
    "validate",
    "wrong_fields",
]
