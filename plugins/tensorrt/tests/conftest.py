"""Machines with pretended GPUs, descriptions of engines, and engines that TensorRT for RTX builds in truth."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_config import DataType
from naiad_tensorrt.backend import TensorRtBackend
from naiad_tensorrt.description import EngineDescription, EngineTensor, Profile
from naiad_tensorrt.engines import OpenEngine, Opening
from naiad_tensorrt.options import ExecutionOptions
from naiad_tensors.devices import gpu
from naiad_testing.devices import FakeDeviceArray
from naiad_testing.workbench import Workbench

TYPES = {
    "FLOAT": DataType.TYPE_FP32,
    "INT32": DataType.TYPE_INT32,
    "INT64": DataType.TYPE_INT64,
    "UINT8": DataType.TYPE_UINT8,
    "BF16": DataType.TYPE_BF16,
    "FP8": None,
}


def tensor(name: str, *dims: int, output: bool = False, kind: str = "FLOAT", **more: Any) -> EngineTensor:
    return EngineTensor(name, not output, kind, TYPES[kind], dims, **more)


def described(*tensors: EngineTensor, batches: Collection[tuple[int, int, int]] = ((1, 4, 8),), **values: Any) -> Any:
    """An engine with a profile for each range of batches, in which every -1 of an input has that range.

    `values` are ranges of values of shape tensors, the same in every profile.
    """
    inputs = [each for each in tensors if each.is_input]

    def ranges(bounds: tuple[int, int, int]) -> dict[str, Any]:
        return {
            each.name: tuple(tuple(bound if dim == -1 else dim for dim in each.dims) for bound in bounds)
            for each in inputs
        }

    return EngineDescription(tensors, tuple(Profile(n, ranges(each), values) for n, each in enumerate(batches)))


ADD_SUB = described(
    tensor("A", -1, 16), tensor("B", -1, 16), tensor("SUM", -1, 16, output=True), tensor("DIFF", -1, 16, output=True)
)


def add_sub(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"SUM": inputs["A"] + inputs["B"], "DIFF": inputs["A"] - inputs["B"]}


class FakeExecutor:
    """Computes with a function; `runs` are the inputs and profiles that it was asked for."""

    def __init__(self, compute: Callable[..., dict[str, np.ndarray]], options: ExecutionOptions, device: int) -> None:
        self.compute, self.options, self.device = compute, options, device
        self.description: EngineDescription | None = None
        self.runs: list[tuple[dict[str, Any], int]] = []
        self.broken = ""
        self.is_open = True

    def run(self, inputs: Mapping[str, Any], profile: int, *, requested: Any, stay: Any, marks: Any) -> dict[str, Any]:
        self.runs.append((dict(inputs), profile))
        marks.mark_input_done()
        outputs = self.compute(inputs)
        marks.mark_infer_done()
        return {
            name: FakeDeviceArray(outputs[name], gpu(self.device)) if name in stay else outputs[name]
            for name in requested
        }

    def ready(self) -> str:
        return self.broken

    def memory_usage(self) -> int:
        return 100

    def close(self) -> None:
        self.is_open = False


class FakeMachine:
    """A machine whose GPUs hold one engine each time, as `description` says, that `compute` executes."""

    def __init__(self, capabilities: tuple[str, ...] = ("8.0",)) -> None:
        self.capabilities = capabilities
        self.description: EngineDescription = ADD_SUB
        self.compute: Callable[..., dict[str, np.ndarray]] = add_sub
        self.opened: list[tuple[bytes, int, Opening]] = []
        self.executors: list[FakeExecutor] = []

    def device_count(self) -> int:
        return len(self.capabilities)

    def compute_capability(self, device: int) -> str:
        return self.capabilities[device]

    def open_engine(self, plan: bytes, model: str, device: int, opening: Opening) -> OpenEngine:
        if plan[1:4] != b"trt":
            raise InvalidArgumentError(f"the engine of model '{model}' is none")
        self.opened.append((plan, device, opening))
        return OpenEngine(ModuleType("trt"), None, None, self.description, weights=1000)

    def executor(self, opened: OpenEngine, options: ExecutionOptions, device: int) -> FakeExecutor:
        self.executors.append(FakeExecutor(self.compute, options, device))
        self.executors[-1].description = opened.description
        return self.executors[-1]


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine()


@pytest.fixture
def workbench(tmp_path: Path, machine: FakeMachine) -> Workbench:
    """A model folder with an engine, on a machine with one pretended GPU."""
    bench = Workbench(tmp_path / "m", TensorRtBackend(machine), gpus=1)
    bench.path("model.plan").write_bytes(b"ftrt and more")
    return bench
