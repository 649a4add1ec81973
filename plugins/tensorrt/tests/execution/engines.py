"""Engines for tests, with the executors over them."""

from typing import Any

import numpy as np

from naiad_config import DataType
from naiad_tensorrt.description import EngineDescription, EngineTensor, Profile
from naiad_tensorrt.execution.executor import Executor
from naiad_tensorrt.options import ExecutionOptions, GraphSpec

from .fake_cuda import FakeCuda
from .fake_tensorrt import Compute, FakeEngine, FakeTensorRt

_KINDS = {
    "FLOAT": DataType.TYPE_FP32,
    "HALF": DataType.TYPE_FP16,
    "BF16": DataType.TYPE_BF16,
    "INT8": DataType.TYPE_INT8,
    "INT32": DataType.TYPE_INT32,
    "INT64": DataType.TYPE_INT64,
    "UINT8": DataType.TYPE_UINT8,
    "BOOL": DataType.TYPE_BOOL,
}


def tensor(name: str, dims: tuple[int, ...], kind: str = "FLOAT", is_input: bool = True, **more: Any) -> EngineTensor:
    return EngineTensor(name, is_input, kind, _KINDS.get(kind), dims, **more)


def output(name: str, dims: tuple[int, ...], kind: str = "FLOAT", **more: Any) -> EngineTensor:
    return tensor(name, dims, kind, is_input=False, **more)


def profile(index: int, **ranges: Any) -> Profile:
    return Profile(index, {name: (least, most, most) for name, (least, most) in ranges.items()}, {})


def graph(most: dict[str, Any], least: dict[str, Any] | None = None, on: int = 0) -> GraphSpec:
    return GraphSpec(on, most, least or most, {})


class Bench:
    """One engine on a device that is no device, and an executor over it."""

    def __init__(
        self,
        tensors: list[EngineTensor],
        profiles: list[Profile],
        compute: Compute,
        late: tuple[str, ...] = (),
        cuda: FakeCuda | None = None,
    ) -> None:
        self.cuda = cuda or FakeCuda()
        self.trt = FakeTensorRt()
        self.description = EngineDescription(tuple(tensors), tuple(profiles))
        self.engine = FakeEngine(self.cuda, self.description, compute, late)

    def executor(self, **options: Any) -> Executor:
        return Executor(self.trt, self.engine, self.description, ExecutionOptions(**options), 0, self.cuda)


def add_sub(kind: str = "FLOAT", **more: Any) -> Bench:
    """SUM = A + B and DIFFERENCE = A - B over rows of 4: up to 8 rows on profile 0, 9 to 32 on profile 1."""
    names = [tensor("A", (-1, 4), kind), tensor("B", (-1, 4), kind)]
    names += [output("SUM", (-1, 4), kind), output("DIFFERENCE", (-1, 4), kind)]
    profiles = [
        profile(0, A=((1, 4), (8, 4)), B=((1, 4), (8, 4))),
        profile(1, A=((9, 4), (32, 4)), B=((9, 4), (32, 4))),
    ]
    return Bench(names, profiles, lambda x: {"SUM": x["A"] + x["B"], "DIFFERENCE": x["A"] - x["B"]}, **more)


def rows(count: int, start: float = 0, dtype: Any = np.float32) -> np.ndarray:
    """Rows of 4 that count from `start`."""
    return (np.arange(count * 4) + start).reshape(count, 4).astype(dtype)
