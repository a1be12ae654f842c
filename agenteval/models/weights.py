"""GGUF tensors -> one safetensors file in bfloat16, byte for byte the same on every machine.

Knows tensor names and number formats; knows nothing of tokenizers, downloads or folders. It needs numpy and
gguf only, because the finished file's digest is pinned: a torch or transformers release must not move it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader, ReaderTensor
from gguf.quants import dequantize

from agenteval.models.errors import GgufError
from agenteval.models.progress import Progress

ROWS_AT_ONCE = 8192
"""Rows de-quantised together: 30 MB of float32 at width 896, where the whole embedding would take 545 MB."""
_LAYER_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """One tensor and where its bytes go in the file."""

    name: str
    """Name under which vLLM loads it."""
    tensor: ReaderTensor
    shape: tuple[int, ...]
    """Outermost dimension first; GGUF lists them the other way round."""

    @property
    def size_bytes(self) -> int:
        return 2 * int(np.prod(self.shape))


def write_weights(reader: GGUFReader, target: Path, *, is_tied: bool, progress: Progress) -> None:
    """Write every tensor of a Qwen2 GGUF to `target` in safetensors format, sorted by name.

    Args:
        reader: The opened GGUF.
        target: File to write.
        is_tied: Whether the model uses one matrix for input embedding and output. Then only `output.weight`
            is kept where the file has both, because converters quantise that one more finely.
        progress: Told the bytes written so far.

    Raises:
        GgufError: If a tensor has a name or a number format that is not understood.

    Source: https://github.com/huggingface/safetensors#format
    """
    placed = _place(reader, path=target, is_tied=is_tied)
    total = sum(item.size_bytes for item in placed)
    written = 0
    with target.open("wb") as sink:
        sink.write(_header(placed))
        for item in placed:
            progress("convert weights", written, total)
            written += _write_tensor(item, sink, path=target)
    progress("convert weights", written, total)


def to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Round float32 to the nearest bfloat16, ties to even, as bit patterns.

    Adding 0x7FFF plus the lowest kept bit carries into the kept half exactly when the dropped half is above
    one half, or is one half and the kept bit is odd. A NaN could become infinity: it gets a fixed pattern.
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    result: npt.NDArray[np.uint16] = np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype("<u2")
    return result


def _place(reader: GGUFReader, *, path: Path, is_tied: bool) -> list[_Placed]:
    names = {tensor.name for tensor in reader.tensors}
    placed = []
    for tensor in reader.tensors:
        if is_tied and tensor.name == "token_embd.weight" and "output.weight" in names:
            continue
        name = _target_name(tensor.name, is_tied=is_tied)
        if name is None:
            raise GgufError(path, reason=f"it has a tensor {tensor.name!r}, which no Qwen2 model has")
        shape = tuple(int(size) for size in reversed(tensor.shape.tolist()))
        placed.append(_Placed(name=name, tensor=tensor, shape=shape))
    return sorted(placed, key=lambda item: item.name)


def _target_name(name: str, *, is_tied: bool) -> str | None:
    match name.split("."):
        case ["token_embd", "weight"]:
            return "model.embed_tokens.weight"
        case ["output", "weight"]:
            return "model.embed_tokens.weight" if is_tied else "lm_head.weight"
        case ["output_norm", "weight"]:
            return "model.norm.weight"
        case ["blk", layer, part, ("weight" | "bias") as kind] if layer.isdigit() and part in _LAYER_PARTS:
            return f"model.layers.{layer}.{_LAYER_PARTS[part]}.{kind}"
    return None


def _header(placed: list[_Placed]) -> bytes:
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for item in placed:
        end = offset + item.size_bytes
        entries[item.name] = {"dtype": "BF16", "shape": list(item.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _write_tensor(item: _Placed, sink: BinaryIO, *, path: Path) -> int:
    written = 0
    try:
        for rows in _row_groups(item.tensor.data):
            written += sink.write(to_bfloat16(dequantize(rows, item.tensor.tensor_type)).data.cast("B"))
    except NotImplementedError as error:
        kind = item.tensor.tensor_type.name
        raise GgufError(path, reason=f"{item.tensor.name!r} is stored as {kind}, which gguf cannot read") from error
    return written


def _row_groups(tensor: npt.NDArray[np.generic]) -> Iterator[npt.NDArray[np.generic]]:
    for start in range(0, len(tensor), ROWS_AT_ONCE):
        yield tensor[start : start + ROWS_AT_ONCE]
