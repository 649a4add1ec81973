"""Runner: one batch through an engine, from inputs over the execution to outputs."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_tensorrt.description import EngineDescription, EngineTensor, Shape
from naiad_tensorrt.execution.collecting import Collector, Computed, DeviceOutputKeeper
from naiad_tensorrt.execution.cuda_protocol import Cuda
from naiad_tensorrt.execution.execution_slot import ExecutionSlot
from naiad_tensorrt.execution.feeding import Feeder
from naiad_tensorrt.execution.graphs import Graphs
from naiad_tensorrt.execution.input_parts import InputParts, input_parts
from naiad_tensorrt.execution.streams import Streams
from naiad_tensorrt.options import ExecutionOptions
from naiad_tensors.devices import DeviceTensor


class Marks(Protocol):
    """Is notified when the parts of a run are over; a `naiad.backend.Batch` does."""

    def mark_input_done(self) -> None:
        """The inputs are on their way to the GPU."""
        ...

    def mark_infer_done(self) -> None:
        """The GPU has executed."""
        ...


class _NoMarks:
    def mark_input_done(self) -> None:
        pass

    def mark_infer_done(self) -> None:
        pass


NO_MARKS: Marks = _NoMarks()
"""For a batch whose phases nothing records."""


class Runner:
    """Runs batches on execution slots, one after the other; the copies to and from the GPU are its own."""

    def __init__(
        self, cuda: Cuda, streams: Streams, description: EngineDescription, options: ExecutionOptions, device: int
    ) -> None:
        self._streams = streams
        self._description = description
        self._device = device
        self._pinned_output = options.pinned_output
        self._feeder = Feeder(cuda, streams.main, options.pinned_input)
        self._collector = Collector(cuda, streams.copies, options.pinned_output)
        self._keeper = DeviceOutputKeeper(cuda, streams.copies, device)

    def run(
        self,
        inputs: Mapping[str, Any],
        slot: ExecutionSlot,
        graphs: Graphs,
        requested: Collection[str] | None,
        stay: Collection[str],
        marks: Marks,
    ) -> dict[str, np.ndarray | DeviceTensor]:
        """The outputs of these inputs on the slot of a profile, or on that of one of the graphs for it."""
        parts = self._parts(inputs)
        slot, wished = self._prepared(slot, graphs, parts)
        for name, each in parts.items():
            if not each.tensor.on_host:
                self._feeder.feed(each, slot.input_shapes[name], slot.address(name))
        marks.mark_input_done()
        slot.execute()
        tensors = [tensor for tensor in self._description.outputs if requested is None or tensor.name in requested]
        return self._fetch(slot, tensors, wished, stay, marks)

    @property
    def memory(self) -> int:
        """The bytes on the GPU of outputs that stay there."""
        return self._keeper.memory

    def forget(self) -> None:
        """Let go of what a failed run was given, when the streams are done."""
        self._feeder.forget()

    def close(self) -> None:
        """Give the page-locked memory back."""
        self._feeder.close()
        self._collector.close()
        self._keeper.close()

    def _parts(self, inputs: Mapping[str, Any]) -> dict[str, InputParts]:
        missing = [tensor.name for tensor in self._description.inputs if tensor.name not in inputs]
        if missing:
            raise InvalidArgumentError(f"the engine needs the input '{missing[0]}' as well; send it")
        return {
            tensor.name: input_parts(tensor, inputs[tensor.name], self._device) for tensor in self._description.inputs
        }

    def _prepared(
        self, slot: ExecutionSlot, graphs: Graphs, parts: Mapping[str, InputParts]
    ) -> tuple[ExecutionSlot, Mapping[str, Shape]]:
        """The slot for these inputs, of a profile or a CUDA graph, and the shapes of the outputs."""
        shapes = {name: each.shape for name, each in parts.items()}
        read = {name: self._feeder.whole(each) for name, each in parts.items() if each.tensor.is_shape_tensor}
        values = {name: tuple(int(value) for value in array.ravel()) for name, array in read.items()}
        graph = graphs.find(slot.profile, shapes, values)
        if graph is not None and graph.input_shapes == shapes:
            return graph, graph.output_shapes
        slot.shape(shapes, {name: array for name, array in read.items() if parts[name].tensor.on_host})
        if graph is None:
            slot.bind()
        return graph or slot, slot.output_shapes

    def _fetch(
        self,
        slot: ExecutionSlot,
        tensors: list[EngineTensor],
        wished: Mapping[str, Shape],
        stay: Collection[str],
        marks: Marks,
    ) -> dict[str, np.ndarray | DeviceTensor]:
        self._streams.mark_computed()
        computed = [_computed(slot, tensor, wished) for tensor in tensors if not tensor.on_host]
        kept = {
            each.tensor.name: self._keeper.keep(each) for each in computed if each.tensor.name in stay and each.may_stay
        }
        fetched = [each for each in computed if each.tensor.name not in kept]
        # a copy to memory that is not page-locked waits for the execution itself, and the mark would come too late
        copied = self._collector.start(fetched) if self._pinned_output else None
        self._streams.wait_computed()
        marks.mark_infer_done()
        if copied is None:
            copied = self._collector.start(fetched)
        self._streams.wait_copied()
        self._feeder.forget()
        results: dict[str, np.ndarray | DeviceTensor] = {**kept, **self._collector.finish(fetched, copied)}
        return {each.name: slot.host_output(each) if each.on_host else results[each.name] for each in tensors}


def _computed(slot: ExecutionSlot, tensor: EngineTensor, wished: Mapping[str, Shape]) -> Computed:
    if not slot.is_late_output(tensor.name):
        return Computed(tensor, slot.address(tensor.name), slot.output_shapes[tensor.name], wished[tensor.name])
    shape = slot.late_shape(tensor.name)
    return Computed(tensor, slot.address(tensor.name), shape, shape)
