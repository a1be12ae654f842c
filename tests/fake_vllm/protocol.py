"""vLLM 0.32's dialect of the chat completions API: fields, refusals and the shape of answers."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from .config import FakeConfig
from .engine import Generation, sampled
from .text import token_bytes

REQUEST_FIELDS = {
    name: kind
    for kind, names in {
        "boolean": """
            logprobs stream use_beam_search include_stop_str_in_output ignore_eos skip_special_tokens
            spaces_between_special_tokens include_reasoning parallel_tool_calls echo add_generation_prompt
            continue_final_message add_special_tokens return_tokens_as_token_ids return_token_ids
            watermarking return_token_offsets return_prompt_text return_mm_kwargs
        """,
        "integer": """
            top_logprobs max_tokens max_completion_tokens n seed top_k min_tokens truncate_prompt_tokens
            prompt_logprobs priority thinking_token_budget routed_experts_prompt_start stream_interval
        """,
        "number": """
            frequency_penalty presence_penalty temperature top_p min_p repetition_penalty length_penalty
        """,
        "string": """
            model user reasoning_effort truncation_side chat_template request_id session_id cache_salt
            mm_payload
        """,
        "array": """
            messages tools stop_token_ids logprob_token_ids allowed_token_ids bad_words documents
        """,
        "object": """
            logit_bias response_format stream_options chat_template_kwargs media_io_kwargs
            mm_processor_kwargs structured_outputs kv_transfer_params ec_transfer_params vllm_xargs
            repetition_detection
        """,
        "any": """
            stop tool_choice
        """,
    }.items()
    for name in names.split()
}
"""Request fields of vLLM 0.32, to their JSON types."""
_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "any": (object,),
}
_RANGES: dict[str, tuple[float, float, str]] = {
    "temperature": (0, 2, "temperature must be in [0, 2], got {}."),
    "top_p": (1e-9, 1, "top_p must be in (0, 1], got {}."),
    "min_p": (0, 1, "min_p must be in [0, 1], got {}."),
    "top_k": (-1, 2**31, "top_k must be 0 (disable), or at least 1, got {}."),
    "presence_penalty": (-2, 2, "presence_penalty must be in [-2, 2], got {}."),
    "frequency_penalty": (-2, 2, "frequency_penalty must be in [-2, 2], got {}."),
    "repetition_penalty": (1e-9, 1e9, "repetition_penalty must be greater than zero, got {}."),
    "min_tokens": (0, 2**31, "min_tokens must be greater than or equal to 0, got {}."),
    "max_tokens": (1, 2**31, "max_tokens must be at least 1, got {}."),
    "max_completion_tokens": (1, 2**31, "max_tokens must be at least 1, got {}."),
}


class RefusedError(Exception):
    """The server answers with an error; the message, status, type and param are what it says."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = "BadRequestError", param: str | None = None
    ) -> None:
        self.message, self.status, self.kind, self.param = message, status, kind, param
        super().__init__(message)

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}}


def invalid(*, kind: str, loc: str, msg: str, value: object, param: str | None = None) -> RefusedError:
    """A refusal in the words of pydantic, as vLLM prints them."""
    shown = f"<{type(value).__name__} of {len(value)} items>" if isinstance(value, (dict, list)) else value
    detail = {"type": kind, "loc": loc, "msg": msg, "input": shown}
    return RefusedError(f"1 validation error:\n  {detail}", kind="Bad Request", param=param or loc)


def parse_request(body: bytes, config: FakeConfig) -> dict[str, Any]:
    """The fields of a chat completion request that this server knows.

    Raises:
        RefusedError: As vLLM would refuse it, or because the stand-in can't do it (streaming, n above 1).
    """
    try:
        fields = json.loads(body)
    except ValueError:
        raise invalid(kind="json_invalid", loc="body.0", msg="JSON decode error", value={}) from None
    if not isinstance(fields, dict):
        raise invalid(kind="model_attributes_type", loc="body", msg="Input should be a valid dictionary", value=fields)
    request = {
        name: value for name, value in fields.items() if name in REQUEST_FIELDS and name not in config.unknown_fields
    }
    if "messages" not in request:
        raise invalid(kind="missing", loc="body.messages", msg="Field required", value=fields)
    for name, value in request.items():
        kind = REQUEST_FIELDS[name]
        wrong_bool = isinstance(value, bool) and kind in ("integer", "number")
        if value is not None and (not isinstance(value, _TYPES[kind]) or wrong_bool):
            raise invalid(kind=f"{kind}_type", loc=f"body.{name}", msg=f"Input should be a valid {kind}", value=value)
    _check_fields(request, config)
    _check_tools(request, config)
    return request


