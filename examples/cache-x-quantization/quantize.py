"""Write 8 and 4 bit copies of a 16 bit model folder: weights rounded to nearest, activations left at 16 bit.

    python quantize.py FOLDER OUT

gives OUT/w8a16 and OUT/w4a16 in the layout that vLLM knows as compressed-tensors, "pack-quantized", and serves with
its Marlin kernels. Every linear layer is quantised symmetrically, in groups of 128 inputs, with one scale a group;
embeddings and norms stay as they are. Nothing is calibrated, so the same folder gives the same bytes. Needs torch and
safetensors, which vLLM brings.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

GROUP = 128
"""Inputs that share a scale."""
WORD = 32
"""Bits of a packed integer."""
SMALLEST_SCALE = 1e-8
"""Of a group that is all zeros."""


def quantize(weights: dict[str, torch.Tensor], bits: int) -> dict[str, torch.Tensor]:
    """Replace each linear weight by packed levels, scales and its shape.

    Args:
        weights: Name to tensor; those of linear layers, `…_proj.weight`, are (outputs, inputs).
        bits: Of a level, 4 or 8.
    """
    result = {}
    for name, weight in weights.items():
        if not name.endswith("_proj.weight"):
            result[name] = weight
            continue
        stem = name.removesuffix("weight")
        levels, scales = _levels(weight, bits)
        result[f"{stem}weight_packed"] = _pack(levels, bits)
        result[f"{stem}weight_scale"] = scales
        result[f"{stem}weight_shape"] = torch.tensor(weight.shape)
    return result


def _levels(weight: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Integers from 0 to 2**bits - 1, shaped as the weight, and bfloat16 scales, (outputs, inputs / GROUP)."""
    half = 2 ** (bits - 1)
    groups = weight.float().unflatten(1, (-1, GROUP))
    scales = (groups.abs().amax(dim=-1) / (half - 1)).clamp(min=SMALLEST_SCALE).to(torch.bfloat16)
    # Divided by the scale as it is stored, so that rounding it costs nothing more.
    levels = (groups / scales.float().unsqueeze(-1)).round().clamp(-half, half - 1) + half
    return levels.flatten(1).to(torch.int64), scales


def _pack(levels: torch.Tensor, bits: int) -> torch.Tensor:
    """Levels of (outputs, inputs), several to an int32, the first in the lowest bits."""
    shifts = torch.arange(0, WORD, bits)
    words = (levels.unflatten(1, (-1, len(shifts))) << shifts).sum(dim=-1)
    return torch.where(words >= 2 ** (WORD - 1), words - 2**WORD, words).to(torch.int32)


def quantization_config(bits: int) -> dict[str, object]:
    """What config.json must say for vLLM to read the packed weights."""
    weights = {
        "num_bits": bits,
        "type": "int",
        "symmetric": True,
        "strategy": "group",
        "group_size": GROUP,
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}},
    }


def main(source: Path, target: Path) -> None:
    """Write both folders beside each other."""
    weights = load_file(source / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    for bits in (8, 4):
        folder = target / f"w{bits}a16"
        folder.mkdir(parents=True, exist_ok=True)
        for file in source.iterdir():
            if file.name not in ("model.safetensors", "config.json"):
                shutil.copy(file, folder)
        packed = {name: tensor.contiguous() for name, tensor in quantize(weights, bits).items()}
        save_file(packed, folder / "model.safetensors", metadata={"format": "pt"})
        text = json.dumps(config | {"quantization_config": quantization_config(bits)}, indent=2, sort_keys=True)
        (folder / "config.json").write_text(text + "\n")
        print(folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
