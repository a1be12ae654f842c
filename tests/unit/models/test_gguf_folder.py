"""A GGUF becomes exactly one folder: numbers, names, tokenizer and bytes."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf.quants import dequantize, quantize
from hypothesis import given
from hypothesis import strategies as st

from agenteval.models import digest_folder
from agenteval.models.errors import GgufError
from agenteval.models.gguf_folder import SPLIT_PATTERN, write_folder
from agenteval.models.progress import no_progress
from agenteval.models.weights import to_bfloat16

from .builders import CHAT_TEMPLATE, PADDING, tensors, vocabulary, write_gguf

TINY_DIGEST = "sha256:c510d783b00bce011e8ffecebd7f1dbc752fe3e2709c5f7c3ced47aa814cfa2c"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("converted")
    target = root / "model"
    target.mkdir()
    write_folder(write_gguf(root / "tiny.gguf"), target, is_tied=True, progress=no_progress)
    return target


def read_safetensors(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and bit patterns, read by the format's description and not by the code under test."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    body = content[8 + length :]
    values = {}
    for name, facts in header.items():
        if name != "__metadata__":
            start, end = facts["data_offsets"]
            values[name] = np.frombuffer(body[start:end], dtype="<u2").reshape(facts["shape"])
    return header, values


def test_weights_are_the_dequantised_tensors_rounded_to_bfloat16(folder: Path) -> None:
    _, written = read_safetensors(folder / "model.safetensors")
    values, kind = tensors()["blk.1.ffn_down.weight"]
    expected = to_bfloat16(dequantize(quantize(values, kind), kind))
    np.testing.assert_array_equal(written["model.layers.1.mlp.down_proj.weight"], expected)


def test_a_tied_model_keeps_only_the_better_quantised_matrix(folder: Path) -> None:
    _, written = read_safetensors(folder / "model.safetensors")
    values, kind = tensors()["output.weight"]
    assert "lm_head.weight" not in written
    np.testing.assert_array_equal(
        written["model.embed_tokens.weight"], to_bfloat16(dequantize(quantize(values, kind), kind))
    )


def test_an_untied_model_keeps_both_matrices(tmp_path: Path) -> None:
    write_folder(write_gguf(tmp_path / "tiny.gguf"), tmp_path, is_tied=False, progress=no_progress)
    _, written = read_safetensors(tmp_path / "model.safetensors")
    for target, source in (
        ("lm_head.weight", "output.weight"),
        ("model.embed_tokens.weight", "token_embd.weight"),
    ):
        values, kind = tensors()[source]
        np.testing.assert_array_equal(written[target], to_bfloat16(dequantize(quantize(values, kind), kind)))
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is False


def test_the_weights_file_is_well_formed(folder: Path) -> None:
    """Sorted, without gaps, aligned to 8 bytes: what every safetensors reader asks for."""
    path = folder / "model.safetensors"
    header, written = read_safetensors(path)
    assert header.pop("__metadata__") == {"format": "pt"}
    assert list(header) == sorted(header)
    ends = [0] + [facts["data_offsets"][1] for facts in header.values()]
    assert [facts["data_offsets"][0] for facts in header.values()] == ends[:-1]
    (length,) = struct.unpack("<Q", path.read_bytes()[:8])
    assert length % 8 == 0
    assert path.stat().st_size == 8 + length + ends[-1]
    assert len(written) == 2 + 12 * 2


def test_the_safetensors_library_reads_the_file(folder: Path) -> None:
    numpy_reader = pytest.importorskip("safetensors")
    with numpy_reader.safe_open(folder / "model.safetensors", "np") as opened:
        assert opened.metadata() == {"format": "pt"}
        assert opened.get_slice("model.layers.0.self_attn.k_proj.weight").get_shape() == [32, 64]


def test_rounding_matches_a_bf16_table() -> None:
    """Exact, below half, half to even both ways, above half, overflow to infinity, zeros, NaN."""
    bits = [0x3F800000, 0x3F807FFF, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x80000000, 0x7F800001]
    expected = [0x3F80, 0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x8000, 0x7FC0]
    assert to_bfloat16(np.array(bits, dtype=np.uint32).view(np.float32)).tolist() == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**126), max_value=2.0**126))
def test_rounding_never_leaves_a_nearer_neighbour(value: float) -> None:
    (pattern,) = to_bfloat16(np.array([value], dtype=np.float32)).tolist()

    def as_float(bits: int) -> float:
        return float(np.array([bits << 16], dtype=np.uint32).view(np.float32)[0])

    error = abs(as_float(pattern) - value)
    neighbours = [bits for bits in (pattern - 1, pattern + 1) if 0 <= bits <= 0xFFFF and bits & 0x7FFF != 0x7FFF]
    assert all(error <= abs(as_float(bits) - value) for bits in neighbours)


def test_config_says_what_the_metadata_say(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    tokens, _ = vocabulary()
    assert config["architectures"] == ["Qwen2ForCausalLM"]
    assert (config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]) == (64, 96, 2)
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (4, 2)
    assert (config["rms_norm_eps"], config["rope_theta"]) == (1e-06, 1_000_000.0)
    assert (config["max_position_embeddings"], config["vocab_size"]) == (128, len(tokens))
    assert tokens[config["eos_token_id"]] == "<|im_end|>"
    assert (config["torch_dtype"], config["tie_word_embeddings"]) == ("bfloat16", True)


def test_tokenizer_keeps_kinds_apart_and_drops_padding_rows(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    added = {token["content"]: token["special"] for token in tokenizer["added_tokens"]}
    assert added == {"<|endoftext|>": True, "<|im_end|>": True, "<tool_call>": False}
    assert not set(added) & set(tokenizer["model"]["vocab"])
    assert PADDING not in tokenizer["model"]["vocab"]
    assert tokenizer["normalizer"] == {"type": "NFC"}
    assert tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"] == {"Regex": SPLIT_PATTERN}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("hello hello", ["hello", "Ġhello"]),
        ("hello<|im_end|>hello", ["hello", "<|im_end|>", "hello"]),
        ("<tool_call>\n", ["<tool_call>", "Ċ"]),
        ("12", ["1", "2"]),
        ("\u00e9", ["Ã©"]),
        ("e\u0301", ["Ã©"]),
        (PADDING, ["[", "P", "A", "D", "]"]),
    ],
    ids=[
        "merges",
        "special",
        "user-defined",
        "digits",
        "composed",
        "decomposed becomes NFC",
        "padding is text",
    ],
)
def test_tokenizer_encodes_like_qwen2(folder: Path, text: str, tokens: list[str]) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    encoding = tokenizer.encode(text)
    assert encoding.tokens == tokens
    assert [vocabulary()[0].index(token) for token in tokens] == encoding.ids


def test_chat_template_is_kept_byte_for_byte(folder: Path) -> None:
    assert (folder / "chat_template.jinja").read_bytes() == CHAT_TEMPLATE.encode()


def test_tokenizer_config_names_the_special_tokens(folder: Path) -> None:
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert (config["eos_token"], config["pad_token"]) == ("<|im_end|>", "<|endoftext|>")
    assert (config["tokenizer_class"], config["add_bos_token"]) == ("Qwen2Tokenizer", False)


def test_conversion_is_pinned(folder: Path, tmp_path: Path) -> None:
    """A change of this digest invalidates every pinned one in the catalogue: bump those with it."""
    assert digest_folder(folder, cache_dir=tmp_path) == TINY_DIGEST


def test_conversion_does_not_depend_on_how_many_rows_are_done_at_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenteval.models.weights.ROWS_AT_ONCE", 7)
    write_folder(write_gguf(tmp_path / "tiny.gguf"), tmp_path, is_tied=True, progress=no_progress)
    assert (tmp_path / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()


def test_progress_ends_with_every_byte(tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    write_folder(
        write_gguf(tmp_path / "tiny.gguf"),
        tmp_path,
        is_tied=True,
        progress=lambda step, done, total: reports.append((step, done, total)),
    )
    step, done, total = reports[-1]
    assert (step, done) == ("convert weights", total)
    assert all(0 <= done <= total for _, done, total in reports)


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GgufError, match=r"general\.architecture is 'llama'.*name the folder"):
        write_folder(
            write_gguf(tmp_path / "x.gguf", architecture="llama"),
            tmp_path,
            is_tied=True,
            progress=no_progress,
        )


def test_an_unknown_tensor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GgufError, match=r"'blk\.0\.ssm_a'"):
        write_folder(
            write_gguf(tmp_path / "x.gguf", extra=["blk.0.ssm_a"]),
            tmp_path,
            is_tied=True,
            progress=no_progress,
        )


@pytest.mark.parametrize("kept_bytes", [0, 3, 100, 5000, -10], ids=str)
def test_a_damaged_file_is_refused(tmp_path: Path, kept_bytes: int) -> None:
    path = write_gguf(tmp_path / "x.gguf")
    path.write_bytes(path.read_bytes()[:kept_bytes])
    with pytest.raises(GgufError, match="not a whole GGUF file"):
        write_folder(path, tmp_path, is_tied=True, progress=no_progress)
