"""TensorRT without a GPU: engines that compute with numpy on the addresses that a context is given."""

import ctypes
from collections.abc import Callable, Mapping
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from naiad_tensorrt.description import EngineDescription, EngineTensor, Shape
from naiad_tensorrt.execution.layout import dtype_of, memory_shape, memory_size

from .fake_cuda import FakeCuda

Compute = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


class Strategy(Enum):
    STATIC = 0
    ON_PROFILE_CHANGE = 1
    USER_MANAGED = 2


class IOutputAllocator:
    pass


class FakeTensorRt:
    """The module."""

    ExecutionContextAllocationStrategy = Strategy
    IOutputAllocator = IOutputAllocator


class FakeRtx(FakeTensorRt):
    """The module of TensorRT for RTX, which captures CUDA graphs by itself."""

    CudaGraphStrategy = Enum("CudaGraphStrategy", ["DISABLED", "WHOLE_GRAPH_CAPTURE"])
    DynamicShapesKernelSpecializationStrategy = Enum("Kernels", ["LAZY", "EAGER", "NONE"])


class FakeRuntimeConfig:
    """How TensorRT for RTX makes a context."""

    strategy = Strategy.STATIC
    cuda_graph_strategy: Any = None
    dynamic_shapes_kernel_specialization_strategy: Any = None
    cache: Any = None

    def set_execution_context_allocation_strategy(self, strategy: Strategy) -> None:
        self.strategy = strategy

    def create_runtime_cache(self) -> object:
        return object()

    def set_runtime_cache(self, cache: object) -> bool:
        self.cache = cache
        return True


class FakeEngine:
    """An engine that computes its outputs from its inputs.

    `late` names outputs whose shape is known after a run only. `refuses` ends every execution, as TensorRT ends one
    that it cannot enqueue.
    """

    def __init__(
        self, cuda: FakeCuda, description: EngineDescription, compute: Compute, late: tuple[str, ...] = ()
    ) -> None:
        self.cuda = cuda
        self.description = description
        self.compute = compute
        self.late = late
        self.refuses = False
        self.tells: Any = lambda shape: shape
        self.makes_contexts = True
        self.contexts: list[FakeContext] = []
        self.device_memory_size_v2 = 1000
        self.num_optimization_profiles = len(description.profiles)

    def get_device_memory_size_for_profile_v2(self, profile: int) -> int:
        return 100 * (profile + 1)

    def create_runtime_config(self) -> FakeRuntimeConfig:
        return FakeRuntimeConfig()

    def create_execution_context(self, strategy: Any) -> "FakeContext | None":
        if not self.makes_contexts:
            return None
        self.contexts.append(FakeContext(self, strategy))
        return self.contexts[-1]


