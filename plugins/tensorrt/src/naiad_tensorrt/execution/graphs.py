"""CUDA graphs: executions of fixed shapes, captured when the executor is made, each with its own slot."""

import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from naiad.errors import NaiadError, UnsupportedError
from naiad_tensorrt.choices import graph_for
from naiad_tensorrt.description import EngineDescription, Shape
from naiad_tensorrt.execution.cuda import CudaError
from naiad_tensorrt.execution.cuda_protocol import Cuda
from naiad_tensorrt.execution.execution_slot import ExecutionSlot
from naiad_tensorrt.execution.layout import dtype_of, memory_size
from naiad_tensorrt.options import GraphSpec

_logger = logging.getLogger("naiad.tensorrt")


class Graphs:
    """The graphs that could be captured, and the choice among them.

    One that cannot be is a warning, and its shapes run without a graph. Raises CudaError when the device is lost.
    """

    def __init__(self, specs: Sequence[GraphSpec], captured: Callable[[GraphSpec], ExecutionSlot]) -> None:
        self._specs: list[GraphSpec] = []
        self._slots: list[ExecutionSlot] = []
        for spec in specs:
            try:
                slot = captured(spec)
            except NaiadError as error:
                if isinstance(error, CudaError) and error.is_fatal:
                    raise
                shapes = ", ".join(f"'{name}' {list(shape)}" for name, shape in spec.shapes.items())
                _logger.warning("no CUDA graph on profile %d for the inputs %s: %s", spec.profile, shapes, error)
                continue
            self._specs.append(spec)
            self._slots.append(slot)

    def find(self, profile: int, shapes: Mapping[str, Shape], values: Mapping[str, Shape]) -> ExecutionSlot | None:
        """The slot of the graph for these whole shapes of all inputs and values of shape tensors; None for none."""
        if not self._specs:
            return None
        index = graph_for(profile, shapes, values, self._specs)
        return None if index is None else self._slots[index]


def capture(
    slot: ExecutionSlot, spec: GraphSpec, description: EngineDescription, cuda: Cuda, stream: int, by_engine: bool
) -> None:
    """Record an execution of the shapes of `spec` on this slot, after one over zeros that prepares it.

    With `by_engine` the runtime records by itself when it executes the same shapes and addresses again. Raises
    UnsupportedError where the shape of an output, or what is on the host, differs from one run to the next.
    """
    host = {
        tensor.name: np.array(spec.values[tensor.name], dtype_of(tensor)).reshape(spec.shapes[tensor.name])
        for tensor in description.inputs
        if tensor.on_host
    }
    slot.shape(spec.shapes, host)
    late = [tensor.name for tensor in description.outputs if tensor.on_host or slot.is_late_output(tensor.name)]
    if late:
        raise UnsupportedError(f"the output '{late[0]}' depends on what the inputs hold, which no graph can follow")
    slot.bind()
    for tensor in description.inputs:
        if not tensor.on_host:
            cuda.fill_zero(slot.address(tensor.name), memory_size(tensor, spec.shapes[tensor.name]), stream)
    for _ in range(2 if by_engine else 1):
        slot.execute()
        cuda.synchronize_stream(stream)
    if not by_engine:
        slot.capture()
