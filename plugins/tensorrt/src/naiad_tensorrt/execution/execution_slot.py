"""Execution slot: an execution context with the memory of its inputs and outputs."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError, ModelFailedError, UnsupportedError
from naiad_tensorrt.description import EngineDescription, EngineTensor, Shape
from naiad_tensorrt.execution.buffers import DeviceBuffer, HostBuffer
from naiad_tensorrt.execution.cuda_protocol import Cuda
from naiad_tensorrt.execution.layout import dtype_of, memory_size
from naiad_tensorrt.execution.outputs import LateOutput


class ExecutionSlot:
    """A context on a profile, its shapes of the moment, and the addresses that it reads and writes.

    A run goes: `shape`, `bind`, fill what lies at each `address`, `execute`.
    After `capture`, `execute` launches the graph, and shapes and addresses must not change.
    """

    def __init__(
        self, cuda: Cuda, trt: ModuleType, context: Any, description: EngineDescription, profile: int, stream: int
    ) -> None:
        self.profile = profile
        self._cuda = cuda
        self._trt = trt
        self._context = context
        self._description = description
        self._stream = stream
        on_device = [tensor for tensor in description.tensors if not tensor.on_host]
        self._buffers = {tensor.name: DeviceBuffer(cuda) for tensor in on_device}
        self._host = {tensor.name: HostBuffer() for tensor in description.tensors if tensor.on_host}
        self._late: dict[str, LateOutput] = {}
        self._shapes: dict[str, Shape] = {}
        self._values: dict[str, bytes] = {}
        self._computed: dict[str, Shape] = {}
        self._bound: dict[str, int] = {}
        self._is_shaped = False
        self._is_bound = False
        self._graph = 0

    def shape(self, shapes: Mapping[str, Shape], host_values: Mapping[str, np.ndarray]) -> None:
        """Set the whole shape of each input, and what inputs on the host say.

        Raises InvalidArgumentError, with both shapes, for what the profile does not hold or does not fit together.
        """
        written = {name: array.tobytes() for name, array in host_values.items()}
        if self._is_shaped and self._shapes == shapes and self._values == written:
            return
        before, self._shapes, self._is_shaped, self._is_bound = self._shapes, {}, False, False
        for tensor in self._description.inputs:
            if before.get(tensor.name) != shapes[tensor.name]:
                self._set_shape(tensor, shapes[tensor.name])
        for name, content in written.items():
            self._write(name, content)
        self._computed = self._infer(shapes)
        self._shapes, self._values, self._is_shaped = dict(shapes), written, True

    @property
    def input_shapes(self) -> Mapping[str, Shape]:
        """The whole shapes of the inputs that are set."""
        return self._shapes

    @property
    def output_shapes(self) -> Mapping[str, Shape]:
        """The whole shapes of the outputs for the shapes that are set; -1 where they are known after a run only."""
        return self._computed

    def bind(self) -> None:
        """Make room for all inputs and outputs, and set its addresses. Raises CudaError for too little."""
        for output in self._late.values():
            output.forget()
        if self._is_bound:
            return
        for tensor in self._description.tensors:
            shape = self._shapes[tensor.name] if tensor.is_input else self.output_shapes[tensor.name]
            if tensor.name in self._late:
                continue
            if tensor.on_host:
                self._address(tensor.name, self._host[tensor.name].reserve(memory_size(tensor, shape)))
            else:
                self._address(tensor.name, self._buffers[tensor.name].reserve(memory_size(tensor, shape)))
        self._is_bound = True

    def address(self, name: str) -> int:
        """Where an input or output on the GPU lies."""
        return self._buffers[name].address

    def execute(self) -> None:
        """Put one execution, or the graph, on the stream. Raises ModelFailedError or CudaError."""
        if self._graph:
            self._cuda.launch_graph(self._graph, self._stream)
        elif not self._context.execute_async_v3(self._stream):
            raise self._refusal or ModelFailedError(f"TensorRT did not execute the engine on profile {self.profile}")

    def capture(self) -> None:
        """Make a CUDA graph of an execution with these shapes and addresses.

        Run it once before: TensorRT prepares then what it may not do in a graph. Raises CudaError or ModelFailedError.
        """
        self._cuda.begin_capture(self._stream)
        taken = False
        try:
            taken = bool(self._context.execute_async_v3(self._stream))
        finally:
            graph = self._cuda.end_capture(self._stream)
        if not taken:
            self._cuda.destroy_graph(graph)
            raise ModelFailedError("TensorRT refused the execution while a CUDA graph was captured")
        self._graph = graph

    def late_shape(self, name: str) -> Shape:
        """The whole shape that the engine reported for an output in this run. Raises ModelFailedError without one."""
        shape = self._late[name].shape
        if shape is None or -1 in shape:  # some versions of TensorRT give -1 here, too: NVIDIA/TensorRT#4744
            reported = "no shape" if shape is None else f"the shape {list(shape)}"
            raise ModelFailedError(f"TensorRT reported {reported} for the output '{name}' after the execution")
        return shape

    def is_late_output(self, name: str) -> bool:
        """Whether that output has its shape from the run."""
        return name in self._late

    def host_output(self, tensor: EngineTensor) -> np.ndarray:
        """A copy of an output on the host, when the stream is done."""
        shape = self.output_shapes[tensor.name]
        return self._host[tensor.name].bytes(memory_size(tensor, shape)).view(dtype_of(tensor)).reshape(shape).copy()

    @property
    def memory(self) -> int:
        """The bytes of its buffers on the GPU."""
        return sum(buffer.size for buffer in self._buffers.values())

    def close(self) -> None:
        """Let go of the graph, the context and the memory, when nothing runs."""
        graph, self._graph = self._graph, 0
        if graph:
            self._cuda.destroy_graph(graph)
        self._context = None
        self._late.clear()
        for buffer in self._buffers.values():
            buffer.close()

    @property
    def _refusal(self) -> Exception | None:
        return next((output.refusal for output in self._late.values() if output.refusal is not None), None)

    def _set_shape(self, tensor: EngineTensor, shape: Shape) -> None:
        least, _, most = self._description.profiles[self.profile].shapes.get(tensor.name, (tensor.dims,) * 3)
        if len(shape) != len(least) or any(
            not low <= dim <= high for low, dim, high in zip(least, shape, most, strict=True)
        ):
            limits = str(list(least)) if least == most else f"{list(least)} to {list(most)}"
            raise InvalidArgumentError(
                f"input '{tensor.name}' has the shape {list(shape)}, and profile {self.profile} of the engine takes "
                f"{limits}; send that, or build the engine with a profile for it"
            )
        if -1 in tensor.dims and not self._context.set_input_shape(tensor.name, shape):
            raise InvalidArgumentError(
                f"TensorRT does not take the shape {list(shape)} for input '{tensor.name}' on profile {self.profile}"
            )

    def _write(self, name: str, content: bytes) -> None:
        buffer = self._host[name]
        self._address(name, buffer.reserve(len(content)))
        buffer.bytes(len(content))[:] = np.frombuffer(content, np.uint8)

    def _infer(self, input_shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        try:
            missing = self._context.infer_shapes()
        except RuntimeError as error:
            raise _unfit(input_shapes, str(error)) from error
        if missing:
            raise _unfit(input_shapes, f"TensorRT misses {', '.join(missing)}")
        outputs = self._description.outputs
        shapes = {tensor.name: tuple(self._context.get_tensor_shape(tensor.name)) for tensor in outputs}
        for tensor in outputs:
            if -1 in shapes[tensor.name] and tensor.on_host:
                raise UnsupportedError(
                    f"the output '{tensor.name}' lies on the host and has the shape {list(shapes[tensor.name])}, which "
                    "TensorRT does not know before the run; give it a fixed number of values"
                )
            if -1 in shapes[tensor.name] and tensor.name not in self._late:
                late = LateOutput(self._trt, self._buffers[tensor.name])
                if not self._context.set_output_allocator(tensor.name, late.allocator):
                    raise ModelFailedError(f"TensorRT takes no allocator for the output '{tensor.name}'")
                self._late[tensor.name] = late
        return shapes

    def _address(self, name: str, address: int) -> None:
        if self._bound.get(name) == address:
            return
        if not self._context.set_tensor_address(name, address):
            raise ModelFailedError(f"TensorRT does not take the address {address:#x} for the tensor '{name}'")
        self._bound[name] = address


def _unfit(input_shapes: Mapping[str, Shape], reason: str) -> InvalidArgumentError:
    shapes = ", ".join(f"'{name}' {list(shape)}" for name, shape in input_shapes.items())
    return InvalidArgumentError(f"the shapes of the inputs {shapes} do not fit together: {reason}")
