"""The command line of the integration tests."""

from integration.conftest import cache, cli, engine_env, module_env, tiny_model

__all__ = ["cache", "cli", "engine_env", "module_env", "tiny_model"]
