"""What a running server says of itself: version, configuration, counters, and the fields its requests accept."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import httpx

from agenteval.errors import ServerDiedError, ServerRefusedError
from agenteval.log import SECRET_NAME, SECRET_VALUE

READ_TIMEOUT_S = 60.0
"""`/server_info` collects the system's facts on its first call, which takes seconds."""
_METRIC = re.compile(r"""^(vllm:[a-z0-9_]+)(?:\{((?:"(?:[^"\\]|\\.)*"|[^"}])*)\})?\s+(\S+)""", re.MULTILINE)
_LABEL = re.compile(r'([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"')
_LOG_FACTS = {
    # A backend that was asked for is logged as a member of an enumeration. Names are upper case; "Using default
    # backend" and the like are of other parts. Source: vllm/platforms/cuda.py of 0.32.
    "attention_backend": re.compile(r"Using (?:AttentionBackendEnum\.)?([A-Z][A-Z0-9_]+)(?: attention)? backend\b"),
    "flash_attention_version": re.compile(r"Using FlashAttention version (\d+)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What the server reported once it was healthy; absent where it would not say."""

    version: str | None
    served_models: tuple[str, ...]
    max_model_len: int | None
    request_fields: frozenset[str]
    """Fields that its chat completions accept; empty where it does not publish its schema."""
    cache_config: dict[str, str]
    """Labels of `vllm:cache_config_info`."""
    config: dict[str, Any]
    """`/server_info`, without secrets; empty where it is closed."""
    log: dict[str, str]
    """What the start-up log says: attention backend and FlashAttention version."""

    def as_json(self) -> dict[str, Any]:
        """The facts for the store; the accepted fields as a sorted list."""
        return {
            "version": self.version,
            "served_models": list(self.served_models),
            "max_model_len": self.max_model_len,
            "request_fields": sorted(self.request_fields),
            "cache_config": self.cache_config,
            "config": self.config,
            "log": self.log,
        }


def read_facts(base_url: str, *, api_key: str | None, log_text: str) -> ServerFacts:
    """Ask a healthy server for everything that the evidence rests on.

    Args:
        base_url: Without `/v1`.
        api_key: Of this boot; never kept.
        log_text: Its start-up log; empty for a server that someone else runs.

    Raises:
        ServerDiedError: If it does not answer.
        ServerRefusedError: If it will not list its models.
    """
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    with httpx.Client(base_url=base_url, headers=headers, timeout=READ_TIMEOUT_S, trust_env=False) as http:
        try:
            models = http.get("/v1/models")
            if models.status_code != 200:
                # A server may name the key that it refuses.
                body = str(without_secrets(models.text, api_key))
                advice = "It does not list its models; is this the address of a vLLM server?"
                raise ServerRefusedError(status=models.status_code, body=body, advice=advice)
            cards = models.json()["data"]
            served_models = tuple(str(card["id"]) for card in cards)
            version = _json(http.get("/version")).get("version")
            config = _json(http.get("/server_info", params={"config_format": "json"}))
            schema = _json(http.get("/openapi.json"))
            metrics = http.get("/metrics").text
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ServerDiedError(base_url=base_url, reason=str(error) or type(error).__name__) from error
    return ServerFacts(
        version=version,
        served_models=served_models,
        max_model_len=next((card.get("max_model_len") for card in cards), None),
        request_fields=_request_fields(schema),
        cache_config=_labels(metrics, "vllm:cache_config_info"),
        config=without_secrets(config, api_key),
        log={name: found[0] for name, pattern in _LOG_FACTS.items() if (found := pattern.findall(log_text))},
    )


def read_metrics(base_url: str, *, timeout_s: float = 10.0) -> dict[str, float]:
    """The server's counters and gauges, summed over their labels; empty where it does not answer."""
    try:
        text = httpx.get(f"{base_url}/metrics", timeout=timeout_s, trust_env=False).text
    except httpx.HTTPError:
        return {}
    values: dict[str, float] = {}
    for name, _, value in _METRIC.findall(text):
        if not name.endswith(("_bucket", "_created", "_sum", "_info")):
            values[name] = values.get(name, 0.0) + _number(value)
    # Not a number is not JSON, which the store keeps.
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def without_secrets(value: Any, api_key: str | None) -> Any:
    """The same JSON with every secret taken out: by its key's name, as this boot's key, or in an address."""
    if isinstance(value, dict):
        return {
            key: None if SECRET_NAME.search(str(key)) and isinstance(item, str) else without_secrets(item, api_key)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [without_secrets(item, api_key) for item in value]
    if isinstance(value, str):
        value = SECRET_VALUE.sub("://(secret)@", value)
        return value if api_key is None else value.replace(api_key, "(key)")
    return value


def _json(response: httpx.Response) -> dict[str, Any]:
    """The object of a response; empty where the server does not have the page, or another one in its place."""
    if response.status_code != 200:
        return {}
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _request_fields(schema: dict[str, Any]) -> frozenset[str]:
    section: Any = schema
    for name in ("components", "schemas", "ChatCompletionRequest", "properties"):
        section = section.get(name) if isinstance(section, dict) else None
    return frozenset(section if isinstance(section, dict) else ())


def _labels(metrics: str, name: str) -> dict[str, str]:
    for found, labels, _ in _METRIC.findall(metrics):
        if found == name:
            return dict(_LABEL.findall(labels))
    return {}
