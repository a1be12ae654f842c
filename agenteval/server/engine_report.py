"""Run by the engine's own interpreter: prints one JSON object about vLLM and the machine.

Stands alone: the engine's environment need not hold agenteval. Importing vLLM takes 5 to 20 s, so the caller keeps
the report.
"""

import contextlib
import importlib
import importlib.util
import io
import json
import os
import platform
import subprocess
import sys


def parser_actions() -> list:
    """The options of the server's parser; where the modules stand depends on the version."""
    arguments = first_module("vllm.utils.argparse_utils", "vllm.utils")
    options = first_module("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args")
    parser = options.make_arg_parser(arguments.FlexibleArgumentParser())
    return parser._actions


def accepted_values(actions: list) -> dict:
    """Option to the values that it takes, where the build lists them."""
    values = {
        option: [str(choice) for choice in action.choices]
        for action in actions
        for option in action.option_strings
        if action.choices and option.startswith("--")
    }
    with contextlib.suppress(ImportError, AttributeError):
        backends = importlib.import_module("vllm.v1.attention.backends.registry").AttentionBackendEnum
        values["--attention-backend"] = sorted(backends.__members__)
    return values


def first_module(*names: str):
    """The first of these modules that exists."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise ModuleNotFoundError(f"none of {names}")


def known_variables() -> list:
    """VLLM_* variables that the engine reads; empty where the build does not list them."""
    with contextlib.suppress(ModuleNotFoundError):
        return sorted(getattr(importlib.import_module("vllm.envs"), "environment_variables", {}))
    return []


def quantizations() -> list:
    """Quantisation methods of this build; empty where it does not list them."""
    with contextlib.suppress(ModuleNotFoundError):
        module = importlib.import_module("vllm.model_executor.layers.quantization")
        return sorted(getattr(module, "QUANTIZATION_METHODS", []))
    return []


def torch_facts() -> dict:
    """torch, CUDA and the GPUs that torch sees."""
    with contextlib.suppress(ModuleNotFoundError):
        torch = importlib.import_module("torch")
        gpus = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                seen = torch.cuda.get_device_properties(index)
                gpus.append(
                    {
                        "name": seen.name,
                        "capability": [seen.major, seen.minor],
                        "memory_bytes": seen.total_memory,
                    }
                )
        return {"torch_version": torch.__version__, "cuda_version": torch.version.cuda, "gpus": gpus}
    return {"torch_version": "none", "cuda_version": None, "gpus": []}


def driver_version():
    """The NVIDIA driver's version, or None."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.splitlines()[0].strip() if answer.stdout.strip() else None


def cpu_model() -> str:
    """The processor's name, as the kernel gives it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def report() -> dict:
    """Everything, as JSON."""
    vllm = importlib.import_module("vllm")
    current = importlib.import_module("vllm.platforms").current_platform
    actions = parser_actions()
    return {
        "vllm_version": vllm.__version__,
        "device": str(current.device_type),
        "driver_version": driver_version(),
        "cpu_model": cpu_model(),
        "cpus": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count())),
        "flags": sorted({option for action in actions for option in action.option_strings}),
        "values": accepted_values(actions),
        "variables": known_variables(),
        "quantizations": quantizations(),
        "has_flashinfer": importlib.util.find_spec("flashinfer") is not None,
        **torch_facts(),
    }


if __name__ == "__main__":
    # vLLM logs to stdout while it is imported; the report must stand there alone.
    with contextlib.redirect_stdout(io.StringIO()):
        facts = report()
    sys.stdout.write("\n" + json.dumps(facts) + "\n")
