"""A small real HTTP server that speaks vLLM's dialect and whose prefix cache changes its answers."""

from .config import Call, FakeConfig, Faults, Reply, Script, config_from_json
from .engine import Engine, Generation
from .server import FakeVllm, HttpAnswer, HungUpError, json_answer

__all__ = [
    "Call",
    "Engine",
    "FakeConfig",
    "FakeVllm",
    "Faults",
    "Generation",
    "HttpAnswer",
    "HungUpError",
    "Reply",
    "Script",
    "config_from_json",
    "json_answer",
]