class FakeContext:
    """A context: records the calls, and fails when they break the rules of TensorRT."""

    def __init__(self, engine: FakeEngine, strategy: Any) -> None:
        self.engine = engine
        self.config = strategy
        self.strategy = getattr(strategy, "strategy", strategy)
        self.profile = 0
        self.workspace: tuple[int, int] | None = None
        self.shapes: dict[str, Shape] = {}
        self.addresses: dict[str, int] = {}
        self.allocators: dict[str, Any] = {}
        self.executions = 0

    def set_optimization_profile_async(self, profile: int, stream: int) -> bool:
        self.profile = profile
        self.shapes.clear()
        return stream in self.engine.cuda.queues

    def set_device_memory(self, address: int, size: int) -> None:
        self.workspace = address, size

    def set_input_shape(self, name: str, shape: Shape) -> bool:
        least, _, most = self.engine.description.profiles[self.profile].shapes[name]
        if any(not low <= dim <= high for low, dim, high in zip(least, shape, most, strict=True)):
            return False
        self.shapes[name] = shape
        return True

    def infer_shapes(self) -> list[str]:
        inputs = self.engine.description.inputs
        missing = [each.name for each in inputs if -1 in self._shape(each)]
        missing += [each.name for each in inputs if each.on_host and each.name not in self.addresses]
        if not missing:
            try:
                self._outputs({each.name: self._zeros(each) for each in inputs})
            except ValueError as error:
                raise RuntimeError(f"shapes: {error}") from error
        return missing

    def get_tensor_shape(self, name: str) -> Shape:
        actual = self._outputs({each.name: self._zeros(each) for each in self.engine.description.inputs})[name].shape
        return tuple(-1 if name in self.engine.late else dim for dim in actual)

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.addresses[name] = address
        return address != 0

    def set_output_allocator(self, name: str, allocator: Any) -> bool:
        self.allocators[name] = allocator
        return isinstance(allocator, IOutputAllocator)

    def execute_async_v3(self, stream: int) -> bool:
        if self.engine.refuses:
            return False
        assert self.strategy is not Strategy.USER_MANAGED or self.workspace is not None
        self.executions += 1
        inputs = [(each, self.addresses[each.name], self._shape(each)) for each in self.engine.description.inputs]
        if self.engine.late:
            self.engine.cuda.synchronize_stream(stream)
            if not self._allocate(self._outputs(self._read(inputs)), stream):
                return False
        addresses = dict(self.addresses)
        self.engine.cuda.put(stream, lambda: self._write(self._outputs(self._read(inputs)), addresses))
        return True

    def _allocate(self, outputs: Mapping[str, np.ndarray], stream: int) -> bool:
        for name in self.engine.late:
            allocator = self.allocators[name]
            address = allocator.reallocate_output_async(name, 0, outputs[name].nbytes, 256, stream)
            allocator.notify_shape(name, self.engine.tells(outputs[name].shape))
            if not address:
                return False
            self.addresses[name] = address
        return True

    def _shape(self, tensor: EngineTensor) -> Shape:
        return self.shapes.get(tensor.name, tensor.dims)

    def _zeros(self, tensor: EngineTensor) -> np.ndarray:
        if tensor.on_host:
            return self._host(tensor, self.addresses[tensor.name], self._shape(tensor))
        return np.zeros(self._shape(tensor), dtype_of(tensor))

    def _read(self, inputs: list[tuple[EngineTensor, int, Shape]]) -> dict[str, np.ndarray]:
        actual = {}
        for tensor, address, shape in inputs:
            if tensor.on_host:
                actual[tensor.name] = self._host(tensor, address, shape)
            else:
                held = self.engine.cuda.view(address, memory_size(tensor, shape)).view(dtype_of(tensor))
                actual[tensor.name] = from_memory(tensor, held, shape)
        return actual

    def _host(self, tensor: EngineTensor, address: int, shape: Shape) -> np.ndarray:
        held = (ctypes.c_uint8 * memory_size(tensor, shape)).from_address(address)
        return np.frombuffer(held, dtype_of(tensor)).reshape(shape)

    def _outputs(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return self.engine.compute(inputs)

    def _write(self, outputs: Mapping[str, np.ndarray], addresses: Mapping[str, int]) -> None:
        for tensor in self.engine.description.outputs:
            array = np.ascontiguousarray(outputs[tensor.name])
            if tensor.on_host:
                ctypes.memmove(addresses[tensor.name], array.ctypes.data, array.nbytes)
            elif prod(array.shape):
                laid = to_memory(tensor, array)
                self.engine.cuda.view(addresses[tensor.name], laid.nbytes)[:] = laid.reshape(-1).view(np.uint8)


def from_memory(tensor: EngineTensor, memory: np.ndarray, shape: Shape) -> np.ndarray:
    """The tensor of that shape out of memory, element by element, as TensorRT's documentation says where each lies."""
    if tensor.is_linear:
        return memory.reshape(shape)
    held, array = memory.reshape(memory_shape(tensor, shape)), np.empty(shape, memory.dtype)
    for index in np.ndindex(shape):
        array[index] = held[location_of(tensor.format, index)]
    return array


def to_memory(tensor: EngineTensor, array: np.ndarray) -> np.ndarray:
    """The memory of a tensor, with garbage where it is padded."""
    if tensor.is_linear:
        return array
    memory = np.full(memory_shape(tensor, array.shape), 77, array.dtype)
    for index in np.ndindex(array.shape):
        memory[location_of(tensor.format, index)] = array[index]
    return memory


def location_of(form: str, index: tuple[int, ...]) -> tuple[int, ...]:
    """Where the element (n, c, h, w), or (n, c, d, h, w), is in the C array of a format."""
    batch, channel, *rest = index
    if form.startswith(("HWC", "DHWC")):
        return (batch, *rest, channel)
    lanes = int(form.rpartition("W")[2])
    return (batch, channel // lanes, *rest, channel % lanes)
