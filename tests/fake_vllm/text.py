"""Text to tokens and back, messages to text: tokenizer and chat template of the stand-in model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

SPECIALS = {b"<|im_start|>": 1, b"<|im_end|>": 2, b"<tool_call>": 3, b"</tool_call>": 4}
END_ID = 2
_SPECIAL_BYTES = {token_id: chunk for chunk, token_id in SPECIALS.items()}
_CHUNK = re.compile(
    rb"<\|im_start\|>|<\|im_end\|>|</?tool_call>"
    rb"| [A-Za-z_]{1,2}|[A-Za-z_]{1,3}"
    rb"|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|.",
    re.DOTALL,
)


def encode(text: str) -> list[int]:
    """Token ids of a text: at most three bytes a token, each id stable and readable back without a table."""
    chunks = _CHUNK.findall(text.encode("utf-8", errors="replace"))
    return [SPECIALS.get(chunk) or int.from_bytes(b"\x01" + chunk, "big") for chunk in chunks]


def token_bytes(token_id: int) -> bytes:
    """The bytes that a token stands for.

    Raises:
        ValueError: If no text has this token.
    """
    if token_id in _SPECIAL_BYTES:
        return _SPECIAL_BYTES[token_id]
    chunk = token_id.to_bytes((token_id.bit_length() + 7) // 8, "big")
    if len(chunk) not in (2, 3, 4) or chunk[0] != 1:
        raise ValueError(f"token id {token_id} is out of vocabulary")
    return chunk[1:]


def decode(ids: Sequence[int]) -> str:
    """The text of token ids."""
    return b"".join(map(token_bytes, ids)).decode("utf-8", errors="replace")


def content_text(content: object) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def render(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    *,
    call_ids: bool = False,
) -> str:
    """Messages and tools as one prompt, in the manner of Hermes and Qwen 2.5, up to the assistant's turn."""
    rest = list(messages)
    system = "You are a helpful assistant."
    if rest and rest[0].get("role") in ("system", "developer"):
        system = content_text(rest.pop(0).get("content"))
    if tools:
        lines = "\n".join(_json(_declared(tool)) for tool in tools)
        system += (
            "\n\n# Tools\n\nYou may call functions. Their signatures, within <tools></tools> tags:\n<tools>\n"
            f"{lines}\n</tools>\n\nAnswer each call as JSON within tool_call tags."
        )
    parts = [f"<|im_start|>system\n{system}<|im_end|>\n"]
    for place, message in enumerate(rest):
        role = message.get("role")
        if role == "tool":
            follows = place > 0 and rest[place - 1].get("role") == "tool"
            leads = place + 1 < len(rest) and rest[place + 1].get("role") == "tool"
            parts.append("" if follows else "<|im_start|>user")
            shown_id = f"[{message.get('tool_call_id')}] " if call_ids else ""
            parts.append(f"\n<tool_response>\n{shown_id}{content_text(message.get('content'))}\n</tool_response>")
            parts.append("" if leads else "<|im_end|>\n")
        else:
            parts.append(f"<|im_start|>{role}\n{_body(message, call_ids=call_ids)}<|im_end|>\n")
    return "".join(parts) + "<|im_start|>assistant\n"


def render_call(name: str, arguments: str) -> str:
    """A tool call as the model writes it and the template renders it."""
    return f'<tool_call>\n{{"name": {_json(name)}, "arguments": {arguments}}}\n</tool_call>'


def _declared(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    return {
        "type": "function",
        "function": {key: function.get(key) for key in ("name", "description", "parameters")},
    }


def _body(message: Mapping[str, Any], *, call_ids: bool) -> str:
    pieces = [content_text(message.get("content"))]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        text = render_call(function["name"], _json(_arguments(function.get("arguments"))))
        pieces.append(f"[{call.get('id')}] {text}" if call_ids else text)
    return "\n".join(piece for piece in pieces if piece)


def _arguments(value: object) -> Any:
    """Arguments as an object; text that is no JSON becomes {}, as in vLLM 0.32."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            value = None
    return value or {}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
