"""Which of the runner's environment the server inherits, and which of that can change what it computes."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval.log import SECRET_NAME, SECRET_VALUE

_SHORTEST_SECRET = 8
"""Characters; a shorter value of a variable with a secret's name would be found in harmless ones by chance."""
_FAMILIES = (
    "AITER_",
    "AOTINDUCTOR_",
    "AOT_",
    "ATEN_",
    "BLIS_",
    "CCL_",
    "CUBLASLT_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "CUTEDSL_",
    "CUTE_DSL_",
    "CUTLASS_",
    "DG_",
    "DNNL_",
    "FBGEMM_",
    "FLASHINFER_",
    "FLASH_ATTENTION_",
    "FLA_",
    "GOMP_",
    "GOTO_",
    "HF_",
    "HIPBLASLT_",
    "HIP_",
    "HSA_",
    "INDUCTOR_",
    "INKLING_",
    "KMP_",
    "MIOPEN_",
    "MKL_",
    "NCCL_",
    "NVIDIA_",
    "NVSHMEM_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PARTITIONER_",
    "PYTORCH_",
    "QUACK_",
    "RCCL_",
    "ROCBLAS_",
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
        "DISABLE_ADDMM_CUDA_LT",
        "ENABLE_PERSISTENT_TMA_MATMUL",
        "ENABLE_TEMPLATE_TMA_STORE",
        "ENABLE_TMA_LOAD_FOR_TEMPLATE_EPILOGUE",
        "FORCE_NUM_KV_SPLITS",
        "GLIBC_TUNABLES",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "PYTHONHASHSEED",
        "PYTHONHOME",
        "PYTHONPATH",
        # Chat templates can write today's date.
        "TZ",
        "USE_DEFAULT_FLA_NORM",
        "USE_FLAGOS",
        "XPU_USE_TRITON_KERNEL",
    }
)
"""Names that stand alone: which libraries, compilers and kernels are taken, and how Python runs.

Source: what torch 2.13 and vLLM 0.32 ask of their environment, and the documents of libraries that GPUs bring.
"""


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
