"""Output allocator for data-dependent shapes: gives memory during a run, and records the shape."""

from types import ModuleType
from typing import Any

from naiad_tensorrt.description import Shape
from naiad_tensorrt.execution.buffers import DeviceBuffer
from naiad_tensorrt.execution.cuda import CudaError


class LateOutput:
    """One such output: its memory, and the `shape` of the last run (None until the engine has reported it).

    `refusal` is why the last run was given no memory, if it was not. `allocator` is the `IOutputAllocator` to give to
    an execution context; hold this object for as long as the context may call it.
    """

    def __init__(self, trt: ModuleType, buffer: DeviceBuffer) -> None:
        self.buffer = buffer
        self.shape: Shape | None = None
        self.refusal: CudaError | None = None
        self.allocator = _allocator_type(trt)(self)

    def forget(self) -> None:
        """Before a run: nothing is known of its shape."""
        self.shape, self.refusal = None, None

    def reallocate(self, size: int) -> int:
        """The address of at least `size` bytes; 0, which ends the run, where there is too little memory."""
        try:
            return self.buffer.reserve(size)
        except CudaError as error:
            self.refusal = error
            return 0


def _allocator_type(trt: ModuleType) -> Any:
    class Allocator(trt.IOutputAllocator):  # type: ignore[misc, name-defined]
        def __init__(self, output: LateOutput) -> None:
            trt.IOutputAllocator.__init__(self)
            self._output = output

        def reallocate_output(self, _name: str, _memory: Any, size: int, _alignment: int) -> int:
            return self._output.reallocate(size)

        def reallocate_output_async(self, _name: str, _memory: Any, size: int, _alignment: int, _stream: int) -> int:
            return self._output.reallocate(size)

        def notify_shape(self, _name: str, shape: Any) -> None:
            self._output.shape = tuple(shape)

    return Allocator
