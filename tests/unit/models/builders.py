"""Small real files for the model tests: a GGUF of a two-layer model, and wheels that carry it in pieces."""

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize

from agenteval.models.catalogue import CatalogueEntry, PackagesSource, WheelPart
from agenteval.models.folder_digest import digest_folder
from agenteval.models.gguf_folder import write_folder
from agenteval.models.progress import no_progress

WIDTH, INNER, KV_WIDTH, LAYERS = 64, 96, 32, 2
CHAT_TEMPLATE = "{%- for message in messages %}{{ message.content }}{%- endfor %}\n"
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ hello", "Ã ©"]
SPECIAL = ["<|endoftext|>", "<|im_end|>"]
PADDING = "[PAD]"


def byte_tokens() -> list[str]:
    """The 256 printable stand-ins for bytes that byte-level BPE starts from."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    return [chr(byte) for byte in kept] + [chr(256 + number) for number in range(len(others))]


def vocabulary() -> tuple[list[str], list[int]]:
    """Tokens and their kinds: bytes, merged pairs, two control tokens, a user-defined one, padding."""
    normal = byte_tokens() + [merge.replace(" ", "") for merge in MERGES]
    tokens = [*normal, *SPECIAL, "<tool_call>", PADDING]
    kinds = [TokenType.NORMAL] * len(normal)
    kinds += [TokenType.CONTROL] * len(SPECIAL) + [TokenType.USER_DEFINED, TokenType.UNUSED]
    return tokens, [int(kind) for kind in kinds]


def scattered(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Values in [-1, 1) from integer arithmetic: no release of numpy may move a pinned digest."""
    numbers = np.arange(np.prod(shape), dtype=np.uint64) * np.uint64(2654435761) + np.uint64(seed * 40503)
    return ((numbers >> np.uint64(8)) % np.uint64(65536)).astype(np.float32).reshape(shape) / 32768 - 1


def tensors(seed: int = 0) -> dict[str, tuple[np.ndarray, GGMLQuantizationType]]:
    """Scattered float32 weights by GGUF name, and the format in which each is to be stored."""
    rows = len(vocabulary()[0])
    f32, q8, q5 = GGMLQuantizationType.F32, GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q5_0
    shapes: dict[str, tuple[tuple[int, ...], GGMLQuantizationType]] = {
        "token_embd.weight": ((rows, WIDTH), q5),
        "output.weight": ((rows, WIDTH), q8),
        "output_norm.weight": ((WIDTH,), f32),
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        shapes |= {
            block + "attn_norm.weight": ((WIDTH,), f32),
            block + "ffn_norm.weight": ((WIDTH,), f32),
            block + "attn_q.weight": ((WIDTH, WIDTH), q5),
            block + "attn_q.bias": ((WIDTH,), f32),
            block + "attn_k.weight": ((KV_WIDTH, WIDTH), q5),
            block + "attn_k.bias": ((KV_WIDTH,), f32),
            block + "attn_v.weight": ((KV_WIDTH, WIDTH), q8),
            block + "attn_v.bias": ((KV_WIDTH,), f32),
            block + "attn_output.weight": ((WIDTH, WIDTH), q5),
            block + "ffn_gate.weight": ((INNER, WIDTH), q5),
            block + "ffn_up.weight": ((INNER, WIDTH), q5),
            block + "ffn_down.weight": ((WIDTH, INNER), q8),
        }
    return {
        name: (scattered(shape, seed + number), kind) for number, (name, (shape, kind)) in enumerate(shapes.items())
    }


def write_gguf(path: Path, *, architecture: str = "qwen2", extra: Sequence[str] = (), seed: int = 0) -> Path:
    """Write a tiny model; `extra` names tensors that no Qwen2 model has."""
    tokens, kinds = vocabulary()
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(128)
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_bos_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, (values, kind) in tensors(seed).items():
        writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
    for name in extra:
        writer.add_tensor(name, np.zeros(4, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_wheel(folder: Path, name: str, content: bytes) -> WheelPart:
    """Write a wheel `name` 1.0 that carries `content`, such as pip accepts."""
    folder.mkdir(parents=True, exist_ok=True)
    module, info = name.replace("-", "_"), f"{name.replace('-', '_')}-1.0.dist-info"
    member = f"{module}/part.bin"
    with zipfile.ZipFile(folder / f"{module}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(member, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"{member},,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return WheelPart(requirement=f"{name}==1.0", member=member)


def build_entry(root: Path, *, pieces: int = 3) -> CatalogueEntry:
    """A catalogue entry whose wheels lie in root/index, with the digest that its conversion really gives."""
    root.mkdir(parents=True, exist_ok=True)
    content = write_gguf(root / "tiny.gguf").read_bytes()
    size = -(-len(content) // pieces)
    parts = [
        write_wheel(root / "index", f"tiny-model-part{number}", content[number * size : (number + 1) * size])
        for number in range(pieces)
    ]
    expected = root / "expected"
    expected.mkdir()
    write_folder(root / "tiny.gguf", expected, is_tied=True, progress=no_progress)
    return CatalogueEntry(
        name="tiny",
        description="A model for tests.",
        license="Apache-2.0",
        tool_call_parser="hermes",
        context_tokens=128,
        tie_word_embeddings=True,
        sha256=hashlib.sha256(content).hexdigest(),
        digest=digest_folder(expected, cache_dir=root / "memory"),
        peak_disk_bytes=2_000_000,
        folder_bytes=200_000,
        sources=(PackagesSource(kind="packages", parts=tuple(parts)),),
    )
