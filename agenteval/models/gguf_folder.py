"""GGUF file -> the folder that vLLM serves: config, tokenizer, chat template and weights.

Everything comes from the file itself, so the folder follows from its bytes alone. Knows the Qwen2
architecture only; knows nothing of downloads and caches.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, TokenType

from agenteval.models.errors import GgufError
from agenteval.models.progress import Progress
from agenteval.models.weights import write_weights

SPLIT_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)
"""Where Qwen2 cuts text before merging bytes. Source: tokenizer.json of Qwen/Qwen2.5-Coder-0.5B-Instruct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    """The key-value part of one GGUF file."""

    path: Path
    """Where it was read, for messages."""
    reader: GGUFReader

    def required(self, key: str) -> Any:
        """Value of a key; any type that GGUF has.

        Raises:
            GgufError: If the file lacks the key.
        """
        field = self.reader.get_field(key)
        if field is None:
            raise GgufError(self.path, reason=f"its metadata lack {key!r}")
        return field.contents()

    def optional(self, key: str) -> Any:
        """Value of a key, or None."""
        field = self.reader.get_field(key)
        return None if field is None else field.contents()


def write_folder(source: Path, folder: Path, *, is_tied: bool, progress: Progress) -> None:
    """Write a folder for vLLM from one GGUF file; equal bytes in give equal bytes out.

    Args:
        source: The GGUF file.
        folder: An empty folder to fill.
        is_tied: Whether input embedding and output share one matrix.
        progress: Told how far the conversion is.

    Raises:
        GgufError: If the file is damaged, of another architecture, or lacks a needed key.
    """
    progress("read GGUF metadata", 0, 1)
    metadata = _open(source)
    tokens: list[str] = metadata.required("tokenizer.ggml.tokens")
    _write_json(folder / "config.json", _config(metadata, vocabulary_size=len(tokens), is_tied=is_tied))
    _write_json(folder / "tokenizer.json", _tokenizer(metadata, tokens=tokens))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(metadata, tokens=tokens))
    template: str = metadata.required("tokenizer.chat_template")
    (folder / "chat_template.jinja").write_bytes(template.encode())
    progress("read GGUF metadata", 1, 1)
    write_weights(metadata.reader, folder / "model.safetensors", is_tied=is_tied, progress=progress)


def _open(source: Path) -> _Metadata:
    try:
        reader = GGUFReader(source)
    except (ValueError, IndexError, KeyError) as error:
        raise GgufError(source, reason=f"it is not a whole GGUF file ({error})") from error
    metadata = _Metadata(path=source, reader=reader)
    for key, known in (
        ("general.architecture", "qwen2"),
        ("tokenizer.ggml.model", "gpt2"),
        ("tokenizer.ggml.pre", "qwen2"),
    ):
        if (found := metadata.required(key)) != known:
            raise GgufError(source, reason=f"{key} is {found!r}, and only {known!r} is understood")
    return metadata


def _config(metadata: _Metadata, *, vocabulary_size: int, is_tied: bool) -> dict[str, object]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "attention_dropout": 0.0,
        "bos_token_id": metadata.optional("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.required("tokenizer.ggml.eos_token_id"),
        "hidden_act": "silu",
        "hidden_size": metadata.required("qwen2.embedding_length"),
        "initializer_range": 0.02,
        "intermediate_size": metadata.required("qwen2.feed_forward_length"),
        "max_position_embeddings": metadata.required("qwen2.context_length"),
        "model_type": "qwen2",
        "num_attention_heads": metadata.required("qwen2.attention.head_count"),
        "num_hidden_layers": metadata.required("qwen2.block_count"),
        "num_key_value_heads": metadata.required("qwen2.attention.head_count_kv"),
        "pad_token_id": metadata.optional("tokenizer.ggml.padding_token_id"),
        "rms_norm_eps": _shortest(metadata.required("qwen2.attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest(metadata.required("qwen2.rope.freq_base")),
        "tie_word_embeddings": is_tied,
        "torch_dtype": "bfloat16",
        # Without a version, transformers 5 warns about a flaw of Mistral tokenizers that is not here.
        "transformers_version": "4.44.0",
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": vocabulary_size,
    }


def _shortest(stored: float) -> float:
    """The decimal that a float32 was written as (1e-06, not 9.999999974752427e-07)."""
    return float(str(np.float32(stored)))


def _tokenizer(metadata: _Metadata, *, tokens: list[str]) -> dict[str, object]:
    """A tokenizer.json; rows that only pad the embedding are left out: guided decoding could spell them."""
    kinds: list[int] = metadata.required("tokenizer.ggml.token_type")
    normal = {token: number for number, token in enumerate(tokens) if kinds[number] == TokenType.NORMAL}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": SPLIT_PATTERN}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tokens, kinds),
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": normal,
            "merges": metadata.required("tokenizer.ggml.merges"),
        },
    }


def _added_tokens(tokens: Sequence[str], kinds: Sequence[int]) -> list[dict[str, object]]:
    """Tokens matched before any merging: control tokens are special, user-defined ones print as text."""
    return [
        {
            "id": number,
            "content": tokens[number],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == TokenType.CONTROL,
        }
        for number, kind in enumerate(kinds)
        if kind in (TokenType.CONTROL, TokenType.USER_DEFINED)
    ]


def _tokenizer_config(metadata: _Metadata, *, tokens: list[str]) -> dict[str, object]:
    def token(key: str) -> str | None:
        number = metadata.optional(f"tokenizer.ggml.{key}_token_id")
        return None if number is None else tokens[number]

    return {
        "add_bos_token": bool(metadata.optional("tokenizer.ggml.add_bos_token")),
        "add_prefix_space": False,
        "bos_token": token("bos"),
        "clean_up_tokenization_spaces": False,
        "eos_token": token("eos"),
        "errors": "replace",
        "model_max_length": metadata.required("qwen2.context_length"),
        "pad_token": token("padding"),
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }


def _write_json(path: Path, value: object) -> None:
    path.write_bytes(json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n")
