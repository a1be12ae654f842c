"""Which of the runner's environment the server inherits, and which of that can change what it computes."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval.log import SECRET_NAME, SECRET_VALUE

_SHORTEST_SECRET = 8
"""Characters; a shorter value of a variable with a secret's name would be found in harmless ones by chance."""
_FAMILIES = (
    "BLIS_",
    "CUBLASLT_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DNNL_",
    "FLASHINFER_",
    "FLASH_ATTENTION_",
    "GOMP_",
    "HF_",
    "HIP_",
    "HSA_",
    "KMP_",
    "MKL_",
    "NCCL_",
    "NVIDIA_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTORCH_",
    "ROCR_",
    "TOKENIZERS_",
    "TORCHDYNAMO_",
    "TORCHINDUCTOR_",
    "TORCH_",
    "TRANSFORMERS_",
    "TRITON_",
)
"""Starts of the names by which the engine's libraries are set up."""
_SINGLE = frozenset(
    {
        "CC",
        "CXX",
        "GLIBC_TUNABLES",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "PYTHONHASHSEED",
        "PYTHONHOME",
        "PYTHONPATH",
        # Chat templates can write today's date.
        "TZ",
    }
)
"""Names that stand alone: which libraries and compilers are found, and how Python runs."""


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the server gets of the runner's environment: no VLLM_* variable, which the contract decides, and no secret.

    The server needs no secret, and reports its environment to whoever asks.

    Args:
        environ: The runner's variables.
    """
    secrets = {value for name, value in environ.items() if SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET}
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("VLLM_") and not SECRET_NAME.search(name) and not _holds_secret(value, secrets)
    }


def influential_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the server inherits that can change its numbers or its libraries, by name.

    Args:
        environ: The runner's variables.
    """
    return {
        name: value
        for name, value in sorted(inherited_environment(environ).items())
        if name.startswith(_FAMILIES) or name in _SINGLE
    }


def _holds_secret(value: str, secrets: set[str]) -> bool:
    """Whether a value holds an address with a password, or what a variable with a secret's name holds."""
    return SECRET_VALUE.search(value) is not None or any(secret in value for secret in secrets)