def _check_fields(request: Mapping[str, Any], config: FakeConfig) -> None:
    if request.get("model") not in (None, "", config.served_model_name):
        raise RefusedError(
            f"The model `{request['model']}` does not exist. Valid aliases: {config.served_model_name}.",
            status=404,
            kind="NotFoundError",
            param="model",
        )
    if not all(isinstance(message, dict) and "role" in message for message in request["messages"]):
        raise invalid(kind="missing", loc="body.messages.0.role", msg="Field required", value=request["messages"])
    if request.get("stream") or (request.get("n") or 1) != 1:
        raise RefusedError("The stand-in server answers neither streams nor n > 1.", param="stream")
    salt = request.get("cache_salt")
    if salt == "":
        raise _value_error("Parameter 'cache_salt' must be a non-empty string if provided.", "cache_salt", request)
    if salt is not None and (len(salt) > 128 or set(salt) & set("@/\\\0")):
        text = "Parameter 'cache_salt' must be at most 128 characters and must not contain "
        text += "'@', '/', '\\\\', or NUL."
        raise _value_error(text, "cache_salt", request)
    top = request.get("top_logprobs") or 0
    if top and not request.get("logprobs"):
        raise _value_error("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs", request)
    if top > config.max_logprobs:
        raise RefusedError(
            f"Requested sample logprobs of {top}, which is greater than max allowed: {config.max_logprobs}",
            param="logprobs",
        )
    for name, (low, high, message) in _RANGES.items():
        value = sampled(request, name, config) if request.get(name) is None else request[name]
        if value is not None and not low <= value <= high:
            raise RefusedError(message.format(value), param=name)


def _check_tools(request: dict[str, Any], config: FakeConfig) -> None:
    tools = request.get("tools")
    if tools == []:
        text = "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely."
        raise _value_error(text, "tools", request)
    choice = request.setdefault("tool_choice", "auto" if tools else "none")
    if choice in (None, "none"):
        request["tool_choice"] = "none"
        return
    if not tools:
        raise _value_error("When using `tool_choice`, `tools` must be set.", "tool_choice", request)
    for place, tool in enumerate(tools):
        if not isinstance(tool, dict) or not isinstance(tool.get("function"), dict) or "name" not in tool["function"]:
            loc = f"body.tools.{place}.function"
            raise invalid(kind="missing", loc=loc, msg="Field required", value=tool)
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        if name not in [tool["function"]["name"] for tool in tools]:
            text = "The tool specified in `tool_choice` does not match any of the specified `tools`"
            raise _value_error(text, "tool_choice", request)
    elif choice not in ("auto", "required"):
        text = f"Invalid value for `tool_choice`: {choice}! "
        text += 'Only named tools, "none", "auto" or "required" are supported.'
        raise _value_error(text, "tool_choice", request)
    if config.tool_call_parser is None and choice == "auto" and not config.enable_auto_tool_choice:
        text = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        raise RefusedError(text)
    if config.tool_call_parser is None and choice != "auto":
        shown = f'function "{choice["function"]["name"]}"' if isinstance(choice, dict) else f'"{choice}"'
        raise RefusedError(f"tool_choice={shown} requires --tool-call-parser to be set")


def _value_error(text: str, param: str, request: Mapping[str, Any]) -> RefusedError:
    return invalid(kind="value_error", loc="body", msg=f"Value error, {text}", value=request, param=param)


