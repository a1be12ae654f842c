"""A server that someone else runs: used, read, never started or stopped."""

from __future__ import annotations

import os

import httpx

from agenteval.errors import InputError, ServerUnreachableError
from agenteval.server.reading import ServerFacts, read_facts, read_metrics


class OutsideServer:
    """What the loop needs of a server, for one at `--base-url`; its key comes from `AGENTEVAL_API_KEY`."""

    def __init__(self, base_url: str, model: str | None) -> None:
        """Reach the server and read its facts.

        Args:
            base_url: With or without `/v1`.
            model: The served name to use; None uses the only one it serves.

        Raises:
            ServerUnreachableError: If it does not answer.
            ServerRefusedError: If it will not list its models, for want of a key for instance.
            ServerDiedError: If it answers no more while its facts are read, or as no vLLM does.
            InputError: If it does not serve the model, or none, or several and none was named.
        """
        if "@" in base_url:
            raise InputError("--base-url holds a user or a password, which would be stored. Set AGENTEVAL_API_KEY.")
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        key = os.environ.get("AGENTEVAL_API_KEY") or None
        # Clients refuse to go without one.
        self.api_key = key or "none"
        try:
            httpx.get(f"{self.base_url}/health", timeout=10.0, trust_env=False)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise ServerUnreachableError(base_url=base_url, reason=str(error) or type(error).__name__) from error
        self.facts: ServerFacts = read_facts(self.base_url, api_key=key, log_text="")
        served = self.facts.served_models
        if not served:
            raise InputError(f"{base_url} serves no model. Look at its log, or correct --base-url.")
        if model is None and len(served) > 1:
            raise InputError(f"{base_url} serves {', '.join(served)}. Name one with --model.")
        if model is not None and model not in served:
            raise InputError(
                f"{base_url} does not serve {model!r}. Name what it serves with --model: {', '.join(served)}."
            )
        self.model_name = model or served[0]

    def is_alive(self) -> bool:
        """Whether it answers at all."""
        try:
            return httpx.get(f"{self.base_url}/health", timeout=10.0, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def metrics(self) -> dict[str, float]:
        """Its counters now; empty where it does not answer."""
        return read_metrics(self.base_url)

    def last_log_lines(self) -> str:
        """Nothing: the log is the other's."""
        return ""

    def stop(self) -> str:
        """Leave it running."""
        return "left running"
