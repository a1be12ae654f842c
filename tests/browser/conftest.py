"""A run and its control on the stand-in, and a browser."""

from __future__ import annotations

from integration.conftest import cache, cli, engine_env, module_env, tiny_model

__all__ = ["cache", "cli", "engine_env", "module_env", "tiny_model"]