def check_length(request: Mapping[str, Any], prompt_tokens: int, config: FakeConfig) -> None:
    """Refuse a prompt that does not fit. Too little room for max_tokens is no reason: vLLM cuts there.

    Raises:
        RefusedError: With vLLM's sentence, which begins "This model's maximum context length is".
    """
    limit = config.max_model_len
    for name in ("max_completion_tokens", "max_tokens"):
        wanted = request.get(name)
        if wanted is not None and wanted > limit:
            raise RefusedError(
                f"{name}={wanted} cannot be greater than max_model_len={limit}. Please request fewer output tokens.",
                param=name,
            )
    if prompt_tokens > limit:
        raise RefusedError(
            f"This model's maximum context length is {limit} tokens. However, your prompt contains "
            f"{prompt_tokens} input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt.",
            param="input_tokens",
        )
    if prompt_tokens == limit:
        raise RefusedError("max_tokens must be at least 1, got 0.", param="max_tokens")


def fingerprint(config: FakeConfig) -> str:
    """The system fingerprint: version and a hash of what the engine was set up as."""
    facts = [
        config.weights,
        config.dtype,
        config.quantization,
        config.attention_backend,
        config.max_model_len,
    ]
    return f"vllm-{config.version}-{blake2b(repr(facts).encode(), digest_size=4).hexdigest()}"


def chat_response(request: Mapping[str, Any], generation: Generation, config: FakeConfig) -> dict[str, Any]:
    """The JSON of an answer, with every key that vLLM 0.32 sends."""
    message: dict[str, Any] = {"role": "assistant", "content": generation.content, "refusal": None}
    message |= {"annotations": None, "audio": None, "function_call": None}
    if generation.calls:
        message["tool_calls"] = [
            {
                "id": f"chatcmpl-tool-{secrets.token_hex(8)}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for name, arguments in generation.calls
        ]
    called = generation.calls and not isinstance(request["tool_choice"], dict)
    with_ids = bool(request.get("return_token_ids"))
    logprobs = None
    if request.get("logprobs"):
        count = request.get("top_logprobs") or 0
        as_ids = bool(request.get("return_tokens_as_token_ids"))
        logprobs = {"content": [_logprob(row, count, as_ids=as_ids) for row in generation.logprobs]}
    choice = {
        "index": 0,
        "message": message | {"reasoning": None},
        "logprobs": logprobs,
        "finish_reason": "tool_calls" if called and generation.finish_reason == "stop" else generation.finish_reason,
        "stop_reason": generation.stop_reason,
        "token_ids": generation.output_ids if with_ids else None,
        "routed_experts": None,
    }
    return {
        "id": f"chatcmpl-{request.get('request_id') or secrets.token_hex(8)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": config.served_model_name,
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": fingerprint(config),
        "usage": _usage(generation, config),
        "prompt_logprobs": None,
        "prompt_token_ids": generation.prompt_ids if with_ids else None,
        "prompt_text": generation.prompt if request.get("return_prompt_text") else None,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }


def omit_fields(body: dict[str, Any], omit: frozenset[str]) -> None:
    """Make fields of an answer null, wherever they are."""
    for place in (body, *body["choices"], (body.get("usage") or {}).get("prompt_tokens_details") or {}):
        for name in omit & place.keys():
            place[name] = None


def _usage(generation: Generation, config: FakeConfig) -> dict[str, Any]:
    details: dict[str, Any] | None = None
    if config.prompt_tokens_details:
        cached: int | None = generation.cached_tokens
        if config.null_cached_tokens == "always" or (config.null_cached_tokens == "at_zero" and not cached):
            cached = None
        details = {"cached_tokens": cached, "created_cache_tokens": generation.created_cache_tokens}
        details["multimodal_tokens"] = None
    prompt, output = len(generation.prompt_ids), len(generation.output_ids)
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + output,
        "completion_tokens": output,
        "prompt_tokens_details": details,
        "completion_tokens_details": None,
    }


def _logprob(row: Sequence[tuple[int, float]], count: int, *, as_ids: bool) -> dict[str, Any]:
    entries = [_token_logprob(token, logprob, as_ids=as_ids) for token, logprob in row[: max(count, 1)]]
    return {**entries[0], "top_logprobs": entries[:count]}


def _token_logprob(token_id: int, logprob: float, *, as_ids: bool) -> dict[str, Any]:
    token = token_bytes(token_id).decode("utf-8", errors="replace")
    shown = f"token_id:{token_id}" if as_ids else token
    return {"token": shown, "logprob": max(logprob, -9999.0), "bytes": list(token.encode())}
