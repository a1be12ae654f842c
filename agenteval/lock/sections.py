"""The fields of a lock, and how each section is made of what a run is started with."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator

import agenteval
from agenteval.contract import Contract
from agenteval.digest import digest_json
from agenteval.launch import EngineFacts, LaunchPlan, capability_text, influential_environment
from agenteval.loading import Frozen, Many
from agenteval.spec import Suite, TaskVariant

LOCK_VERSION = 1
"""The newest form of the file that is read."""
_STAND_INS = {"--model": "MODEL", "--served-model-name": "NAME"}
"""Option to what stands for its value: the model's digest stands for its folder, and its name changes no number."""
_THREADS = "VLLM_CPU_OMP_THREADS_BIND"
_PROCESSORS = "PROCESSORS"
"""Stands for the list of processors: how many they are is the machine's, which they are is the day's."""

ValueT = TypeVar("ValueT")


def _in_order(value: Any) -> Any:
    """The same JSON with the keys of every mapping in order."""
    if isinstance(value, dict):
        return {key: _in_order(inner) for key, inner in sorted(value.items())}
    return value


Sorted = Annotated[dict[str, ValueT], AfterValidator(_in_order)]
"""By name, whatever order a file or the database had: equal locks have equal texts."""


class ProgramSection(Frozen):
    """The runner: it writes the requests, and runs the tools and checks."""

    version: str
    python: str

    @classmethod
    def here(cls) -> ProgramSection:
        """This agenteval in this interpreter."""
        return cls(version=agenteval.__version__, python=platform.python_version())


class EngineSection(Frozen):
    """The program that computes the answers."""

    vllm: str
    torch: str
    cuda: str | None
    """CUDA version that torch was built for; null where it was built without."""
    device: str
    """vLLM's platform: `cuda`, `cpu`, …"""
    flashinfer: bool
    """Whether FlashInfer is installed, whose kernels vLLM prefers."""

    @classmethod
    def of(cls, facts: EngineFacts) -> EngineSection:
        """The section of an installed engine."""
        return cls(
            vllm=facts.vllm_version,
            torch=facts.torch_version,
            cuda=facts.cuda_version,
            device=facts.device,
            flashinfer=facts.has_flashinfer,
        )


class GpuSection(Frozen):
    """One GPU that the engine sees."""

    name: str
    capability: str
    """CUDA compute capability, such as `9.0`."""
    memory_bytes: int


class MachineSection(Frozen):
    """The hardware, its driver and its system."""

    driver: str | None
    """Version of the NVIDIA driver; null where there is none."""
    gpus: Many[GpuSection]
    cpu: str
    """The processor's model."""
    processors: int
    """Logical processors that the server may use."""
    system: str
    architecture: str

    @classmethod
    def of(cls, facts: EngineFacts) -> MachineSection:
        """The section of the machine that an engine reported."""
        gpus = tuple(
            GpuSection(name=gpu.name, capability=capability_text(gpu.capability), memory_bytes=gpu.memory_bytes)
            for gpu in facts.gpus
        )
        return cls(
            driver=facts.driver_version,
            gpus=gpus,
            cpu=facts.cpu_model,
            processors=len(facts.cpus),
            system=platform.system(),
            architecture=platform.machine(),
        )


class ModelSection(Frozen):
    """Weights, tokenizer and chat template."""

    name: str
    """What the user called it; told, not compared."""
    digest: str | None
    """Content hash; null where someone else runs the server."""


class SuiteSection(Frozen):
    """What the agent is asked."""

    name: str
    """Told, not compared."""
    digest: str
    """Hash of the whole suite."""
    variants: int
    """Task variants that run."""
    variants_digest: str
    """Hash of those variants, in the order in which they run."""
    samples: int
    """Seeds of each variant."""

    @classmethod
    def of(cls, suite: Suite, variants: tuple[TaskVariant, ...], *, samples: int) -> SuiteSection:
        """The section of a suite of which some variants run."""
        return cls(
            name=suite.name,
            digest=suite.digest(),
            variants=len(variants),
            variants_digest=digest_json([variant.fields() for variant in variants]),
            samples=samples,
        )


class ContractSection(Frozen):
    """What is held fixed."""

    name: str
    """Told, not compared."""
    digest: str
    """Told, not compared: it follows from the fields, each of which is compared by its own name."""
    fields: Sorted[Any]
    """Every effective field, by clause; name, description and patience stand aside."""

    @classmethod
    def of(cls, contract: Contract) -> ContractSection:
        """The section of a contract."""
        fields = contract.fields()
        del fields["name"], fields["description"], fields["engine"]["start_timeout_s"]
        return cls(name=contract.name, digest=contract.digest(), fields=fields)


class ServerSection(Frozen):
    """How the server is started."""

    argv: Many[str]
    """After the interpreter, without the port; MODEL is the model's folder and NAME its name."""
    variables: Sorted[str]
    """Set by agenteval and the contract; PROCESSORS is the list of the machine's processors."""
    inherited: Sorted[str]
    """From the runner's environment, where they can change the engine's numbers or libraries; never a secret."""

    @classmethod
    def of(cls, plan: LaunchPlan, facts: EngineFacts, environ: Mapping[str, str]) -> ServerSection:
        """The section of a launch plan.

        Args:
            plan: How the server is started.
            facts: Of the engine that the plan was made for.
            environ: The runner's variables.
        """
        variables = dict(plan.env)
        if variables.get(_THREADS) == ",".join(map(str, facts.cpus)):
            variables[_THREADS] = _PROCESSORS
        inherited = {
            name: _readable(value) for name, value in influential_environment(environ).items() if name not in plan.env
        }
        return cls(argv=_with_stand_ins(plan.argv), variables=variables, inherited=inherited)


class Lock(Frozen):
    """Everything that is known of what a run's numbers depend on."""

    lock_version: Literal[1] = 1
    """Of the file's form; a later form has a higher number."""
    agenteval: ProgramSection
    engine: EngineSection | None
    """Null where someone else runs the server, as for the machine and the server."""
    machine: MachineSection | None
    model: ModelSection
    suite: SuiteSection
    agent: str
    """`package.module:factory` of the graph; `agenteval` is the one that comes with it."""
    contract: ContractSection
    server: ServerSection | None

    def as_json(self) -> dict[str, Any]:
        """Every field, as JSON."""
        return self.model_dump(mode="json")

    def text(self) -> str:
        """The file's content: sections in order, one field a line; equal locks give equal texts."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"


def _with_stand_ins(argv: tuple[str, ...]) -> tuple[str, ...]:
    previous = ("", *argv)
    return tuple(_STAND_INS.get(option, word) for option, word in zip(previous, argv, strict=False))


def _readable(value: str) -> str:
    """A variable's value as a text that every reader of JSON takes: bytes that are no UTF-8 are spelled out."""
    return value.encode("utf-8", errors="backslashreplace").decode("utf-8")
