"""The machine as an interface: what this plugin needs of GPUs, and its implementation."""

import ctypes
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from naiad.batch import Batch
from naiad_tensorrt.engines import OpenEngine, Opening, open_engine
from naiad_tensorrt.options import ExecutionOptions


class Executor(Protocol):
    """Runs an engine on one device, one batch at a time, on the thread that made it."""

    def run(
        self,
        inputs: Mapping[str, Any],
        profile: int,
        *,
        requested: Collection[str] | None,
        stay: Collection[str],
        marks: Batch | None,
    ) -> Mapping[str, Any]:
        """The outputs that are `requested` for these inputs, whole arrays of the shapes that the engine gives them.

        An input is an array of the host, or a list of tensors on the device, to be joined along dimension 0. Outputs
        are arrays of the host, and those in `stay` may be tensors on the device.
        Tells `marks` when the inputs are there, and when the engine has executed. Raises NaiadError.
        """
        ...

    def ready(self) -> str:
        """Why it cannot be used any more, "" while it can."""
        ...

    def memory_usage(self) -> int:
        """The bytes of device memory beside the engine's weights."""
        ...

    def close(self) -> None:
        """Free what it holds, on the same thread."""
        ...


class Machine(Protocol):
    """A machine with GPUs, or without any."""

    def device_count(self) -> int:
        """How many GPUs CUDA can use."""
        ...

    def compute_capability(self, device: int) -> str:
        """That of a GPU, as `8.0`."""
        ...

    def open_engine(self, plan: bytes, model: str, device: int, opening: Opening) -> OpenEngine:
        """The engine of these bytes on a GPU. Raises NaiadError when it cannot be opened there."""
        ...

    def executor(self, opened: OpenEngine, options: ExecutionOptions, device: int) -> Executor:
        """An executor for that engine on its device. Raises NaiadError when the device has no room for it."""
        ...


class Gpus:
    """The GPUs of this machine. CUDA's module is imported by the first call."""

    def device_count(self) -> int:
        """How many GPUs CUDA can use; 0 without a driver, for which no module is needed."""
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            return 0
        from naiad_tensorrt.execution import device_count

        return device_count()

    def compute_capability(self, device: int) -> str:
        """That of a GPU, as `8.0`."""
        from naiad_tensorrt.execution import compute_capability

        return compute_capability(device)

    def open_engine(self, plan: bytes, model: str, device: int, opening: Opening) -> OpenEngine:
        """The engine of these bytes on a GPU. Raises NaiadError when it cannot be opened there."""
        from naiad_tensorrt.execution.cuda import use_device

        use_device(device)
        return open_engine(plan, model, opening)

    def executor(self, opened: OpenEngine, options: ExecutionOptions, device: int) -> Executor:
        """An executor for that engine on its device. Raises NaiadError when the device has no room for it."""
        from naiad_tensorrt.execution import Executor as CudaExecutor

        return CudaExecutor(opened.trt, opened.engine, opened.description, options, device)
